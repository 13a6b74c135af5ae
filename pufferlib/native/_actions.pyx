"""Validation and copying of a batch of actions in one pass."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pufferlib.native._arrays cimport ALIGNED_AND_CONTIGUOUS, ArrayHead, head_of, heads_match_numpy, is_native

import numpy as np

from pufferlib.errors import APIUsageError

cdef bint heads_are_readable = heads_match_numpy()
cdef object ndarray = np.ndarray
cdef object int64_type = np.int64
cdef object float64_type = np.float64

cdef fused Integer:
    int32_t
    int64_t

cdef fused Real:
    float
    double


cdef class ActionRows:
    """Checks and copies the actions of a batch, in a single pass if they are a plain array of numbers.

    Subclasses implement ``_convert``, which converts anything else or raises an error.

    Args:
        low: Lowest allowed value of each number, a C-contiguous array. The fast path supports int32 and float32.
        high: Highest allowed value of each number, an array of the same shape and dtype.
        is_simple: Whether bounds are all there is to check. If False, ``_convert`` gets all actions.
    """

    cdef object array, low, high
    cdef bint is_real, is_known

    def __init__(self, low, high, is_simple=True):
        self.low, self.high = low, high
        self.array = np.zeros_like(low)
        self.is_real = low.dtype == np.float32
        self.is_known = is_simple and heads_are_readable and (self.is_real or low.dtype == np.int32)
        if not (low.flags.c_contiguous and high.flags.c_contiguous and low.shape == high.shape and low.dtype == high.dtype):
            raise APIUsageError(f"ActionRows: expected contiguous bounds alike, got {low!r:.80} and {high!r:.80}")

    def __call__(self, actions):
        """Return ``actions`` as an array with the shape and dtype of the bounds. The next call overwrites it."""
        return self.array if self.is_known and self.take(actions) else self._convert(actions)

    cdef bint take(self, actions):
        """Copy an int32, int64, float32 or float64 array. Return False if it has another type or does not fit."""
        if type(actions) is not ndarray:
            return False
        source, target = head_of(actions), head_of(self.array)
        if not same_shape(source, target) or not is_native(source.dtype):
            return False
        if source.dtype.scalar_type == <PyObject *>(float64_type if self.is_real else int64_type):
            if self.is_real:
                return take_reals(<double *>source.data, target, head_of(self.low), head_of(self.high))
            return take_integers(<int64_t *>source.data, target, head_of(self.low), head_of(self.high))
        if source.dtype.scalar_type == target.dtype.scalar_type:
            if self.is_real:
                return take_reals(<float *>source.data, target, head_of(self.low), head_of(self.high))
            return take_integers(<int32_t *>source.data, target, head_of(self.low), head_of(self.high))
        return False


cdef inline Py_ssize_t size_of(const ArrayHead *head) noexcept nogil:
    cdef Py_ssize_t size = 1
    for axis in range(head.ndim):
        size *= head.shape[axis]
    return size


cdef bint same_shape(const ArrayHead *source, const ArrayHead *target) noexcept nogil:
    """Return True if ``source`` is contiguous and has the shape of ``target``."""
    if source.ndim != target.ndim or source.flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS:
        return False
    for axis in range(target.ndim):
        if source.shape[axis] != target.shape[axis]:
            return False
    return True


cdef bint take_integers(
    const Integer *source, const ArrayHead *array, const ArrayHead *low, const ArrayHead *high
) noexcept nogil:
    """Copy integers to int32. Return False if any is out of bounds."""
    cdef int32_t *target = <int32_t *>array.data
    cdef const int32_t *least = <const int32_t *>low.data
    cdef const int32_t *most = <const int32_t *>high.data
    cdef int outside = 0
    cdef Py_ssize_t i
    for i in range(size_of(array)):
        outside |= (source[i] < least[i]) | (source[i] > most[i])
        target[i] = <int32_t>source[i]
    return not outside


cdef bint take_reals(
    const Real *source, const ArrayHead *array, const ArrayHead *low, const ArrayHead *high
) noexcept nogil:
    """Copy floats to float32. Return False if any is NaN or out of bounds."""
    cdef float *target = <float *>array.data
    cdef const float *least = <const float *>low.data
    cdef const float *most = <const float *>high.data
    cdef float number  # in the precision of the space, so that 0.7 does not exceed a bound of 0.7
    cdef int inside = 1
    cdef Py_ssize_t i
    for i in range(size_of(array)):
        number = <float>source[i]
        inside &= (number >= least[i]) & (number <= most[i])
        target[i] = number
    return inside
