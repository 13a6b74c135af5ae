from cpython.object cimport PyObject

cdef enum:
    MAX_NDIM = 64  # of numpy 2
    ALWAYS_LOOKED_AT = 4096  # bytes: a leaf of reals up to this size is searched for NaN in every step


cdef struct LeafSlot:
    Py_ssize_t offset
    Py_ssize_t nbytes
    Py_ssize_t count
    PyObject *key  # borrowed from its path; NULL unless that is one key
    int ndim
    Py_ssize_t shape[MAX_NDIM]
    PyObject *scalar_type  # borrowed from the leaf's dtype
    bint is_array  # its values are plain arrays: those of the right type are copied as they are
    bint is_integer  # its values are plain integers
    bint is_long  # and kept in 64 bits
    int real_bytes  # of one element that is real, otherwise 0


cdef class Packer:
    cdef tuple _leaves
    cdef tuple _paths
    cdef LeafSlot *_slots
    cdef Py_ssize_t _num_leaves
    cdef Py_ssize_t _row_bytes
    cdef bint _is_one_leaf  # of at most ALWAYS_LOOKED_AT bytes, and the whole sample
    cdef object _batch
    cdef Py_buffer _view

    cdef _bind(self, batch)
    cdef int write(self, char *start, sample, bint look_everywhere) except -1
    cdef int write_leaves(self, char *start, sample, bint look_everywhere) except -1
    cdef int write_leaf(self, Py_ssize_t position, char *target, value, bint look) except -1
    cdef object find(self, Py_ssize_t position, sample)
