"""Check that episodes do not leak memory, open files, threads or processes."""

import gc
import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pufferlib.legal_actions import LegalActions
from pufferlib.testing.contract import broken

__all__ = ["check_close", "check_leaks", "open_handles"]

STEPS = 5  # steps of an episode before the next reset, if no episode ends
ROUNDS = 4  # rounds after the first one, which may fill caches
CONFIRMATIONS = 8  # further rounds to confirm a leak
MIN_BYTES = 4096  # Python memory per episode, since less may be a log
MIN_RESIDENT_BYTES = 64 << 10  # resident memory per episode, which the system allocates in large pieces
SYSTEM = Path("/proc/self")  # exists only on Linux

_ADVICE = {
    "bytes": "clear data of the last episode in reset: lists that only grow, caches without a limit",
    "resident bytes": "in reset, free the memory that C code allocated for the last episode",
    "open files": "in reset, close or reuse the files that the last episode opened",
    "threads": "in reset, join or reuse the threads of the last episode",
    "processes": "in reset, stop or reuse the processes of the last episode",
}
Counts = dict[str, int]


def check_leaks(env: Any, seed: int, steps: int, first_end: int | None) -> None:
    """Raise if every round of episodes increases memory, open files, threads or processes.

    Args:
        env: Environment to check.
        seed: Seed of the actions and of the first reset.
        steps: Total number of steps to play. Each round plays at least two episodes.
        first_end: Length of each episode in steps, or None for short episodes.
    """
    length = first_end or STEPS
    episodes = max(2, steps // (length * (ROUNDS + 1) * 2))
    actions = LegalActions(env, env.num_agents, seed)

    def play_round() -> None:
        for _ in range(episodes):
            env.reset(seed=None)
            for _ in range(length):
                if env.done:
                    break
                env.step(actions.sample(env.observations))

    env.reset(seed=seed)
    with _existing_objects_frozen(), _traced_memory():
        grown = _growth_per_episode(play_round, ROUNDS, episodes)
        if grown:  # a cache may need longer to fill
            again = _growth_per_episode(play_round, CONFIRMATIONS, episodes)
            grown = {name: count for name, count in again.items() if name in grown}
    for name, count in grown.items():
        raise broken(
            env,
            "leaks",
            f"episodes must not leak, got about {max(1, count)} more {name} with each episode",
            _ADVICE[name],
        )


def open_handles() -> Counts:
    """Count the open files, threads and processes of this process."""
    if not SYSTEM.exists():
        return {"threads": threading.active_count()}
    return {
        "open files": len(os.listdir(SYSTEM / "fd")),
        "threads": len(os.listdir(SYSTEM / "task")),
        "processes": sum(_children(thread) for thread in os.listdir(SYSTEM / "task")),
    }


def _children(thread: str) -> int:
    """Count the processes started by a thread of this process. The result is 0 if the thread has exited."""
    try:
        return len((SYSTEM / "task" / thread / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def check_close(creator: Callable[[], Any], seed: int) -> None:
    """Raise if ``close`` leaves open files, threads or processes."""
    last: list[Any] = []

    def use_one() -> None:
        env = creator()
        last[:] = [env]
        try:
            env.reset(seed=seed)
        finally:
            env.close()

    with _existing_objects_frozen():
        growth = _growth_per_episode(use_one, ROUNDS, 1)
    grown = {name: count for name, count in growth.items() if "bytes" not in name}
    for name, count in grown.items():
        raise broken(
            last[0],
            "leaks",
            f"close must release everything, got {count} more {name} with each environment",
            "in close, release what __init__ and reset opened or started",
        )


def _growth_per_episode(act: Callable[[], None], rounds: int, episodes: int) -> Counts:
    """Return the counts that grew in every round, and their growth per episode. The first round is not counted."""
    act()
    before, growths = _counts(), []
    for _ in range(rounds):
        act()
        after = _counts()
        growths.append({name: after[name] - before[name] for name in after})
        before = after
        least = {name: min(growth[name] for growth in growths) for name in after}
        if not any(_is_leak(name, count, episodes) for name, count in least.items()):
            return {}
    return {name: count // episodes for name, count in least.items() if _is_leak(name, count, episodes)}


def _is_leak(name: str, count: int, episodes: int) -> bool:
    return count >= {"bytes": MIN_BYTES * episodes, "resident bytes": MIN_RESIDENT_BYTES * episodes}.get(name, 1)


def _counts() -> Counts:
    """Count everything that can leak. Memory is last, because files and threads use memory too."""
    gc.collect()
    counts = {**open_handles(), "bytes": tracemalloc.get_traced_memory()[0]}
    if SYSTEM.exists():
        counts["resident bytes"] = int((SYSTEM / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return counts


@contextmanager
def _existing_objects_frozen() -> Iterator[None]:
    """Exclude all existing objects from garbage collection, which makes collections faster.

    This does nothing in a process that has frozen its objects itself, since ``gc.unfreeze`` has no other scope.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _traced_memory() -> Iterator[None]:
    """Trace memory allocations of Python, unless tracing is already on."""
    if tracemalloc.is_tracing():
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
