"""Copies of an array whose memory is reused when the caller has released them."""

from cpython.object cimport PyObject
from libc.string cimport memcpy

from pufferlib.native._arrays cimport ArrayHead, heads_match_numpy
from pufferlib.native._python cimport Py_REFCNT, PyList_GET_ITEM, PyList_GET_SIZE

cdef bint heads_are_readable = heads_match_numpy()

cdef enum:
    RING_SIZE = 3  # a training loop holds up to two: the last observation, and the next one


cdef class ArrayRing:
    """Ring of copies of one array, which callers may keep.

    A copy is also kept alive by its views and buffers. A caller that keeps every copy gets a new array each time.

    Args:
        source: C-contiguous array, whose memory must not move.
    """

    def __init__(self, source):
        self.source, self.nbytes = source, source.nbytes
        self.arrays = [source.copy()]
        head = <ArrayHead *>PyList_GET_ITEM(<PyObject *>self.arrays, 0)
        self.dtype, self.flags = <PyObject *>head.dtype, head.flags

    cdef object copy(self):
        """Return a copy of the source that is not referenced elsewhere."""
        cdef PyObject *array
        cdef Py_ssize_t turn, count = PyList_GET_SIZE(self.arrays)
        for turn in range(count):
            self.place = self.place + 1 if self.place + 1 < count else 0
            array = PyList_GET_ITEM(<PyObject *>self.arrays, self.place)
            if self.is_free(array):
                memcpy((<ArrayHead *>array).data, (<ArrayHead *><PyObject *>self.source).data, self.nbytes)
                return <object>array
        fresh = self.source.copy()
        if count < RING_SIZE:
            self.arrays.append(fresh)
        else:
            self.arrays[self.place] = fresh
        return fresh

    cdef bint is_free(self, PyObject *array) noexcept:
        """Return whether an array is not referenced elsewhere and still has its dtype, flags and shape."""
        cdef const ArrayHead *head = <const ArrayHead *>array
        cdef const ArrayHead *like = <const ArrayHead *><PyObject *>self.source
        cdef int axis
        if Py_REFCNT(array) != 1 or not heads_are_readable or head.weak_references is not NULL:
            return False
        if <PyObject *>head.dtype != self.dtype or head.flags != self.flags or head.ndim != like.ndim:
            return False
        for axis in range(head.ndim):
            if head.shape[axis] != like.shape[axis]:
                return False
        return True
