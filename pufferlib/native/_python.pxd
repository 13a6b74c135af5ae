# Calls of CPython that the stable ABI lacks.

from cpython.object cimport PyObject

# In a build against the stable ABI, each is a function of the limited API that does the same and checks its arguments.
# Py_REFCNT is in both. Its 64 bits are more than the counter from Python 3.12 on, where the others are 0 in an array.
cdef extern from *:
    """
    #ifdef Py_LIMITED_API
    #define PyByteArray_AS_STRING PyByteArray_AsString
    #define PyByteArray_GET_SIZE PyByteArray_Size
    #define PyBytes_AS_STRING PyBytes_AsString
    #define PyDict_GET_SIZE PyDict_Size
    #define PyList_GET_ITEM PyList_GetItem
    #define PyList_GET_SIZE PyList_Size
    #endif
    """
    char *PyByteArray_AS_STRING(object bytearray) noexcept
    Py_ssize_t PyByteArray_GET_SIZE(object bytearray) noexcept
    char *PyBytes_AS_STRING(object bytes) noexcept
    Py_ssize_t PyDict_GET_SIZE(object mapping) noexcept
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t place) noexcept
    Py_ssize_t PyList_GET_SIZE(object items) noexcept
    Py_ssize_t Py_REFCNT(PyObject *value) noexcept
