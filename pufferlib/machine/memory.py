"""Memory that this process freed: who keeps it, malloc or the kernel."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h, for mallopt(3), with glibc's defaults
TRIM_THRESHOLD, MMAP_MAX = 128 * 1024, 65536


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let malloc keep what is freed for the next large array, in place of giving it back to the kernel at once.

    A learner makes and frees the same large arrays in each minibatch. The kernel hands out pages that are zeroed, one
    fault each, which with large minibatches of images is a third of the time. At the end the kernel gets all that is
    free; until then the process is up to a third larger, by the gaps between the arrays.

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
        libc.mallopt(M_MMAP_MAX, MMAP_MAX)
        libc.mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD)
        libc.malloc_trim(0)
