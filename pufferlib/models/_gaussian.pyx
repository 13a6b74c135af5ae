"""Normal distributions in C: log probabilities and derivatives for all rows in one call."""

from libc.stdint cimport int64_t, uintptr_t

cdef extern from "puffer_gaussian.h":
    void puffer_gaussian_evaluate(
        int size, const float *params, int64_t stride, int64_t rows, const float *actions, float *log_probs,
        float *entropies)
    void puffer_gaussian_differentiate(
        int size, const float *params, int64_t stride, int64_t rows, const float *actions, const float *d_log_probs,
        const float *d_entropies, float *d_params)


cdef inline float *floats(tensor):
    return <float *><uintptr_t>tensor.data_ptr()


def evaluate(int size, params, actions, log_probs, entropies):
    """Write the log probability of each row's actions, and the entropy of each row.

    Every tensor must be float32, on the CPU and contiguous, except that rows of ``params`` may be apart. This is not
    checked.

    Args:
        size: Number of components.
        params: Means, then log standard deviations, ``(rows, 2 * size)``.
        actions: Actions, ``(rows, size)``.
        log_probs: Output ``(rows,)``.
        entropies: Output ``(rows,)``.
    """
    cdef int64_t stride = params.stride(0), rows = params.size(0)
    puffer_gaussian_evaluate(size, floats(params), stride, rows, floats(actions), floats(log_probs), floats(entropies))


def differentiate(int size, params, actions, d_log_probs, d_entropies, d_params):
    """Write the derivative with respect to ``params``, given the derivatives of both results of ``evaluate``."""
    cdef int64_t stride = params.stride(0), rows = params.size(0)
    puffer_gaussian_differentiate(
        size, floats(params), stride, rows, floats(actions), floats(d_log_probs), floats(d_entropies),
        floats(d_params))
