"""Memory that this process freed: who keeps it, malloc or the kernel."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of malloc.h, for mallopt(3)
# What glibc comes to by itself in a process that frees large arrays; mallopt ends that it adapts.
ADAPTED = {M_TRIM_THRESHOLD: 64 * 2**20, M_MMAP_THRESHOLD: 32 * 2**20, M_MMAP_MAX: 65536}

_lock = threading.Lock()
_keepers = 0  # that are open: the setting is one of the whole process


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let malloc keep what is freed for the next large array, in place of giving it back to the kernel at once.

    A learner makes and frees the same large arrays in each minibatch. The kernel hands out pages that are zeroed, one
    fault each, which with large minibatches of images is much of the time. At the end, of the last one if several
    are open, the kernel gets all that is free; until then the process is larger, by the gaps between the arrays.

    Does nothing where the C library is not glibc, which alone has this setting.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    _count(libc, 1)
    try:
        yield
    finally:
        _count(libc, -1)


def _count(libc: ctypes.CDLL, change: int) -> None:
    """Set malloc for the first that opens, and back for the last that closes."""
    global _keepers
    with _lock:
        before, _keepers = _keepers, _keepers + change
        if not before:
            # In the heap instead of mappings of their own, and the heap's free end is kept.
            libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)
        elif not _keepers:
            for parameter, value in ADAPTED.items():
                libc.mallopt(parameter, value)
            libc.malloc_trim(0)
