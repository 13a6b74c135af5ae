from cpython.object cimport PyObject

cdef enum:
    MAX_NDIM = 64  # limit of numpy 2
    ALWAYS_CHECKED_BYTES = 4096  # bytes: float leaves up to this size are checked for NaN in every step


cdef struct LeafSlot:
    Py_ssize_t offset
    Py_ssize_t nbytes
    Py_ssize_t count
    PyObject *key  # borrowed from its path, NULL unless the path is one key
    int ndim
    Py_ssize_t shape[MAX_NDIM]
    PyObject *scalar_type  # borrowed from the leaf's dtype
    bint is_array  # whether values are plain arrays, which are copied directly if the dtype is right
    bint is_integer  # whether values are plain integers
    bint is_long  # whether these are stored as int64
    int real_bytes  # itemsize if the dtype is floating point, else 0


cdef class Packer:
    cdef tuple _leaves
    cdef tuple _paths
    cdef LeafSlot *_slots
    cdef Py_ssize_t _num_leaves
    cdef Py_ssize_t _row_bytes
    cdef bint _is_one_leaf  # whether the sample is one leaf of at most ALWAYS_CHECKED_BYTES bytes
    cdef object _batch
    cdef Py_buffer _view

    cdef _bind(self, batch)
    cdef int write(self, char *start, sample, bint check_all) except -1
    cdef int write_leaves(self, char *start, sample, bint check_all) except -1
    cdef int write_leaf(self, Py_ssize_t position, char *target, value, bint check_nan) except -1
    cdef object find(self, Py_ssize_t position, sample)
