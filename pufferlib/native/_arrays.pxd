# Direct access to the fields of NumPy arrays, without the buffer protocol.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint16_t

# Requesting a buffer from an array costs at least 100 ns, most of the time of a small copy. Reading these
# fields is free. Their layout is the same in every NumPy since 1.0, because compiled extensions depend on it.
# heads_match_numpy() still checks it once.
cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *scalar_type;
        char kind, type, byteorder;
    } PufferDtypeHead;

    typedef struct {
        PyObject_HEAD
        char *data;
        int ndim;
        Py_ssize_t *shape;
        Py_ssize_t *strides;
        PyObject *base;
        PufferDtypeHead *dtype;
        int flags;
        PyObject *weak_references;
    } PufferArrayHead;

    typedef struct {
        PyObject_HEAD
        int64_t number;
    } PufferInt64;
    """
    ctypedef struct DtypeHead "PufferDtypeHead":
        PyObject *scalar_type
        char type, byteorder
    ctypedef struct ArrayHead "PufferArrayHead":
        char *data
        int ndim
        Py_ssize_t *shape
        PyObject *base
        DtypeHead *dtype
        int flags
        PyObject *weak_references
    ctypedef struct Int64 "PufferInt64":
        int64_t number

cdef enum:
    ALIGNED_AND_CONTIGUOUS = 0x101  # NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS


cdef inline bint heads_match_numpy():
    """Return True if arrays of this NumPy have the layout of ArrayHead. Otherwise every array takes the slow path."""
    import numpy as np

    probe = np.zeros((3, 5), np.int16)
    number = np.int64(-(2**40))
    dtype = probe.dtype
    scalar_type = np.int16
    swapped = dtype.newbyteorder()
    transposed = probe.T
    head = head_of(probe)
    return (
        (<Int64 *><PyObject *>number).number == -(2**40) and head.ndim == 2 and <size_t>head.data == <size_t>probe.ctypes.data
        and <PyObject *>head.dtype == <PyObject *>dtype and head.dtype.scalar_type == <PyObject *>scalar_type
        and is_native(head.dtype) and not is_native(<DtypeHead *><PyObject *>swapped)
        and head.shape[0] == 3 and head.shape[1] == 5
        and head.flags & ALIGNED_AND_CONTIGUOUS == ALIGNED_AND_CONTIGUOUS
        and head_of(transposed).flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS
    )


cdef inline ArrayHead *head_of(array):
    return <ArrayHead *><PyObject *>array


cdef inline bint is_native(const DtypeHead *dtype) noexcept nogil:
    """Return True if numbers are in this machine's byte order, or have one byte."""
    return dtype.byteorder == c"=" or dtype.byteorder == c"|"


cdef inline bint holds_nan(const void *numbers, int real_bytes, Py_ssize_t count) noexcept nogil:
    """Return True if any of ``count`` floats is NaN. Floats of more than 8 bytes are not checked."""
    cdef const uint16_t *halves = <const uint16_t *>numbers
    cdef const float *singles = <const float *>numbers
    cdef const double *doubles = <const double *>numbers
    cdef int found = 0
    cdef Py_ssize_t i
    if real_bytes == 4:
        for i in range(count):
            found |= singles[i] != singles[i]
    elif real_bytes == 8:
        for i in range(count):
            found |= doubles[i] != doubles[i]
    elif real_bytes == 2:
        for i in range(count):
            found |= (halves[i] & 0x7FFF) > 0x7C00
    return found
