"""Our pools of environments beside EnvPool, through the same calls: one table of goal, measured, ratios and limit.

    python benchmarks/pools.py --peer-python PATH    # beside the wheel, in the environment of requirements.txt
    python benchmarks/pools.py                       # ours alone
    python benchmarks/pools.py --only async "one environment"
    python benchmarks/pools.py --quick               # to see that it works

A figure "of CPU" is the time of all threads of the process and of its worker processes together, which other programs
on the machine hardly change. Atari has EnvPool's defaults, but for starts of one frame; its limit is the emulator of
ale-py alone, in one process: four frames, which nobody looks at. Also writes benchmarks/results/pools.json.
"""

import functools
import importlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import ENVPOOL, LIMIT, OURS, Row
from sides import Sides, us_per_call
from turns import Measure, main

MANY = 16384
CART = "CartPole-v1"
ONE_THREAD, BOUND = "one thread", "ours, copy=False"
GAMES, NUM_GAMES, ATARI_GOAL = ("Pong-v5", "Breakout-v5"), (8, 64), 1.2
Pairs = Iterator[tuple[Row, dict[str, Measure | None]]]


def rows(sides: Sides) -> Pairs:
    """Yield every row, and how its contestants are measured."""
    seconds = sides.seconds
    for envs, most, least in ((1, 1.2, 20), (64, None, 30), (256, None, 30), (1024, None, 30)):
        many = "one environment" if envs == 1 else f"{envs} environments, 1 thread"
        row = Row(f"{CART}, {many}, a call, of CPU", "us", most, {ENVPOOL: least})
        bound = sides.ask("step_us", "ours", CART, envs, envs, 1, "process", seconds, False)
        yield row, {**both(sides, CART, envs, envs, 1, "process", seconds), BOUND: bound}
    for envs in (64, 256, 1024):
        what = f"{CART}, async, batches of {envs // 2} of {envs}, 1 thread, a call, of CPU"
        yield Row(what, "us", ratios={ENVPOOL: 20}), both(sides, CART, envs, envs // 2, 1, "process", seconds)
    limit = "two processes, each with half of the environments"
    row = Row(f"{CART}, {MANY} environments, 2 threads, a call", "us", ratios={ONE_THREAD: 1.7}, limit=limit)
    yield (
        row,
        {
            **both(sides, CART, MANY, MANY, 2, "wall", seconds),
            ONE_THREAD: sides.ask("step_us", "ours", CART, MANY, MANY, 1, "wall", seconds),
            LIMIT: sides.both("step_us", "ours", CART, MANY // 2, MANY // 2, 1, "wall", seconds),
        },
    )
    for task_id, envs, halves in itertools.product(GAMES, NUM_GAMES, (False, True)):
        batch = envs // 2 if halves else envs
        how = f"batches of the first {batch}" if halves else "all at once"
        what = f"{task_id}, {envs} environments, {how}: a call, of CPU"
        row = Row(what, "us", ratios={ENVPOOL: ATARI_GOAL}, limit="the emulator alone")
        calls = both(sides, task_id, envs, batch, 1, "workers", 3 * seconds)
        yield row, {**calls, LIMIT: sides.ask("emulators", task_id, envs, batch, 3 * seconds)}


def both(sides: Sides, *case: Any) -> dict[str, Measure | None]:
    """Return the contestants of a case that both libraries have."""
    return {OURS: sides.ask("step_us", "ours", *case), ENVPOOL: sides.ask_peer("step_us", "envpool", *case)}


def step_us(
    library: str, task_id: str, num_envs: int, batch_size: int, threads: int, clock: str, seconds: float,
    copy: bool = True,
) -> float:  # fmt: skip
    """Return the microseconds of a call: a step of all environments, or of the first ``batch_size`` that finish.

    The clock "wall" is the time that passes, "process" the CPU time of this process, "workers" that of its worker
    processes too.
    """
    env = begun(library, task_id, num_envs, batch_size, threads, copy)
    drawn = np.random.default_rng(0).integers(0, int(env.action_space.n), (64, batch_size)).astype(np.int32)
    actions = itertools.cycle([*drawn])
    if batch_size == num_envs:
        return us_per_call(lambda: env.step(next(actions)), seconds, clock_of(env, clock))
    came = env.recv()[4]["env_id"]

    def step() -> None:
        nonlocal came
        came = env.step(next(actions), came)[4]["env_id"]

    figure = us_per_call(step, seconds, clock_of(env, clock))
    env.send(next(actions), came)  # so that the next measurement finds all of them in flight
    return figure


@functools.cache  # a pool that waits costs nothing
def begun(library: str, task_id: str, num_envs: int, batch_size: int, threads: int, copy: bool) -> Any:
    """Return a pool whose environments were reset."""
    options = {"num_envs": num_envs, "batch_size": batch_size, "num_threads": threads, "seed": 0}
    if task_id in GAMES:
        options["noop_max"] = 1
    if library == "ours":
        options["copy"] = copy
    module = importlib.import_module("pufferlib.envpool" if library == "ours" else library)
    env = module.make(task_id, env_type="gymnasium", **options)
    if batch_size == num_envs:
        env.reset()
    else:
        env.async_reset()
    return env


def clock_of(env: Any, name: str) -> Callable[[], float]:
    """Return a clock."""
    if name == "wall":
        return time.perf_counter
    pids = getattr(getattr(env, "pool", None), "worker_pids", []) if name == "workers" else []
    # (~pid << 3) | 2 is Linux's clock of the CPU time of a process, as clock_getcpuclockid makes it.
    return lambda: time.process_time() + sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def emulators(task_id: str, num_envs: int, batch_size: int, seconds: float) -> float:
    """Return the microseconds of CPU of four frames of ``batch_size`` emulators, of ``num_envs`` that take turns."""
    games = emulators_of(task_id, num_envs)
    actions = games[0].getMinimalActionSet()
    chosen = itertools.cycle(np.random.default_rng(0).choice(actions, 4096).tolist())
    turns = itertools.cycle(games)

    def step() -> None:
        for game, action in zip(itertools.islice(turns, batch_size), chosen, strict=False):
            for _ in range(4):
                game.act(action)
            if game.game_over():
                game.reset_game()

    return us_per_call(step, seconds, time.process_time)


@functools.cache
def emulators_of(task_id: str, num_envs: int) -> list[Any]:
    """Return emulators that have loaded a game."""
    import ale_py
    from ale_py import roms

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    games = [ale_py.ALEInterface() for _ in range(num_envs)]
    for seed, game in enumerate(games):
        game.setFloat("repeat_action_probability", 0.0)
        game.setInt("random_seed", seed)
        game.loadROM(roms.get_rom_path(task_id.removesuffix("-v5").lower()))
    return games


if __name__ == "__main__":
    main(__doc__, __file__, rows, (step_us, emulators), minutes=6, rounds=11, seconds=0.3)
