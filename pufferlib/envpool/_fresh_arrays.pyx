"""New arrays for batches, of which those that nobody has any more are given out again."""

import numpy as np

cimport cython
from cpython.object cimport PyObject

from pufferlib.native._arrays cimport ArrayHead, head_of, heads_match_numpy
from pufferlib.native._python cimport Py_REFCNT, PyList_GET_ITEM

from pufferlib.errors import PufferError

cdef enum:
    KEPT_ARRAYS = 4  # of one kind, for callers who hold some

cdef object empty = np.empty

if not heads_match_numpy():
    raise PufferError(f"pufferlib.envpool: this numpy, {np.__version__}, keeps its arrays in a way that is not known; "
                      "install one that pufferlib names")


@cython.final
cdef class FreshArrays:
    """Arrays of one kind, each of which is given out anew as soon as nobody has it any more.

    Args:
        row_shape: Of what follows the first dimension.
        dtype: Of the numbers.
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
        # The reference is that of `kept`: whoever hands the array on takes one more.
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
        # False for what its last owner has changed the form of: such an array is his for ever.
        cdef int i
        if head.ndim != self.ndim or head.shape[0] != rows or head.flags != self.flags:
            return False
        if <PyObject *>head.dtype != <PyObject *>self.dtype or head.base is not NULL or head.weak_references is not NULL:
            return False
        for i in range(1, self.ndim):
            if head.shape[i] != self.shape[i]:
                return False
        return True
