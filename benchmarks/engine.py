"""Speed of the engine, compared with its goals and with other libraries.

    python benchmarks/engine.py                            # ours, Gymnasium, ale-py, and Stable-Baselines3 if installed
    python benchmarks/engine.py --peer-python PATH         # also the peers in benchmarks/requirements.txt
    python benchmarks/engine.py --only CartPole nativize   # some rows
    python benchmarks/engine.py --quick                    # quick check

The contestants are measured in turns and in separate processes. All figures are medians over the rounds, and a ratio is
the median of the ratios of each round. The limit is measured in the same run. It is the cost without any layer. A row
is printed as soon as it is measured. It has as many rounds as its share of the time allows, and at least 3. Also writes
benchmarks/results/engine.json.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from contestants import CASES
from report import (
    ALE,
    ASYNC,
    BARE_LOOP,
    DUMMY,
    ENVPOOL,
    LIMIT,
    OURS,
    PARALLEL,
    POOL,
    PUFFER,
    SERIAL,
    SUBPROC,
    SYNC,
    Row,
)
from sides import Sides
from turns import Measure, main

LIBRARIES = {SYNC: "sync", ASYNC: "async", DUMMY: "dummy", SUBPROC: "subproc", PARALLEL: "parallel", POOL: "pool"}
ON_TWO_CORES = "two processes, each with half of the bare environments in a loop"
LOCKSTEP = "two such processes, which wait for one another after every step"
WAITING = "waiting for all"
Pairs = Iterator[tuple[Row, dict[str, Measure | None]]]


def rows(sides: Sides) -> Pairs:
    """Yield every row with the measurements of its contestants."""
    yield from sync_rows(sides)
    yield from env_rows(sides)
    yield from games_rows(sides)
    yield from native_rows(sides)
    yield from emulation_rows(sides)
    yield from process_rows(sides)


def beside_puffer(sides: Sides, case: str, *args: Any) -> dict[str, Measure | None]:
    """Return the measurements of a case for our package and PufferLib 3.0.0."""
    return {OURS: sides.ask(case, *args), PUFFER: sides.ask_peer(case, *args)}


def stepped(
    sides: Sides, kind: str, num_envs: int, workers: int, others: list[str], turns: int = 0, clock: str = "perf_counter"
) -> dict[str, Measure | None]:
    """Return the measurements of one step of a vector environment, for ours and other libraries."""
    rest = (sides.seconds, turns, clock)
    calls = beside_puffer(sides, "step", "puffer", kind, num_envs, workers, *rest)
    for name in others:
        ask = sides.ask_peer if name.startswith(("SB3", "TorchRL")) else sides.ask
        calls[name] = ask("step", LIBRARIES[name], kind, num_envs, 0, *rest)
    return calls


def sync_rows(sides: Sides) -> Pairs:
    """Yield rows of synchronous steps of environments that do nothing or a known amount of work."""
    limit, seconds = "as many processes that only hand a byte over", sides.seconds
    for workers, most in ((1, None), (2, 6.0), (4, 10.0), (8, 20.0)):
        goals, torchrl = ({ASYNC: 10, POOL: 5}, [PARALLEL, POOL]) if workers == 2 else ({}, [])
        row = Row(f"sync step, empty env, workers: {workers}", "us", most, goals, limit)
        calls = stepped(sides, "empty", workers, workers, [ASYNC, SUBPROC, *torchrl])
        yield row, {**calls, LIMIT: sides.ask("handover", workers, seconds)}
    row = Row("empty env, workers: 4, batches of the first 2, a step of all", "us", ratios={POOL: 5})
    pool = sides.ask_peer("pool_of_first", "empty", 4, 2, seconds)
    yield row, {OURS: sides.ask("step_of_first", "empty", 4, 4, 2, seconds), POOL: pool}
    turns = sides.ask("turns", 20e-6)()
    row = Row("sync step, 20 us of work each, workers: 2", "us", 28, limit="two such processes, with the work")
    calls = stepped(sides, "empty", 2, 2, [ASYNC, SUBPROC], turns)
    calls["the work alone"] = sides.ask("step", "raw", "empty", 1, 0, seconds, turns)
    yield row, {**calls, LIMIT: sides.ask("handover", 2, seconds, turns)}
    row = Row("worker loop, 64 empty envs, of each", "us", 0.12, {SYNC: 8}, "a Python loop that only calls step")
    calls = stepped(sides, "empty", 64, 0, [SYNC, DUMMY], clock="thread_time")
    calls[LIMIT] = sides.ask("step", "raw", "empty", 64, 0, seconds, 0, "thread_time")
    yield row, {name: per(64, call) for name, call in calls.items()}


def env_rows(sides: Sides) -> Pairs:
    """Yield rows of real environments on two cores."""
    row = Row("CartPole-v1, 128 envs, 2 workers", "us", ratios={SERIAL: 1.7, SYNC: 2.5}, limit=ON_TWO_CORES)
    calls = stepped(sides, "cartpole", 128, 2, [SYNC, DUMMY])
    calls[SERIAL] = sides.ask("step", "puffer", "cartpole", 128, 0, sides.seconds)
    yield row, {**calls, LIMIT: sides.both("step", "raw", "cartpole", 64, 0, sides.seconds)}
    yield from atari_rows(sides)


def atari_rows(sides: Sides) -> Pairs:
    """Yield rows of a game whose reset takes as long as twenty steps, so that waiting costs more than the calls."""
    envs, seconds = 8, 10 * sides.seconds  # so that each measurement has about the same number of resets
    alone = {BARE_LOOP: sides.ask("step", "raw", "atari", envs, 0, seconds)}
    all_of_them = sides.ask("step", "puffer", "atari", envs, 2, seconds)
    row = Row("Atari breakout, 8 envs, 2 workers", "us", ratios={BARE_LOOP: 1.9}, limit=LOCKSTEP)
    peers = {name: sides.ask("step", LIBRARIES[name], "atari", envs, 0, seconds) for name in (SYNC, ASYNC)}
    yield row, {OURS: all_of_them, **alone, **peers, LIMIT: sides.ask("lockstep", "atari", envs, 2, seconds)}
    what = "Atari breakout, 8 envs, 2 workers, batches of the first 4"
    row = Row(what, "us", ratios={BARE_LOOP: 1.9}, limit=ON_TWO_CORES)
    ours = sides.ask("step_of_first", "atari", envs, 2, envs // 2, seconds)
    limit = sides.both("step", "raw", "atari", envs // 2, 0, seconds)
    yield row, {OURS: ours, **alone, WAITING: all_of_them, LIMIT: limit}


def games_rows(sides: Sides) -> Pairs:
    """Yield rows of batches of Atari games, compared with C++ implementations by CPU time over all threads."""
    for game in ("pong", "breakout"):
        for num_envs in (8, 64):
            row = Row(f"Atari {game}, {num_envs} games, a step of one, of CPU", "us", ratios={ALE: 1.15, ENVPOOL: 1.15})
            contestants = {OURS: (sides.ask, "ours"), ALE: (sides.ask, "ale"), ENVPOOL: (sides.ask_peer, "envpool")}
            case = (game, num_envs, 5 * sides.seconds)
            yield row, {name: ask("atari_games", library, *case) for name, (ask, library) in contestants.items()}


def native_rows(sides: Sides) -> Pairs:
    """Yield rows of environments in C with one and two threads."""
    seconds = sides.seconds
    row = Row("native pool: call of 1 game of squared", "us", 0.3)
    yield row, beside_puffer(sides, "native", "squared", 1, 1, seconds, "thread_time")
    row = Row("native pool: dispatch to a helper", "us", 0.7)
    yield row, {OURS: sides.ask("dispatch", seconds)}
    games = sides.ask("games_for", "cartpole", 50)()
    one, limit = "one thread", "two processes, each with half of the games"
    what = "native pool: 2 threads, as many games of cartpole as one thread steps in 50 us"
    row = Row(what, "us", ratios={one: 1.8}, limit=limit, notes={"games": games})
    halves = sides.both("native", "cartpole", games // 2, 1, seconds)
    ours, alone = (sides.ask("native", "cartpole", games, threads, seconds) for threads in (2, 1))
    yield row, {OURS: ours, one: alone, LIMIT: halves}
    for what, clock in (("", "perf_counter"), (", of CPU", "process_time")):
        row = Row(f"CartPole in C, a step of one of 1024 games, 2 threads{what}", "us")
        ours = sides.ask("native", "cartpole", 1024, 2, seconds, clock)
        yield row, {OURS: per(1024, ours), ENVPOOL: per(1024, sides.ask_peer("envpool", 1024, 2, seconds, clock))}


def emulation_rows(sides: Sides) -> Pairs:
    """Yield rows of emulation and its inverse."""
    for space, name, alone_us, batch_us in (
        ("box", "Box", 0.15, 0.1),
        ("dict5", "5-leaf dict", None, 0.15),
        ("nethack", "10 leaves, 13 KB", 0.4, 0.4),
    ):
        peer = sides.ask_peer("emulation", space, False, sides.seconds)
        for where, is_in_batch, most in (("in a batch", True, batch_us), ("alone", False, alone_us)):
            row = Row(f"emulation adds to a step {where}: {name}", "us", most, {PUFFER: 8} if is_in_batch else {})
            yield row, {OURS: sides.ask("emulation", space, is_in_batch, sides.seconds), PUFFER: peer}
    row = Row("PettingZoo, 128 agents, empty env, a step", "us", 25)
    yield row, beside_puffer(sides, "crowd", 128, sides.seconds)
    row = Row("nativize_tensor of 5 leaves, buffer seen before", "us", 0.5)
    yield row, beside_puffer(sides, "nativize", "dict5", 64, sides.seconds)


def process_rows(sides: Sides) -> Pairs:
    """Yield rows of the CPU time and memory of idle workers, and of the time to start."""
    row = Row("CPU of an idle vectorized env, per 10 s", "s", 0.05)
    yield row, beside_puffer(sides, "idle", "puffer", 20 * sides.seconds)
    row = Row("memory of a worker that is not shared", "MiB", 8)
    yield row, {**beside_puffer(sides, "worker_memory", "puffer"), ASYNC: sides.ask("worker_memory", "async")}
    row = Row("start of one more worker", "ms", 80)
    yield row, {**beside_puffer(sides, "start", "puffer"), ASYNC: sides.ask("start", "async")}
    yield Row("import pufferlib, without torch", "s", 0.2), beside_puffer(sides, "import_time")


def per(number: int, call: Measure | None) -> Measure | None:
    """Return a function that measures ``call`` and divides the result by ``number``."""

    def measure() -> float | None:
        figure = None if call is None else call()
        return None if figure is None else figure / number

    return measure if call else None


if __name__ == "__main__":
    main(__doc__, __file__, rows, CASES, minutes=4, rounds=11, seconds=0.2)
