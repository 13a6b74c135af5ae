"""Recursion of advantages in C. For a few agents, one step in torch costs more than the whole sum."""

from libc.stdint cimport int64_t, uintptr_t

cdef extern from "puffer_advantage.h":
    void puffer_sum_backwards(float *x, const float *decay, int64_t steps, int64_t agents) nogil


def sum_backwards(x, decay):
    """Add to each step of ``x`` the next one times ``decay``, from the last to the first.

    Args:
        x: Tensor to change, float32 ``(steps, ...)``, contiguous, on the CPU.
        decay: Factors, in the same format. The last step is not read.
    """
    cdef float *sums = <float *><uintptr_t>x.data_ptr()
    cdef const float *factors = <const float *><uintptr_t>decay.data_ptr()
    cdef int64_t steps = x.shape[0]
    cdef int64_t agents = x.numel() // max(1, steps)
    with nogil:
        puffer_sum_backwards(sums, factors, steps, agents)
