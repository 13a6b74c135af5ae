"""Memory that this process freed: who keeps it, malloc or the kernel."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of malloc.h, for mallopt(3)
# What glibc comes to by itself in a process that frees large arrays; mallopt ends that it adapts.
ADAPTED = {M_TRIM_THRESHOLD: 64 * 2**20, M_MMAP_THRESHOLD: 32 * 2**20, M_MMAP_MAX: 65536}


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let malloc keep what is freed for the next large array, in place of giving it back to the kernel at once.

    A learner makes and frees the same large arrays in each minibatch. The kernel hands out pages that are zeroed, one
    fault each, which with large minibatches of images is much of the time. At the end the kernel gets all that is
    free; until then the process is larger, by the gaps between the arrays.

    Does nothing where the C library is not glibc, which alone has this setting.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    # In the heap instead of mappings of their own, and the heap's free end is kept.
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        for parameter, value in ADAPTED.items():
            libc.mallopt(parameter, value)
        libc.malloc_trim(0)
