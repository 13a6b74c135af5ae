# Arrays for batches, which are reused once the caller has released them.

cimport cython
from cpython.object cimport PyObject

from pufferlib.native._arrays cimport ArrayHead

cdef enum:
    MAX_DIMS = 64  # of numpy


@cython.final
cdef class FreshArrays:
    cdef list kept
    cdef tuple row_shape
    cdef object dtype
    cdef int ndim, flags
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Py_ssize_t oldest

    cdef PyObject *take(self, Py_ssize_t rows) except NULL
    cdef bint is_like_new(self, ArrayHead *head, Py_ssize_t rows) noexcept
