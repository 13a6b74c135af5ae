"""Every speed goal of the engine, beside its peers: one table of goal, measured, ratios and limit.

    python benchmarks/engine.py                            # ours, Gymnasium, ale-py, Stable-Baselines3 if it is there
    python benchmarks/engine.py --peer-python PATH         # and the peers in benchmarks/requirements.txt
    python benchmarks/engine.py --only CartPole nativize   # some rows
    python benchmarks/engine.py --quick                    # to see that it works

The contestants are measured in turns, in processes of their own, and all figures are medians over
the rounds; those of one round make a ratio. The last column but one is a limit that was measured in
the same run: what the machine would give without any layer. A row is printed as soon as it is measured, and has
as many rounds as its share of the time allows, at least 3. Also writes benchmarks/results/engine.json.
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import LIMIT, OURS, Row
from sides import Side
from turns import Measure, parser, run

SCRIPT = str(Path(__file__).with_name("contestants.py"))
SYNC, ASYNC, SERIAL, PUFFER = "SyncVectorEnv", "AsyncVectorEnv", "our Serial", "PufferLib 3.0.0"
DUMMY, SUBPROC = "SB3 DummyVecEnv", "SB3 SubprocVecEnv"
ENVPOOL, ALE = "EnvPool", "ale-py's AtariVectorEnv"
PARALLEL, POOL = "TorchRL ParallelEnv", "TorchRL AsyncEnvPool"
LIBRARIES = {
    SYNC: "sync",
    ASYNC: "async",
    DUMMY: "dummy",
    SUBPROC: "subproc",
    PARALLEL: "parallel",
    POOL: "pool",
}
ON_TWO_CORES = "two processes, each with half of the bare environments in a loop"
LOCKSTEP = "two such processes, which wait for one another after every step"
WAITING = "waiting for all"


class Bench:
    """The sides, and how long to measure.

    Attributes:
        ours: Our package and Gymnasium.
        second: The same once more, to use a second core.
        peer: PufferLib 3.0.0, Stable-Baselines3, TorchRL and EnvPool; None if there is none.
        seconds: Of one measurement.
        idle_s: Seconds to be idle.
    """

    def __init__(self, peer_python: str | None, seconds: float, idle_s: float) -> None:
        self.ours, self.second = Side(sys.executable, SCRIPT), Side(sys.executable, SCRIPT)
        self.peer = Side(peer_python, SCRIPT) if peer_python else None
        self.seconds, self.idle_s = seconds, idle_s

    def contestants(self, case: str, *args: Any) -> dict[str, Measure]:
        """A case that only our package and PufferLib 3.0.0 have."""
        sides = {OURS: self.ours, PUFFER: self.peer}
        return {name: functools.partial(side.ask, case, *args) for name, side in sides.items() if side}

    def stepped(
        self, kind: str, num_envs: int, workers: int, others: list[str], turns: int = 0, clock: str = "perf_counter"
    ) -> dict[str, Measure]:
        """One step of a vector environment, ours and others'."""
        rest = (self.seconds, turns, clock)
        calls = self.contestants("step", "puffer", kind, num_envs, workers, *rest)
        for name in others:
            side = self.peer if name.startswith(("SB3", "TorchRL")) else self.ours
            if side:
                calls[name] = functools.partial(side.ask, "step", LIBRARIES[name], kind, num_envs, 0, *rest)
        return calls

    def close(self) -> None:
        """End all sides."""
        for side in (self.ours, self.second, self.peer):
            if side:
                side.close()


def rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Every row, and how its contestants are measured."""
    yield from sync_rows(bench)
    yield from env_rows(bench)
    yield from games_rows(bench)
    yield from native_rows(bench)
    yield from emulation_rows(bench)
    yield from process_rows(bench)


def sync_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Time synchronous steps of environments that do nothing, or a known amount of work."""
    limit = "as many processes that only hand a byte over"
    for workers, most in ((1, None), (2, 6.0), (4, 10.0), (8, 20.0)):
        goals, torchrl = ({ASYNC: 10, POOL: 5}, [PARALLEL, POOL]) if workers == 2 else ({}, [])
        row = Row(f"sync step, empty env, workers: {workers}", "us", most, goals, limit)
        calls = bench.stepped("empty", workers, workers, [ASYNC, SUBPROC, *torchrl])
        yield row, {**calls, LIMIT: functools.partial(bench.ours.ask, "handover", workers, bench.seconds)}
    row = Row("empty env, workers: 4, batches of the first 2, a step of all", "us", ratios={POOL: 5})
    calls = {OURS: functools.partial(bench.ours.ask, "step_of_first", "empty", 4, 4, 2, bench.seconds)}
    if bench.peer:
        calls[POOL] = functools.partial(bench.peer.ask, "pool_of_first", "empty", 4, 2, bench.seconds)
    yield row, calls
    turns = bench.ours.ask("turns", 20e-6)
    row = Row("sync step, 20 us of work each, workers: 2", "us", 28, limit="two such processes, with the work")
    calls = bench.stepped("empty", 2, 2, [ASYNC, SUBPROC], turns)
    calls["the work alone"] = functools.partial(bench.ours.ask, "step", "raw", "empty", 1, 0, bench.seconds, turns)
    yield row, {**calls, LIMIT: functools.partial(bench.ours.ask, "handover", 2, bench.seconds, turns)}
    row = Row("worker loop, 64 empty envs, of each", "us", 0.12, {SYNC: 8}, "a Python loop that only calls step")
    calls = bench.stepped("empty", 64, 0, [SYNC, DUMMY], clock="thread_time")
    calls[LIMIT] = lambda: bench.ours.ask("step", "raw", "empty", 64, 0, bench.seconds, 0, "thread_time")
    yield row, {name: functools.partial(per, 64, call) for name, call in calls.items()}


def env_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Real environments on two cores."""
    row = Row("CartPole-v1, 128 envs, 2 workers", "us", ratios={SERIAL: 1.7, SYNC: 2.5}, limit=ON_TWO_CORES)
    calls = bench.stepped("cartpole", 128, 2, [SYNC, DUMMY])
    calls[SERIAL] = lambda: bench.ours.ask("step", "puffer", "cartpole", 128, 0, bench.seconds)
    yield row, {**calls, LIMIT: lambda: on_two_cores(bench, "step", "raw", "cartpole", 64, 0, bench.seconds)}
    yield from atari_rows(bench)


def atari_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """A game whose reset takes as long as twenty steps, so that waiting for all costs more than the waiting calls."""
    raw, envs, seconds = "bare environments, one process", 8, 10 * bench.seconds  # for as many resets in each
    alone: dict[str, Measure] = {raw: functools.partial(bench.ours.ask, "step", "raw", "atari", envs, 0, seconds)}
    all_of_them: Measure = functools.partial(bench.ours.ask, "step", "puffer", "atari", envs, 2, seconds)
    row = Row("Atari breakout, 8 envs, 2 workers", "us", ratios={raw: 1.9}, limit=LOCKSTEP)
    peers = {
        name: functools.partial(bench.ours.ask, "step", LIBRARIES[name], "atari", envs, 0, seconds)
        for name in (SYNC, ASYNC)
    }
    limit = functools.partial(bench.ours.ask, "lockstep", "atari", envs, 2, seconds)
    yield row, {OURS: all_of_them, **alone, **peers, LIMIT: limit}
    row = Row("Atari breakout, 8 envs, 2 workers, batches of the first 4", "us", ratios={raw: 1.9}, limit=ON_TWO_CORES)
    ours: Measure = functools.partial(bench.ours.ask, "step_of_first", "atari", envs, 2, envs // 2, seconds)
    limit = functools.partial(on_two_cores, bench, "step", "raw", "atari", envs // 2, 0, seconds)
    yield row, {OURS: ours, **alone, WAITING: all_of_them, LIMIT: limit}


def games_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Batches of Atari games beside other libraries', which step them in C++: CPU time, whatever the threads."""
    for game in ("pong", "breakout"):
        for num_envs in (8, 64):
            row = Row(f"Atari {game}, {num_envs} games, a step of one, of CPU", "us", ratios={ALE: 1.15, ENVPOOL: 1.15})
            sides = {OURS: (bench.ours, "ours"), ALE: (bench.ours, "ale"), ENVPOOL: (bench.peer, "envpool")}
            rest = (game, num_envs, 5 * bench.seconds)
            yield (
                row,
                {
                    name: functools.partial(side.ask, "atari_games", library, *rest)
                    for name, (side, library) in sides.items()
                    if side
                },
            )


def native_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Environments in C, and the threads that share their steps."""
    row = Row("native pool: call of 1 game of squared", "us", 0.3)
    yield row, bench.contestants("native", "squared", 1, 1, bench.seconds, "thread_time")
    row = Row("native pool: dispatch to a helper", "us", 0.7)
    yield row, {OURS: functools.partial(bench.ours.ask, "dispatch", bench.seconds)}
    games = bench.ours.ask("games_for", "cartpole", 50)
    one, limit = "one thread", "two processes, each with half of the games"
    row = Row(f"native pool: 2 threads, {games} games of cartpole", "us", ratios={one: 1.8}, limit=limit)
    calls: dict[str, Measure] = {
        OURS: functools.partial(bench.ours.ask, "native", "cartpole", games, 2, bench.seconds),
        one: functools.partial(bench.ours.ask, "native", "cartpole", games, 1, bench.seconds),
        LIMIT: functools.partial(on_two_cores, bench, "native", "cartpole", games // 2, 1, bench.seconds),
    }
    yield row, calls
    for what, clock in (("", "perf_counter"), (", of CPU", "process_time")):
        row = Row(f"CartPole in C, a step of one of 1024 games, 2 threads{what}", "us")
        calls = {OURS: functools.partial(bench.ours.ask, "native", "cartpole", 1024, 2, bench.seconds, clock)}
        if bench.peer:
            calls[ENVPOOL] = functools.partial(bench.peer.ask, "envpool", 1024, 2, bench.seconds, clock)
        yield row, {name: functools.partial(per, 1024, call) for name, call in calls.items()}


def emulation_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Time the flattening of spaces, and its inverse."""
    for space, name, most in (
        ("box", "Box", 0.1),
        ("dict5", "5-leaf dict", 0.15),
        ("nethack", "10 leaves, 13 KB", 0.4),
    ):
        row = Row(f"emulation adds to a step: {name}", "us", most, {PUFFER: 8})
        yield row, bench.contestants("emulation", space, bench.seconds)
    row = Row("PettingZoo, 128 agents, empty env, a step", "us", 25)
    yield row, bench.contestants("crowd", 128, bench.seconds)
    row = Row("nativize_tensor of 5 leaves, buffer seen before", "us", 0.5)
    yield row, bench.contestants("nativize", "dict5", 64, bench.seconds)


def process_rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Measure the CPU time and the memory of idle workers."""
    yield Row("CPU of an idle vectorized env, per 10 s", "s", 0.05), bench.contestants("idle", "puffer", bench.idle_s)
    row = Row("memory of a worker that is not shared", "MiB", 8)
    others: dict[str, Measure] = {ASYNC: lambda: bench.ours.ask("worker_memory", "async")}
    yield row, {**bench.contestants("worker_memory", "puffer"), **others}
    row = Row("start of one more worker", "ms", 80)
    others = {ASYNC: lambda: bench.ours.ask("start", "async")}
    yield row, {**bench.contestants("start", "puffer"), **others}
    yield Row("import pufferlib, without torch", "s", 0.2), bench.contestants("import_time")


def per(number: int, call: Measure) -> float | None:
    """The share of one in what ``number`` cost."""
    figure = call()
    return None if figure is None else figure / number


def on_two_cores(bench: Bench, case: str, *args: Any) -> float | None:
    """The slower of two processes that measure the same at the same time."""
    sides = (bench.ours, bench.second)
    for side in sides:
        side.post(case, *args)
    figures = [side.answer() for side in sides]
    return None if None in figures else max(figures)


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    command = parser(__doc__, "engine", minutes=4, rounds=11, seconds=0.2)
    command.add_argument("--peer-python", help="interpreter of an environment that has PufferLib 3.0.0")
    options = command.parse_args()
    rounds, seconds, idle_s = (2, 0.03, 0.5) if options.quick else (options.rounds, options.seconds, 4.0)
    bench = Bench(options.peer_python, seconds, idle_s)
    run(options, rounds, rows(bench), bench, seconds=seconds, idle_s=idle_s)


if __name__ == "__main__":
    main()
