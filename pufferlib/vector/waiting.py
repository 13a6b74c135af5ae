"""How one process waits for another: spin for a moment, then lend the core, then sleep.

Steps are often shorter than a sleep and its wake-up (some 100 us across cores), so sleeping at once
is slow. Spinning on, without lending the core, is far slower as soon as there are more processes
than cores: each would burn the time slice that another needs.
"""

import os
import threading
import time
from collections.abc import Callable

__all__ = ["PARK_S", "memory_fence", "wait_until"]

SPINS = 10
YIELD_S = 200e-6
PARK_S = 0.5  # the longest sleep before a waiter looks again by itself

_fence = threading.Lock()


def wait_until(ready: Callable[[], bool], park: Callable[[], None]) -> None:
    """Return once ``ready()`` is true.

    Args:
        ready: Cheap and without side effects.
        park: Sleeps until the other side may have made progress, ``PARK_S`` at the longest, and
            raises if it never will. Whoever parks raises a flag first, passes ``memory_fence`` and
            asks ``ready`` once more, so that a wake-up cannot fall in between.
    """
    for _ in range(SPINS):
        if ready():
            return
    deadline = time.perf_counter() + YIELD_S
    while time.perf_counter() < deadline:
        os.sched_yield()
        if ready():
            return
    while not ready():
        park()


def memory_fence() -> None:
    """Make earlier writes visible to other processes before later reads are done."""
    with _fence:  # taking a free lock is one atomic instruction; that is what it is here for
        pass
