"""Memory that this process freed: who keeps it, malloc or the kernel."""

import ctypes

__all__ = ["keep_freed_memory"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h, for mallopt(3)


def keep_freed_memory() -> bool:
    """Let malloc keep what is freed for the next large array, in place of giving it back to the kernel at once.

    A learner makes and frees the same large arrays in each minibatch. The kernel hands out pages that are zeroed, one
    fault each, which for networks of images is a sixth of the time. The process then stays as large as it has been.

    Returns:
        True, or False where the C library is not glibc, which alone has this setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # In the heap instead of mappings of their own, and the heap's free end is kept.
    return mallopt is not None and bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, -1))
