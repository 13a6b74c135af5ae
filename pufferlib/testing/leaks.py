"""Check of what episodes leave behind: memory, open files, threads, processes."""

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

STEPS = 5  # of an episode, before the next reset, if none is known to end
ROUNDS = 4  # after a first, which may fill caches
CONFIRMATIONS = 8  # rounds more, before something is called a leak
MIN_BYTES = 4096  # of Python's memory, in each episode: less may be a log
MIN_RESIDENT_BYTES = 64 << 10  # of all memory, in each episode, which the system gives and takes in pieces
SYSTEM = Path("/proc/self")  # of Linux

_ADVICE = {
    "bytes": "forget in reset what belongs to one episode: lists that only grow, caches without an end",
    "resident bytes": "free in reset what C code allocated for the last episode",
    "open files": "close in reset, or reuse, what the last episode opened",
    "threads": "join in reset, or reuse, the threads of the last episode",
    "processes": "end in reset, or reuse, the processes of the last episode",
}
Counts = dict[str, int]


def check_leaks(env: Any, seed: int, steps: int, first_end: int | None) -> None:
    """Raise if every round of episodes leaves more behind.

    Args:
        env: The environment.
        seed: Seed of the actions, and of the first reset.
        steps: Number of steps to play in all, if two episodes in each round are not more.
        first_end: Step in which an episode ended, up to which each episode is played; None plays short ones.
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
    with _quick_collections(), _python_memory():
        grown = _growing(play_round, ROUNDS, episodes)
        if grown:  # a cache may need longer to fill
            again = _growing(play_round, CONFIRMATIONS, episodes)
            grown = {name: count for name, count in again.items() if name in grown}
    for name, count in grown.items():
        raise broken(
            env,
            "leaks",
            f"an episode must leave nothing behind, got about {max(1, count)} {name} more with each",
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
    """Count the processes that a thread of this process began: none, if it ended since it was listed."""
    try:
        return len((SYSTEM / "task" / thread / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def check_close(creator: Callable[[], Any], seed: int) -> None:
    """Raise if environments that were made, played and closed leave files, threads or processes."""
    last: list[Any] = []

    def use_one() -> None:
        env = creator()
        last[:] = [env]
        try:
            env.reset(seed=seed)
        finally:
            env.close()

    grown = {name: count for name, count in _growing(use_one, ROUNDS, 1).items() if "bytes" not in name}
    for name, count in grown.items():
        raise broken(
            last[0],
            "leaks",
            f"close must let go of everything, got {count} {name} more with each environment",
            "end in close what __init__ and reset began",
        )


def _growing(act: Callable[[], None], rounds: int, episodes: int) -> Counts:
    """Name what grew in each of some rounds, and by how much with each episode, after a first that fills caches."""
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
    """Count everything that can leak; memory last, since files and threads take some too."""
    gc.collect()
    counts = {**open_handles(), "bytes": tracemalloc.get_traced_memory()[0]}
    if SYSTEM.exists():
        counts["resident bytes"] = int((SYSTEM / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return counts


@contextmanager
def _quick_collections() -> Iterator[None]:
    """Let collections of garbage pass over all that is there already."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _python_memory() -> Iterator[None]:
    """Count the memory that Python allocates, unless somebody does already."""
    if tracemalloc.is_tracing():
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
