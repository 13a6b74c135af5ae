"""Categorical distributions in C: sampling, log probabilities and derivatives for all rows in one call.

Tensors are accessed by address, because converting each to a NumPy array would take longer than most calls. The GIL
is held, since the scratch memory of a kernel serves one caller at a time and no call takes a millisecond.
"""

from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc

cdef extern from "puffer_categorical.h":
    const int PUFFER_BLOCK
    ctypedef struct PufferCategorical:
        int *sizes
        int parts
        int logits
        float *scratch
    bint puffer_draw(
        const PufferCategorical *choice, const float *logits, int64_t stride, int64_t rows, const float *noise,
        int64_t *actions, float *log_probs)
    void puffer_evaluate(
        const PufferCategorical *choice, const float *logits, int64_t stride, int64_t rows, const int64_t *actions,
        float *log_probs, float *entropies)
    void puffer_differentiate(
        const PufferCategorical *choice, const float *logits, int64_t stride, int64_t rows, const int64_t *actions,
        const float *d_log_probs, const float *d_entropies, float *d_logits)


cdef inline void *address(tensor):
    return <void *><uintptr_t>tensor.data_ptr()


cdef class CategoricalKernel:
    """Loops over rows of logits. The caller is responsible for devices, dtypes and shapes.

    Every tensor must be on the CPU and contiguous, except that rows of ``logits`` may be apart. Tensors are float32 and
    actions are int64. Every action must be in the range of its component.

    Args:
        sizes: Number of values of each component.
    """

    cdef PufferCategorical choice
    cdef tuple sizes

    def __cinit__(self, sizes):
        self.sizes = tuple(sizes)
        self.choice.parts, self.choice.logits = len(sizes), sum(sizes)
        self.choice.sizes = <int *>malloc(len(sizes) * sizeof(int))
        self.choice.scratch = <float *>malloc(max(PUFFER_BLOCK, self.choice.logits) * sizeof(float))
        if self.choice.sizes == NULL or self.choice.scratch == NULL:
            raise MemoryError
        for index, size in enumerate(sizes):
            self.choice.sizes[index] = size

    def __dealloc__(self):
        free(self.choice.sizes)
        free(self.choice.scratch)

    def __reduce__(self):
        return CategoricalKernel, (self.sizes,)

    def draw(self, logits, noise, actions, log_probs):
        """Write an action for each component and the log probability of each row. Return False if a logit is NaN.

        ``noise`` is uniform in [0, 1), one number per component.
        """
        cdef const float *x = <const float *>address(logits)
        cdef const float *uniform = <const float *>address(noise)
        cdef int64_t *chosen = <int64_t *>address(actions)
        cdef float *logs = <float *>address(log_probs)
        cdef int64_t stride = logits.stride(0), rows = logits.size(0)
        return puffer_draw(&self.choice, x, stride, rows, uniform, chosen, logs)

    def evaluate(self, logits, actions, log_probs, entropies):
        """Write the log probability of each row's actions, and the entropy of each row."""
        cdef const float *x = <const float *>address(logits)
        cdef const int64_t *chosen = <const int64_t *>address(actions)
        cdef float *logs = <float *>address(log_probs)
        cdef float *nats = <float *>address(entropies)
        cdef int64_t stride = logits.stride(0), rows = logits.size(0)
        puffer_evaluate(&self.choice, x, stride, rows, chosen, logs, nats)

    def differentiate(self, logits, actions, d_log_probs, d_entropies, d_logits):
        """Write the derivative with respect to the logits, given the derivatives of both results of ``evaluate``."""
        cdef const float *x = <const float *>address(logits)
        cdef const int64_t *chosen = <const int64_t *>address(actions)
        cdef const float *d_logs = <const float *>address(d_log_probs)
        cdef const float *d_nats = <const float *>address(d_entropies)
        cdef float *d_x = <float *>address(d_logits)
        cdef int64_t stride = logits.stride(0), rows = logits.size(0)
        puffer_differentiate(&self.choice, x, stride, rows, chosen, d_logs, d_nats, d_x)
