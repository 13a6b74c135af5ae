"""Contestants of benchmarks/paper.py on one side: those of binding_contestants.py, and an environment all alone."""

import contextlib
import itertools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import sides
from binding_contestants import CASES, choices, made
from worlds import world_loop


def missing(name: str) -> str:
    """Say what is not installed for this environment, and how to get it; nothing if it can be made."""
    try:
        env, _ = made(name, 0)
    except ImportError as error:
        return str(error)
    env.close()
    return ""


def alone(name: str, seconds: float) -> dict[str, float | None]:
    """Play one environment as ``pufferlib.make`` makes it for so much CPU time, and until two of its episodes are over.

    That is at most five times as long.

    Returns:
        ``steps_per_s``, of every agent that is there; ``resets``, percent of the time that whole episodes spend in
        ``reset``, None where steps begin the next episode themselves; ``deviation`` of the time of a step, in percent
        of its mean.
    """
    env, first = made(name, 0)
    is_emulated = bool(env.emulated)
    with contextlib.closing(env):
        first()
        actions = itertools.cycle(choices(env.single_action_space, 512, env.num_agents, is_loop=env.num_agents == 1))
        steps: list[float] = []
        resets: list[tuple[int, float]] = []  # after how many steps, and how long each took
        agents, start = 0, time.thread_time()
        while (spent := time.thread_time() - start) < seconds or (len(resets) < 2 and spent < 5 * seconds):
            if is_emulated and env.done:
                resets.append((len(steps), timed(env.reset)))
            row = next(actions)
            agents += int(env.masks.sum())
            steps.append(timed(env.step, row[0] if is_emulated and env.num_agents == 1 else row))
    return {
        "steps_per_s": agents / (sum(steps) + sum(took for _, took in resets)),
        "resets": in_resets(steps, resets) if is_emulated else None,
        "deviation": 100 * statistics.pstdev(steps) / statistics.fmean(steps),
    }


def in_resets(steps: list[float], resets: list[tuple[int, float]]) -> float:
    """Percent of the time of whole episodes; 0 if none was over."""
    if not resets:
        return 0.0
    spent = sum(took for _, took in resets)
    return 100 * spent / (spent + sum(steps[: resets[-1][0]]))


def timed(call: Any, *args: Any) -> float:
    """Seconds of CPU that a call takes, without what the clock takes."""
    start = time.thread_time()
    call(*args)
    return max(time.thread_time() - start - CLOCK_S, 1e-9)


def clock_s() -> float:
    """Seconds that lie between two looks at the clock."""
    return statistics.median(-(time.thread_time() - time.thread_time()) for _ in range(1000))


CLOCK_S = clock_s()

if __name__ == "__main__":
    sides.serve({case.__name__: case for case in (*CASES, missing, alone, world_loop)})
