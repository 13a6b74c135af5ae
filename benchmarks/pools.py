"""Speed of our environment pools compared with EnvPool, through the same API.

    python benchmarks/pools.py --peer-python PATH    # with EnvPool in the environment of requirements.txt
    python benchmarks/pools.py                       # ours only
    python benchmarks/pools.py --only async "one environment"
    python benchmarks/pools.py --quick               # quick check

A figure "of CPU" is the CPU time of all threads and worker processes, which other programs hardly affect. Atari has
EnvPool's defaults, except that games start with at most one no-op. The limit for Atari is the emulator of ale-py in one
process, which runs four frames without returning observations. The limit for HalfCheetah is a Python loop over
``mujoco.mj_step`` without observations or rewards, with the profile that MuJoCo's package turns on. Also writes
benchmarks/results/pools.json.
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

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import ENVPOOL, LIMIT, OURS, Row
from sides import Sides, us_per_call
from turns import Measure, main

MANY = 16384
CART = "CartPole-v1"
MINIGRID = ("MiniGrid-Empty-5x5-v0", "MiniGrid-DoorKey-8x8-v0")
BABYAI = ("BabyAI-GoToLocal-v0", "BabyAI-BossLevel-v0")
TOY_TEXT = ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v3", "Blackjack-v1")
ROBOTS = ("HalfCheetah-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5")
SUITE = ("CartpoleSwingup-v1", "CheetahRun-v1", "WalkerWalk-v1")
BOX2D = ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "CarRacing-v3")
# Tasks whose pools are measured with two threads, and as many environments as make a step long enough.
TWO_THREADS = {"HalfCheetah-v5": 64, "CheetahRun-v1": 256, "LunarLander-v3": 256, MINIGRID[1]: 8192, "Taxi-v3": 16384}
ONE_THREAD, BOUND = "one thread", "ours, copy=False"
GAMES, NUM_GAMES, ATARI_GOAL = ("Pong-v5", "Breakout-v5"), (8, 64), 1.2
Pairs = Iterator[tuple[Row, dict[str, Measure | None]]]


def rows(sides: Sides) -> Pairs:
    """Yield every row with the measurements of its contestants."""
    seconds = sides.seconds
    for envs, most, least in ((1, 1.2, 20), (64, None, 30), (256, None, 30), (1024, None, 30)):
        many = "one environment" if envs == 1 else f"{envs} environments, 1 thread"
        row = Row(f"{CART}, {many}, a call, of CPU", "us", most, {ENVPOOL: least})
        bound = sides.ask("step_us", "ours", CART, envs, envs, 1, "process", seconds, False)
        yield row, {**both(sides, CART, envs, envs, 1, "process", seconds), BOUND: bound}
    for envs in (64, 256, 1024):
        what = f"{CART}, async, batches of {envs // 2} of {envs}, 1 thread, a call, of CPU"
        yield Row(what, "us", ratios={ENVPOOL: 20}), both(sides, CART, envs, envs // 2, 1, "process", seconds)
    for task_id in (*TOY_TEXT, *MINIGRID, *BABYAI):
        goal = 20 if task_id in TOY_TEXT else 50
        row = Row(f"{task_id}, 16 environments, 1 thread, a call, of CPU", "us", ratios={ENVPOOL: goal})
        yield row, both(sides, task_id, 16, 16, 1, "process", seconds)
    for task_id in (*ROBOTS, *SUITE, *BOX2D):
        row = Row(f"{task_id}, 16 environments, 1 thread, a call, of CPU", "us", ratios={ENVPOOL: 1})
        calls = both(sides, task_id, 16, 16, 1, "process", seconds)
        if task_id == ROBOTS[0]:  # whose episodes never end early, so that a loop needs no resets
            row.limit, row.ratios[LIMIT] = "mj_step alone", 0.95
            calls[LIMIT] = sides.ask("bare_steps_us", 16, seconds)
        yield row, calls
    for task_id, envs in TWO_THREADS.items():
        row = Row(f"{task_id}, {envs} environments, 2 threads, a call", "us", ratios={ONE_THREAD: 1.8})
        calls = both(sides, task_id, envs, envs, 2, "wall", seconds)
        yield row, {**calls, ONE_THREAD: sides.ask("step_us", "ours", task_id, envs, envs, 1, "wall", seconds)}
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
    """Return the measurements of a case for both libraries."""
    return {OURS: sides.ask("step_us", "ours", *case), ENVPOOL: sides.ask_peer("step_us", "envpool", *case)}


def step_us(
    library: str, task_id: str, num_envs: int, batch_size: int, threads: int, clock: str, seconds: float,
    copy: bool = True,
) -> float:  # fmt: skip
    """Return the time in microseconds of a step of all environments, or of the first ``batch_size`` that are ready.

    The clock is "wall" for wall time, "process" for the CPU time of this process, or "workers" for the CPU time of this
    process and its worker processes.
    """
    env = open_pool(library, task_id, num_envs, batch_size, threads, copy)
    actions = itertools.cycle(random_actions(env.action_space, batch_size))
    if batch_size == num_envs:
        return us_per_call(lambda: env.step(next(actions)), seconds, clock_of(env, clock))
    env_ids = env.recv()[4]["env_id"]

    def step() -> None:
        nonlocal env_ids
        env_ids = env.step(next(actions), env_ids)[4]["env_id"]

    figure = us_per_call(step, seconds, clock_of(env, clock))
    env.send(next(actions), env_ids)  # so that all environments are in flight for the next measurement
    return figure


def random_actions(space: Any, rows: int) -> list[Any]:
    """Return the random actions of 64 steps."""
    rng = np.random.default_rng(0)
    if hasattr(space, "n"):
        return [*rng.integers(0, int(space.n), (64, rows)).astype(np.int32)]
    return [*rng.uniform(space.low, space.high, (64, rows, *space.shape)).astype(space.dtype)]


@functools.cache  # an idle pool costs nothing
def open_pool(library: str, task_id: str, num_envs: int, batch_size: int, threads: int, copy: bool) -> Any:
    """Create a pool and reset its environments."""
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
    """Return the function that reads a clock."""
    if name == "wall":
        return time.perf_counter
    pids = getattr(getattr(env, "pool", None), "worker_pids", []) if name == "workers" else []
    # On Linux, (~pid << 3) | 2 is the CPU-time clock of a process, like the result of clock_getcpuclockid.
    return lambda: time.process_time() + sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def bare_steps_us(num_envs: int, seconds: float) -> float:
    """Return the CPU time in microseconds of an action of all robots: five physics steps each."""
    model, robots = bare_robots(num_envs)
    actions = itertools.cycle(np.random.default_rng(0).uniform(-1, 1, (64, num_envs, model.nu)))
    step = importlib.import_module("mujoco").mj_step

    def steps() -> None:
        for robot, action in zip(robots, next(actions), strict=True):
            robot.ctrl[:] = action
            step(model, robot, 5)

    return us_per_call(steps, seconds, time.process_time)


@functools.cache
def bare_robots(num_envs: int) -> tuple[Any, list[Any]]:
    """Return the model of HalfCheetah, and data structures of MuJoCo."""
    import gymnasium
    import mujoco

    model = gymnasium.make("HalfCheetah-v5").unwrapped.model  # type: ignore[attr-defined]
    return model, [mujoco.MjData(model) for _ in range(num_envs)]


def emulators(task_id: str, num_envs: int, batch_size: int, seconds: float) -> float:
    """Return the CPU time in microseconds of four frames of ``batch_size`` emulators out of ``num_envs``."""
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
    """Create emulators and load a game in each."""
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
    main(__doc__, __file__, rows, (step_us, bare_steps_us, emulators), minutes=8, rounds=11, seconds=0.3)
