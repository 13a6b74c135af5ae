"""Element-wise arithmetic of recurrent networks on a CPU: one pass over the rows of one or several steps.

Tensors are contiguous with shape ``(rows, size)``, or ``(rows, number of gates * size)`` for gates. Gates, and inputs
and outputs of matrix products, are all float32 or all bfloat16. Everything else is float32. ``starts`` is bool
``(rows,)``, True where an episode starts with the step, so that the memory before it is 0, or None if none starts.
``starts_next`` is the same for the next step.

All functions raise ValueError if a tensor has the wrong size, dtype or device.
"""

import torch

from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memset

cdef extern from "puffer_recurrent.h" nogil:
    ctypedef struct PufferStep:
        Py_ssize_t rows, size, batch
        int is_half
        const uint8_t *starts
        const uint8_t *starts_next
        const float *bias
        void *gates
        const float *memory
        float *memory_next
        float *output
        void *next
        const float *doutput
        const void *dnext
        float *dmemory
        void *dgates
        float *dbias
        void *hidden
        void *hidden_n
        const float *bias_hidden
        float *dbias_hidden
        const void *input
        void *dinput
    void puffer_lstm_forward(const PufferStep *step)
    void puffer_lstm_backward(const PufferStep *step)
    void puffer_gru_forward(const PufferStep *step)
    void puffer_gru_backward(const PufferStep *step)
    void puffer_mingru_forward(const PufferStep *step)
    void puffer_mingru_backward(const PufferStep *step)

cdef object FLOAT = torch.float32, HALF = torch.bfloat16, BOOL = torch.bool


cdef void *address(object tensor, object dtype, Py_ssize_t size) except? NULL:
    """Return the address of the data of ``tensor``, or NULL for None."""
    if tensor is None:
        return NULL
    if tensor.dtype is not dtype or tensor.numel() != size or not tensor.is_contiguous() or not tensor.is_cpu:
        raise ValueError(
            f"recurrent kernels: expected {size} contiguous numbers {dtype} on the CPU, got shape {tuple(tensor.shape)} "
            f"{tensor.dtype} on {tensor.device}"
        )
    return <void *><uintptr_t>tensor.data_ptr()


cdef class _Arrays:
    """The arrays of a step. Each one is checked when it is added."""

    cdef PufferStep step
    cdef object dtype
    cdef Py_ssize_t count

    def __cinit__(self, shown, gates, starts, starts_next):
        """Take the sizes from ``shown``, the outputs or their derivatives, with shape ``(..., rows, size)``."""
        memset(&self.step, 0, sizeof(self.step))
        *_, rows, size = shown.shape
        self.step.batch, self.step.size = rows, size
        self.count = shown.numel()
        self.step.rows = self.count // self.step.size
        self.dtype = HALF if gates.dtype is HALF else FLOAT
        self.step.is_half = self.dtype is HALF
        self.step.starts = <const uint8_t *>address(starts, BOOL, self.step.rows)
        self.step.starts_next = <const uint8_t *>address(starts_next, BOOL, self.step.rows)

    cdef float *floats(self, tensor) except? NULL:
        return <float *>address(tensor, FLOAT, self.count)

    cdef float *per_channel(self, tensor, Py_ssize_t times) except? NULL:
        return <float *>address(tensor, FLOAT, times * self.step.size)

    cdef void *products(self, tensor, Py_ssize_t times) except? NULL:
        return address(tensor, self.dtype, times * self.count)


def lstm_forward(gates, bias, c, c_next, output, next, starts, starts_next):
    """Compute gates from products (in place), the memory ``c_next`` and ``output``.

    ``next`` receives the output in the dtype of the next step's product.
    """
    cdef _Arrays arrays = _Arrays(output, gates, starts, starts_next)
    cdef PufferStep *step = &arrays.step
    step.gates, step.bias = arrays.products(gates, 4), arrays.per_channel(bias, 4)
    step.memory, step.memory_next = arrays.floats(c), arrays.floats(c_next)
    step.output, step.next = arrays.floats(output), arrays.products(next, 1)
    with nogil:
        puffer_lstm_forward(step)


def lstm_backward(gates, c, c_next, doutput, dnext, dc, dgates, dbias, starts, starts_next):
    """Compute ``dgates``, update ``dc`` in place to the memory before the step, and add to ``dbias``."""
    cdef _Arrays arrays = _Arrays(doutput, gates, starts, starts_next)
    cdef PufferStep *step = &arrays.step
    step.gates, step.dgates = arrays.products(gates, 4), arrays.products(dgates, 4)
    step.memory, step.memory_next = arrays.floats(c), arrays.floats(c_next)
    step.doutput, step.dnext = arrays.floats(doutput), arrays.products(dnext, 1)
    step.dmemory, step.dbias = arrays.floats(dc), arrays.per_channel(dbias, 4)
    with nogil:
        puffer_lstm_backward(step)


def gru_forward(gates, hidden, bias, bias_hidden, h, output, hidden_n, next, starts, starts_next):
    """Compute gates from the products with the input (in place) and the memory (``hidden``), and then ``output``."""
    cdef _Arrays arrays = _Arrays(output, gates, starts, starts_next)
    cdef PufferStep *step = &arrays.step
    step.gates, step.hidden, step.hidden_n = arrays.products(gates, 3), arrays.products(hidden, 3), arrays.products(hidden_n, 1)
    step.bias, step.bias_hidden = arrays.per_channel(bias, 3), arrays.per_channel(bias_hidden, 3)
    step.memory, step.output, step.next = arrays.floats(h), arrays.floats(output), arrays.products(next, 1)
    with nogil:
        puffer_gru_forward(step)


def gru_backward(gates, hidden_n, h, doutput, dnext, dh, dgates, dhidden, dbias, dbias_n, starts, starts_next):
    """Compute ``dgates`` and ``dhidden``, and update ``dh`` in place with the part that bypasses the gates.

    Gradients of biases are added to ``dbias`` and ``dbias_n``.
    """
    cdef _Arrays arrays = _Arrays(doutput, gates, starts, starts_next)
    cdef PufferStep *step = &arrays.step
    step.gates, step.hidden_n = arrays.products(gates, 3), arrays.products(hidden_n, 1)
    step.dgates, step.hidden = arrays.products(dgates, 3), arrays.products(dhidden, 3)
    step.memory, step.dmemory = arrays.floats(h), arrays.floats(dh)
    step.doutput, step.dnext = arrays.floats(doutput), arrays.products(dnext, 1)
    step.dbias, step.dbias_hidden = arrays.per_channel(dbias, 3), arrays.per_channel(dbias_n, 1)
    with nogil:
        puffer_gru_backward(step)


def mingru_forward(gates, bias, inputs, h, h_next, outputs, starts):
    """Compute gates from products (in place), memories ``h_next``, and ``outputs`` of steps ``(steps, rows, size)``.

    ``h`` is the memory before each step, so ``h_next`` is a view of the same tensor that starts one step later.
    """
    cdef _Arrays arrays = _Arrays(outputs, gates, starts, None)
    cdef PufferStep *step = &arrays.step
    step.gates, step.bias, step.input = arrays.products(gates, 3), arrays.per_channel(bias, 3), arrays.products(inputs, 1)
    step.memory, step.memory_next, step.output = arrays.floats(h), arrays.floats(h_next), arrays.floats(outputs)
    with nogil:
        puffer_mingru_forward(step)


def mingru_backward(gates, inputs, h, h_next, doutputs, dh, dgates, dinputs, dbias, starts):
    """Compute ``dgates`` and the part of ``dinputs`` that bypasses the gates.

    ``dh`` is updated in place, and gradients of biases are added to ``dbias``.
    """
    cdef _Arrays arrays = _Arrays(doutputs, gates, starts, None)
    cdef PufferStep *step = &arrays.step
    step.gates, step.dgates = arrays.products(gates, 3), arrays.products(dgates, 3)
    step.input, step.dinput = arrays.products(inputs, 1), arrays.products(dinputs, 1)
    step.memory, step.memory_next, step.doutput = arrays.floats(h), arrays.floats(h_next), arrays.floats(doutputs)
    step.dmemory = <float *>address(dh, FLOAT, step.batch * step.size)
    step.dbias = arrays.per_channel(dbias, 3)
    with nogil:
        puffer_mingru_backward(step)
