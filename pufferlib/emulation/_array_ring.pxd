from cpython.object cimport PyObject


cdef class ArrayRing:
    cdef object source
    cdef list arrays
    cdef PyObject *dtype
    cdef Py_ssize_t nbytes, place
    cdef int flags

    cdef object copy(self)
    cdef bint is_free(self, PyObject *array) noexcept
