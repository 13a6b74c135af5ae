from libc.stdint cimport int32_t

cdef enum ActionKind:
    AN_INTEGER, INTEGERS, AS_IT_IS, MAPPING, SEQUENCE, CHOICE, STRING


cdef class ActionNode:
    cdef ActionKind kind
    cdef Py_ssize_t count  # of its numbers
    cdef Py_ssize_t item_bytes  # of one of them in the flat action
    cdef tuple keys, children
    cdef str characters  # that a string may have
    cdef object template  # an array of the action's shape
    cdef object dtype  # of the action, if the template has another

    cdef object build(self, const char *numbers)
    cdef object build_array(self, const char *numbers)
    cdef object build_choice(self, const int32_t *numbers)
    cdef object build_string(self, const int32_t *numbers)


cdef class ActionReader:
    cdef ActionNode root
    cdef tuple leaves  # of every number
    cdef object low, high
    cdef list bounds  # pairs of them
    cdef readonly object flat_dtype
    cdef Py_ssize_t row_bytes
    cdef bint is_single, is_int32  # flat_dtype is float32, or int32

    cdef int check_array(self, array) except -1
    cdef object read_row(self, const char *row)
