"""Contestants of benchmarks/variance.py on one side: environments whose steps take a time drawn by chance."""

import functools
import itertools
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import sides
import toys
from contestants import random_actions, vecenv_of


def step(library: str, env: list[Any], num_envs: int, workers: int, batch: int | None, seconds: float) -> float:
    """Microseconds of a step of one of ``toys.Delayed(*env)``, in calls of ``batch``, of all if that is None."""
    vecenv = vecenv_of(library, functools.partial(toys.Delayed, *env), num_envs, workers, batch)
    try:
        vecenv.reset(seed=0)
        rows = itertools.cycle(random_actions(vecenv, batch or num_envs))
        return sides.us_per_call(lambda: vecenv.step(next(rows)), seconds) / (batch or num_envs)
    finally:
        vecenv.close()


def turns_per_s() -> int:
    """Count the turns of a loop in a second."""
    return toys.turns_for(1.0)


if __name__ == "__main__":
    sides.serve({case.__name__: case for case in (step, turns_per_s)})
