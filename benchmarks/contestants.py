"""Measurements of engine.py, one function per case. Each library is a contestant.

sides.py runs this file with our Python, and with a Python that has PufferLib 3.0.0. Each measurement opens and closes
its own environments, so that no idle or spinning process disturbs the next one.
"""

import functools
import importlib
import itertools
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import sides
import toys
from atari_contestants import atari_games
from torchrl_contestants import open_torchrl, pool_of_first

LAST = 255  # command that stops the processes of ``together``


class Raw:
    """Plain loop over environments that resets each one when its episode ends. The baseline without any layer."""

    def __init__(self, creators: list[Callable[[], Any]]) -> None:
        self.envs = [creator() for creator in creators]
        self.single_action_space = self.envs[0].action_space

    def reset(self, seed: int) -> None:
        """Reset all environments."""
        for index, env in enumerate(self.envs):
            env.reset(seed=seed + index)

    def step(self, actions: Any) -> None:
        """Step all environments."""
        for env, action in zip(self.envs, actions, strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()


class Sb3:
    """Vector environment of Stable-Baselines3 with the interface of the other contestants."""

    def __init__(self, vecenv: Any) -> None:
        self.single_action_space, self.close, self._vecenv = vecenv.action_space, vecenv.close, vecenv

    @classmethod
    def of(cls, library: str, creators: list[Callable[[], Any]]) -> "Sb3":
        """Create the vector environment ``library``, "dummy" or "subproc"."""
        from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

        if library == "dummy":
            return cls(DummyVecEnv(creators))
        return cls(SubprocVecEnv(creators, start_method="fork"))  # other methods import torch again: seconds

    def reset(self, seed: int) -> None:
        """Reset all environments."""
        self._vecenv.seed(seed)
        self._vecenv.reset()

    def step(self, actions: Any) -> None:
        """Step all environments."""
        self._vecenv.step(actions)


def open_vecenv(library: str, kind: str, num_envs: int, workers: int, turns: int = 0, batch: int | None = None) -> Any:
    """Create a vector environment of ``library``. "puffer" is the pufferlib package of this Python.

    With ``batch``, it steps the first ``batch`` environments that are ready. None means all.
    """
    return vecenv_of(library, functools.partial(toys.make, kind, turns), num_envs, workers, batch)


def vecenv_of(library: str, creator: Callable[[], Any], num_envs: int, workers: int, batch: int | None = None) -> Any:
    """Create a vector environment like ``open_vecenv``, from an environment creator."""
    if library == "raw":
        return Raw([creator] * num_envs)
    if library == "sync":
        return gymnasium.vector.SyncVectorEnv([creator] * num_envs)
    if library == "async":
        return gymnasium.vector.AsyncVectorEnv([creator] * num_envs)
    if library in ("dummy", "subproc"):
        return Sb3.of(library, [creator] * num_envs)
    if library in ("parallel", "pool"):
        return open_torchrl(library, creator, num_envs)
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv

    several = {"num_workers": workers, "batch_size": batch or num_envs, "overwork": True} if workers else {}
    if batch:
        several["zero_copy"] = False
    backend = pufferlib.vector.Multiprocessing if workers else pufferlib.vector.Serial
    emulated = functools.partial(GymnasiumPufferEnv, env_creator=creator)
    return pufferlib.vector.make(emulated, num_envs=num_envs, backend=backend, **several)


def step(
    library: str, kind: str, num_envs: int, workers: int, seconds: float, turns: int = 0, clock: str = "perf_counter"
) -> float:
    """Return the time of one step of all environments in microseconds, with random actions.

    The clock "thread_time" is only for contestants without workers. It does not count the time of other programs.
    """
    vecenv = open_vecenv(library, kind, num_envs, workers, turns)
    try:
        vecenv.reset(seed=0)
        actions = random_actions(vecenv, num_envs)
        rows = itertools.cycle([row.tolist() for row in actions] if library == "raw" else actions)
        return sides.us_per_call(lambda: vecenv.step(next(rows)), seconds, getattr(time, clock))
    finally:
        vecenv.close()


def step_of_first(kind: str, num_envs: int, workers: int, batch: int, seconds: float) -> float:
    """Return the time of one step of all environments in microseconds, with batches of the first ones ready."""
    vecenv = open_vecenv("puffer", kind, num_envs, workers, batch=batch)
    try:
        vecenv.reset(seed=0)
        rows = itertools.cycle(random_actions(vecenv, batch))
        return sides.us_per_call(lambda: vecenv.step(next(rows)), seconds) * num_envs / batch
    finally:
        vecenv.close()


def random_actions(vecenv: Any, num_envs: int) -> list[Any]:
    """Return random actions for 16 steps."""
    chosen = np.random.default_rng(0).integers(0, int(vecenv.single_action_space.n), (16, num_envs))
    return list(chosen.astype(np.int32))


def native(name: str, num_envs: int, threads: int, seconds: float, clock: str = "perf_counter") -> float:
    """Return the time of one step of ``num_envs`` C environments in microseconds."""
    from pufferlib import ocean

    several = {"num_threads": threads} if threads > 1 else {}
    env = ocean.env_creator(f"puffer_{name}")(num_envs=num_envs, **several)
    env.reset()
    step = functools.partial(env.step, np.zeros_like(env.actions))
    us = sides.us_per_call(step, seconds, getattr(time, clock))
    env.close()
    return us


def envpool(num_envs: int, threads: int, seconds: float, clock: str) -> float:
    """Return the time of one step of ``num_envs`` environments of EnvPool's CartPole-v1 in microseconds."""
    library = importlib.import_module("envpool")
    env = library.make("CartPole-v1", env_type="gymnasium", num_envs=num_envs, num_threads=threads, seed=0)
    env.reset()
    return sides.us_per_call(functools.partial(env.step, np.zeros(num_envs, np.int32)), seconds, getattr(time, clock))


def dispatch(seconds: float) -> float:
    """Return the cost of letting a helper thread step one of two games, in microseconds."""
    from pufferlib.ocean import env as ocean_env

    batch, added = ocean_env.OceanBatch, []
    for _ in range(5):
        alone = native("cartpole", 2, 1, seconds / 10)
        ocean_env.OceanBatch = functools.partial(batch, helper_ns=0)  # share steps of any length
        added.append(native("cartpole", 2, 2, seconds / 10) - alone)
        ocean_env.OceanBatch = batch
    return statistics.median(added)


def games_for(name: str, us: float) -> int:
    """Return the smallest power of two of games for which a step on one thread takes at least ``us`` microseconds."""
    return next(games for games in (1 << k for k in range(30)) if native(name, games, 1, 0.02, "thread_time") >= us)


def own_arrays(env: Any) -> Any:
    """Allocate buffers for one environment, like the ones it gets in a batch."""
    from pufferlib.buffers import allocate

    return allocate(env.single_observation_space, env.single_action_space, env.num_agents)


def emulation(space: str, is_in_batch: bool, seconds: float) -> float:
    """Return the time that emulation adds to a step in microseconds, as the median of alternating differences.

    A single environment returns new observation arrays. An environment in a batch writes into the arrays of the batch.
    """
    from pufferlib.emulation import GymnasiumPufferEnv

    raw = toys.Still(space)
    emulated = GymnasiumPufferEnv(env=toys.Still(space), **({"buf": own_arrays} if is_in_batch else {}))
    emulated.reset()
    added = []
    for _ in range(5):
        before, after = (
            sides.us_per_call(functools.partial(env.step, 2), seconds / 10, time.thread_time) for env in (raw, emulated)
        )
        added.append(after - before)
    return statistics.median(added)


def crowd(num_agents: int, seconds: float) -> float:
    """Return the time of one step of an emulated PettingZoo environment in microseconds."""
    from pufferlib.emulation import PettingZooPufferEnv

    env = PettingZooPufferEnv(env=_parallel_env(num_agents))
    env.reset()
    actions = np.zeros(num_agents, np.int32)
    return sides.us_per_call(functools.partial(env.step, actions), seconds, time.thread_time)


def _parallel_env(num_agents: int) -> Any:
    from pettingzoo import ParallelEnv

    return type("ParallelCrowd", (toys.Crowd, ParallelEnv), {})(num_agents)


def nativize(space: str, rows: int, seconds: float) -> float:
    """Return the time to nativize a batch whose buffer is cached, in microseconds."""
    import torch

    import pufferlib.pytorch
    from pufferlib.emulation import GymnasiumPufferEnv

    env = GymnasiumPufferEnv(env=toys.Still(space))
    env.reset()
    observations = torch.from_numpy(np.repeat(env.observations, rows, axis=0))
    dtype = pufferlib.pytorch.nativize_dtype(env.emulated)
    undo = functools.partial(pufferlib.pytorch.nativize_tensor, observations, dtype)
    return sides.us_per_call(undo, seconds, time.thread_time)


def handover(workers: int, seconds: float, turns: int = 0) -> float:
    """Return the time in microseconds to signal several processes and wait until each has run a loop of ``turns``.

    The processes exchange bytes and yield the core while they wait. This is the cost of a step without any environment,
    check or batch.
    """
    return together([functools.partial(_loop_of, turns)] * workers, seconds)


def lockstep(kind: str, num_envs: int, workers: int, seconds: float) -> float:
    """Return the time in microseconds of a step in which several processes each step a share of bare environments."""
    share = num_envs // workers
    creators = [functools.partial(toys.make, kind)] * share
    return together([functools.partial(bare, creators, seed) for seed in range(0, num_envs, share)], seconds)


def _loop_of(turns: int) -> Callable[[], None]:
    def once() -> None:
        for _ in range(turns):
            pass

    return once


def bare(creators: list[Callable[[], Any]], seed: int) -> Callable[[], None]:
    """Return a function that steps bare environments with random actions."""
    loop = Raw(creators)
    loop.reset(seed)
    rows = itertools.cycle([row.tolist() for row in random_actions(loop, len(creators))])
    return lambda: loop.step(next(rows))


def together(makers: list[Callable[[], Callable[[], None]]], seconds: float) -> float:
    """Return the time in microseconds until all processes have run their function once.

    Each process calls its maker once to get the function. A byte in shared memory tells it to run.
    """
    workers = len(makers)
    flags = memoryview(multiprocessing.RawArray("B", 128 * workers)).cast("B")
    commands, answers = range(0, 128 * workers, 128), range(64, 128 * workers, 128)  # a cache line each
    context = multiprocessing.get_context("fork")
    each = zip(commands, answers, makers, strict=True)
    processes = [context.Process(target=_run_when_told, args=(flags, *args), daemon=True) for args in each]
    numbers = itertools.cycle(range(1, LAST))

    def once() -> None:
        number = next(numbers)
        for command in commands:
            flags[command] = number
        for answer in answers:
            while flags[answer] != number:
                os.sched_yield()

    for process in processes:
        process.start()
    try:
        return sides.us_per_call(once, seconds)
    finally:
        for command in commands:
            flags[command] = LAST
        for process in processes:
            process.join()


def _run_when_told(flags: "memoryview[int]", command: int, answer: int, make: Callable[[], Callable[[], None]]) -> None:
    signal.alarm(300)  # stops this process if its parent died
    once, number = make(), 0
    while True:
        while flags[command] == number:
            os.sched_yield()
        number = flags[command]
        if number == LAST:
            return
        once()
        flags[answer] = number


def turns(seconds: float) -> int:
    """Return the number of loop iterations of ``toys.Still`` that take this time."""
    return toys.turns_for(seconds)


def idle(library: str, seconds: float) -> float:
    """Return the CPU time that all processes use in 10 s while two workers are idle, in seconds."""
    vecenv = open_vecenv(library, "cartpole", 2, 2)
    try:
        vecenv.reset(seed=0)
        for _ in range(100):
            vecenv.step(np.zeros(2, np.int32))
        pids = [os.getpid(), *(child.pid for child in multiprocessing.active_children())]
        before = sum(map(_cpu_s, pids))
        time.sleep(seconds)
        return 10 / seconds * (sum(map(_cpu_s, pids)) - before)
    finally:
        vecenv.close()


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds, summed over its threads."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def worker_memory(library: str) -> float:
    """Return the private memory of each of two workers after some steps, in MiB."""
    vecenv = open_vecenv(library, "cartpole", 2, 2)
    try:
        vecenv.reset(seed=0)
        for _ in range(100):
            vecenv.step(np.zeros(2, np.int32))
        pids = [child.pid for child in multiprocessing.active_children()]
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in pids]
        private = [int(line.split()[1]) for rollup in rollups for line in rollup if line.startswith("Private_")]
        return sum(private) / 1024 / len(pids)
    finally:
        vecenv.close()


def start(library: str) -> float:
    """Return the time in milliseconds until a vector environment with one worker returns its first observation.

    The second of two starts is measured.
    """
    for _ in range(2):
        before = time.perf_counter()
        vecenv = open_vecenv(library, "cartpole", 1, 1)
        vecenv.reset(seed=0)
        elapsed = time.perf_counter() - before
        vecenv.close()
    return 1e3 * elapsed


def import_time() -> float:
    """Return the time of ``import pufferlib`` in a new interpreter in seconds, plus 1,000 if it loads torch."""
    code = """if True:
        import sys, time
        start = time.perf_counter()
        import pufferlib
        print("torch" in sys.modules, time.perf_counter() - start)
    """
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loads_torch, seconds = done.stdout.split()[-2:]
    return float(seconds) + 1000 * (loads_torch == "True")


CASES = (
    *(step, step_of_first, handover, lockstep, turns, native, envpool, dispatch, games_for, emulation, crowd, nativize),
    *(idle, worker_memory, start, import_time, pool_of_first, atari_games),
)
