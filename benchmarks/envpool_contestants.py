"""Cases of benchmarks/envpool.py, one function each: the same calls of our pools and of EnvPool.

Run by sides.py with our Python, and with one that has EnvPool. Actions are drawn before; a pool is made once and begun.
"""

import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import sides


def sync(library: str, task_id: str, num_envs: int, threads: int, clock: str, seconds: float) -> float:
    """Microseconds of a step of all environments."""
    env = _begun(library, task_id, num_envs, num_envs, threads, True)
    return _timed(lambda actions: env.step(actions), _actions(env, num_envs), clock, seconds)


def bound(task_id: str, num_envs: int, threads: int, clock: str, seconds: float) -> float:
    """The same of ours, in arrays that stay the same."""
    env = _begun("ours", task_id, num_envs, num_envs, threads, False)
    return _timed(lambda actions: env.step(actions), _actions(env, num_envs), clock, seconds)


def first(
    library: str, task_id: str, num_envs: int, batch_size: int, threads: int, clock: str, seconds: float
) -> float:
    """Microseconds of a step of the environments that came back last, for the first that finish."""
    env = _begun(library, task_id, num_envs, batch_size, threads, True)
    env.async_reset()
    batches = [env.recv()[4]["env_id"].copy() for _ in range(num_envs // batch_size)]
    for ids in batches[1:]:
        env.send(np.zeros(batch_size, np.int32), ids)
    came = batches[0]

    def step(actions: Any) -> None:
        nonlocal came
        came = env.step(actions, came)[4]["env_id"]

    figure = _timed(step, _actions(env, batch_size), clock, seconds)
    for _ in range(num_envs // batch_size - 1):  # so that the next measurement finds all of them there
        env.recv()
    return figure


def _timed(step: Callable[[Any], Any], actions: Iterator[Any], clock: str, seconds: float) -> float:
    return sides.us_per_call(lambda: step(next(actions)), seconds, getattr(time, clock))


def _actions(env: Any, rows: int) -> Iterator[Any]:
    """Random actions, over and over."""
    drawn = np.random.default_rng(0).integers(0, int(env.action_space.n), (64, rows)).astype(np.int32)
    return itertools.cycle([*drawn])


@functools.cache  # a pool that waits costs nothing
def _begun(library: str, task_id: str, num_envs: int, batch_size: int, threads: int, copy: bool) -> Any:
    options = {"num_envs": num_envs, "batch_size": batch_size, "num_threads": threads, "seed": 0}
    if library == "ours":
        import pufferlib.envpool as ours

        env = ours.make(task_id, env_type="gymnasium", copy=copy, **options)
    else:
        env = sides.import_peer("envpool").make(task_id, env_type="gymnasium", **options)
    if batch_size == num_envs:
        env.reset()
    return env


CASES = (sync, bound, first)

if __name__ == "__main__":
    sides.serve({case.__name__: case for case in CASES})
