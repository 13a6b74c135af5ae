"""Memory of this process: how much it has, and whether malloc keeps what was freed."""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["freed_memory_kept", "own_bytes", "trim_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # from malloc.h, for mallopt(3)
# Values that glibc's adaptive thresholds reach in a process that frees large arrays. mallopt turns adaptation off.
ADAPTED = {M_TRIM_THRESHOLD: 64 * 2**20, M_MMAP_THRESHOLD: 32 * 2**20, M_MMAP_MAX: 65536}

_lock = threading.Lock()
_open_contexts = 0  # number of open context managers, because the setting applies to the whole process


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let malloc reuse freed memory for the next large array, instead of returning it to the kernel at once.

    A learner allocates and frees the same large arrays in each minibatch. Pages from the kernel are zeroed, with one
    page fault each. With large minibatches of images this takes much of the time. All free memory is returned to the
    kernel when the last open context manager exits. Until then the process is larger by the gaps between arrays.

    This does nothing if the C library is not glibc, since other libraries do not have this setting.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    _change_count(libc, 1)
    try:
        yield
    finally:
        _change_count(libc, -1)


def _change_count(libc: ctypes.CDLL, change: int) -> None:
    """Change malloc when the first context manager opens, and restore it when the last one closes."""
    global _open_contexts
    with _lock:
        before, _open_contexts = _open_contexts, _open_contexts + change
        if not before:
            # Allocate large arrays in the heap, not with mmap, and keep the free end of the heap.
            libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)
        elif not _open_contexts:
            for parameter, value in ADAPTED.items():
                libc.mallopt(parameter, value)
            libc.malloc_trim(0)


def trim_memory() -> None:
    """Return free memory to the system. Otherwise an environment that reuses it would seem to need none."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # exists only in glibc
    if trim:
        trim(0)


def own_bytes() -> int:
    """Return the anonymous memory of this process in bytes, or 0 if the system does not report it.

    Private memory would be less exact. It also changes when the system drops pages of a file, and when a process that
    was forked from this one exits.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Anonymous:", "Swap:")))
