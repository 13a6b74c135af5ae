"""Arrays for batches, which are reused once the caller has released them."""

import numpy as np

cimport cython
from cpython.object cimport PyObject

from pufferlib.native._arrays cimport ArrayHead, head_of, heads_match_numpy
from pufferlib.native._python cimport Py_REFCNT, PyList_GET_ITEM

from pufferlib.errors import PufferError

cdef enum:
    KEPT_ARRAYS = 4  # arrays that are reused, so that a caller can keep some

cdef object empty = np.empty

if not heads_match_numpy():
    raise PufferError(f"pufferlib.envpool: this numpy, {np.__version__}, has an unknown layout of arrays; "
                      "install a version that pufferlib supports")


@cython.final
cdef class FreshArrays:
    """Arrays of one shape and dtype. An array is reused as soon as no other reference to it exists.

    Args:
        row_shape: Shape of an array without its first dimension.
        dtype: Dtype of the arrays.
    """

    def __cinit__(self, tuple row_shape, dtype):
        cdef int i
        self.kept = []
        self.row_shape = row_shape
        self.dtype = np.dtype(dtype)
        self.ndim = len(row_shape) + 1
        for i in range(1, self.ndim):
            self.shape[i] = row_shape[i - 1]

    cdef PyObject *take(self, Py_ssize_t rows) except NULL:
        # Returns a reference of `kept`. The caller takes one more to pass the array on.
        cdef Py_ssize_t i
        cdef PyObject *kept
        for i in range(len(self.kept)):
            kept = PyList_GET_ITEM(<PyObject *>self.kept, i)
            if Py_REFCNT(kept) == 1 and self.is_like_new(<ArrayHead *>kept, rows):
                return kept
        array = empty((rows, *self.row_shape), self.dtype)
        self.flags = head_of(array).flags
        if len(self.kept) < KEPT_ARRAYS:
            self.kept.append(array)
        else:
            self.kept[self.oldest] = array
            self.oldest = (self.oldest + 1) % KEPT_ARRAYS
        return <PyObject *>array

    cdef bint is_like_new(self, ArrayHead *head, Py_ssize_t rows) noexcept:
        # False if the caller has changed the shape or flags of the array. It is then never reused.
        cdef int i
        if head.ndim != self.ndim or head.shape[0] != rows or head.flags != self.flags:
            return False
        if <PyObject *>head.dtype != <PyObject *>self.dtype or head.base is not NULL or head.weak_references is not NULL:
            return False
        for i in range(1, self.ndim):
            if head.shape[i] != self.shape[i]:
                return False
        return True
