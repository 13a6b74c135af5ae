"""Atari through EnvPool's interface, ours beside the wheel: one table of goal, measured and ratios.

    python benchmarks/envpool_atari.py --peer-python PATH    # beside the wheel, in the environment of requirements.txt
    python benchmarks/envpool_atari.py                       # ours alone
    python benchmarks/envpool_atari.py --quick               # to see that it works

Figures are CPU time, of all threads and of the worker processes together, for one environment; sides take turns, in
processes of their own. Both have EnvPool's defaults, but for starts of one frame. The limit is the emulator of ale-py
alone, in one process: four frames, which nobody looks at. Also writes benchmarks/results/envpool_atari.json.
"""

import functools
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import sides

HERE = Path(__file__).resolve().parent
GAMES = ("Pong-v5", "Breakout-v5")
NUM_ENVS = (8, 64)
GOAL = 1.2  # times the wheel's


def atari_pool(library: str, task_id: str, num_envs: int, batch_size: int, seconds: float) -> float:
    """Microseconds of CPU that a step of one environment takes; batches are the first that finish."""
    env = _begun(library, task_id, num_envs, batch_size)
    rows = np.random.default_rng(0).integers(0, int(env.action_space.n), (64, batch_size)).astype(np.int32)
    actions = itertools.cycle([*rows])
    came = None if batch_size == num_envs else env.recv()[4]["env_id"]

    def step() -> None:
        nonlocal came
        came = env.step(next(actions), came)[4]["env_id"]
        came = None if batch_size == num_envs else came

    figure = sides.us_per_call(step, seconds, functools.partial(_cpu_seconds, env)) / batch_size
    if came is not None:
        env.send(next(actions), came)  # so that the next measurement finds all of them there
    return figure


@functools.cache  # 64 games take seconds to load, and nothing while they wait
def _begun(library: str, task_id: str, num_envs: int, batch_size: int) -> Any:
    options = {"num_envs": num_envs, "batch_size": batch_size, "num_threads": 1, "seed": 0, "noop_max": 1}
    if library == "ours":
        from pufferlib import envpool
    else:
        sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE]  # which has an envpool.py
        import envpool
    env = envpool.make(task_id, env_type="gymnasium", **options)
    if batch_size == num_envs:
        env.reset()
    else:
        env.async_reset()
    return env


def emulators(task_id: str, num_envs: int, batch_size: int, seconds: float) -> float:
    """Microseconds of CPU that four frames of an emulator take, of ``num_envs`` that take turns."""
    games = _emulators(task_id, num_envs)
    actions = games[0].getMinimalActionSet()
    chosen = itertools.cycle(np.random.default_rng(0).choice(actions, 4096).tolist())
    turns = itertools.cycle(games)

    def step() -> None:
        for game, action in zip(itertools.islice(turns, batch_size), chosen, strict=False):
            for _ in range(4):
                game.act(action)
            if game.game_over():
                game.reset_game()

    return sides.us_per_call(step, seconds, time.process_time) / batch_size


@functools.cache
def _emulators(task_id: str, num_envs: int) -> list[Any]:
    import ale_py
    from ale_py import roms

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    games = [ale_py.ALEInterface() for _ in range(num_envs)]
    for seed, game in enumerate(games):
        game.setFloat("repeat_action_probability", 0.0)
        game.setInt("random_seed", seed)
        game.loadROM(roms.get_rom_path(task_id.removesuffix("-v5").lower()))
    return games


def _cpu_seconds(env: Any) -> float:
    """CPU time of this process and of the workers of a pool."""
    pids = getattr(getattr(env, "pool", None), "worker_pids", [])
    return time.process_time() + sum(time.clock_gettime(_clock_of(pid)) for pid in pids)


def _clock_of(pid: int) -> int:
    """Linux's clock of the CPU time of a process, as ``clock_getcpuclockid`` makes it."""
    return (~pid << 3) | 2


def rows(bench: Any) -> Iterator[Any]:
    """Every row, and how its contestants are measured."""
    from engine import ENVPOOL
    from report import LIMIT, OURS, Row

    sides_of = {OURS: ("ours", bench.ours), ENVPOOL: ("envpool", bench.peer)}
    for task_id, num_envs, halves in itertools.product(GAMES, NUM_ENVS, (False, True)):
        batch_size = num_envs // 2 if halves else num_envs
        how = f"batches of the first {batch_size}" if halves else "all at once"
        what = f"{task_id}, {num_envs} environments, {how}: a step of one, of CPU"
        row = Row(what, "us", ratios={ENVPOOL: GOAL}, limit="the emulator alone")
        case = (task_id, num_envs, batch_size, bench.seconds)
        pools = {
            name: functools.partial(side.ask, "atari_pool", library, *case)
            for name, (library, side) in sides_of.items()
            if side
        }
        yield row, {**pools, LIMIT: functools.partial(bench.ours.ask, "emulators", *case)}


class Bench:
    """The sides: ours, and EnvPool's, which is None where its Python is not named."""

    def __init__(self, seconds: float, peer_python: str | None) -> None:
        self.seconds = seconds
        self.ours = sides.Side(sys.executable, __file__)
        self.peer = sides.Side(peer_python, __file__) if peer_python else None

    def close(self) -> None:
        """End all sides."""
        for side in (self.ours, self.peer):
            if side:
                side.close()


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    from turns import parser, run

    command = parser(__doc__, "envpool_atari", minutes=4, rounds=11, seconds=1.0)
    command.add_argument("--peer-python", help="interpreter of an environment that has EnvPool")
    options = command.parse_args()
    rounds, seconds = (2, 0.03) if options.quick else (options.rounds, options.seconds)
    bench = Bench(seconds, options.peer_python)
    run(options, rounds, rows(bench), bench, seconds=seconds)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        sides.serve({case.__name__: case for case in (atari_pool, emulators)})
    else:
        main()
