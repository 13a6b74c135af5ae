from libc.stdint cimport int32_t

cdef enum ActionKind:
    AN_INTEGER, INTEGERS, AS_IT_IS, MAPPING, SEQUENCE, CHOICE, STRING


cdef class ActionNode:
    cdef ActionKind kind
    cdef Py_ssize_t count  # number of elements in the flat action
    cdef Py_ssize_t item_bytes  # bytes of one of these elements
    cdef bint is_real  # whether they are floats
    cdef tuple keys, children
    cdef str characters  # allowed characters of a string
    cdef object template  # array with the shape of the action
    cdef object dtype  # dtype of the action, if the template has a different one

    cdef object build(self, const char *numbers)
    cdef object build_array(self, const char *numbers)
    cdef object build_choice(self, const char *numbers)
    cdef object build_string(self, const char *numbers)
    cdef int32_t integer(self, const char *numbers, Py_ssize_t place) noexcept


cdef class ActionReader:
    cdef ActionNode root
    cdef tuple leaves  # leaf of every element
    cdef object low, high
    cdef list bounds  # pairs of low and high
    cdef readonly object flat_dtype
    cdef Py_ssize_t row_bytes
    cdef bint is_single, is_int32  # whether flat_dtype is float32 or int32

    cdef int check_array(self, array) except -1
    cdef object read_row(self, const char *row)
