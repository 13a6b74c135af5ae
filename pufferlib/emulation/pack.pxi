# Nested values to flat rows and back, walking a table of leaves (emulation/layout.py).

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t
from libc.string cimport memcpy

import numpy as np
from gymnasium.spaces import Dict, Discrete, Tuple

from pufferlib.errors import APIUsageError

# Asking an array for a buffer costs 100 ns and more, most of a small copy. These fields cost
# nothing, and they are the same in every numpy from 1.0 on, since each extension compiled against
# any of them reads them in place. is_as_expected() checks it once all the same.
cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        char *data;
        int ndim;
        Py_ssize_t *shape;
        Py_ssize_t *strides;
        PyObject *base;
        PyObject *dtype;
        int flags;
    } PufferArrayHead;
    """
    ctypedef struct ArrayHead "PufferArrayHead":
        char *data
        int ndim
        Py_ssize_t *shape
        PyObject *dtype
        int flags

cdef enum:
    ALIGNED_AND_CONTIGUOUS = 0x101  # NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS
    MAX_NDIM = 64  # of numpy 2

cdef object ndarray = np.ndarray
cdef object int64_dtype = np.dtype(np.int64)


cdef bint is_as_expected():
    """Whether this numpy's arrays begin as ArrayHead says; if not, every leaf takes the slow path."""
    probe = np.zeros((3, 5), np.int16)
    dtype = probe.dtype
    head = <ArrayHead *><PyObject *>probe
    return (
        head.ndim == 2 and <size_t>head.data == <size_t>probe.ctypes.data and head.dtype == <PyObject *>dtype
        and head.shape[0] == 3 and head.shape[1] == 5
        and head.flags & ALIGNED_AND_CONTIGUOUS == ALIGNED_AND_CONTIGUOUS
        and (<ArrayHead *><PyObject *>probe.T).flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS
    )

cdef bint heads_are_readable = is_as_expected()


cdef struct LeafSlot:
    Py_ssize_t offset
    Py_ssize_t nbytes
    Py_ssize_t itemsize
    Py_ssize_t count
    int ndim
    Py_ssize_t shape[MAX_NDIM]
    PyObject *dtype  # borrowed from the leaf
    bint scalar_integer
    bint is_int32


cdef class Packer:
    """Copies nested samples into the rows of a batch of flat ones.

    Arrays of the right dtype and shape are copied at once; anything else goes through
    ``Leaf.convert``, which converts it or says what is wrong. No value can write outside its row.

    Args:
        layout: The ``Layout`` of the samples.
    """

    cdef tuple _leaves
    cdef tuple _paths
    cdef LeafSlot *_slots
    cdef Py_ssize_t _row_bytes
    cdef object _batch
    cdef Py_buffer _view

    def __cinit__(self, layout):
        self._leaves = layout.leaves
        self._row_bytes = layout.dtype.itemsize
        self._paths = tuple([leaf.path for leaf in self._leaves])
        self._slots = <LeafSlot *>PyMem_Calloc(len(self._leaves), sizeof(LeafSlot))
        if self._slots == NULL:
            raise MemoryError()
        for position, leaf in enumerate(self._leaves):
            fill_slot(&self._slots[position], leaf)

    def __dealloc__(self):
        PyMem_Free(self._slots)
        if self._batch is not None:
            PyBuffer_Release(&self._view)

    cdef _bind(self, batch):
        if self._batch is not None:
            self._batch = None
            PyBuffer_Release(&self._view)
        PyObject_GetBuffer(batch, &self._view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        if self._view.ndim < 1 or self._view.len != self._view.shape[0] * self._row_bytes:
            PyBuffer_Release(&self._view)
            raise APIUsageError(
                f"emulation: the rows of a batch must have {self._row_bytes} bytes, "
                f"got an array of shape {batch.shape} and dtype {batch.dtype}; leave the arrays to set_buffers"
            )
        self._batch = batch

    def pack(self, batch, Py_ssize_t row, sample):
        """Write ``sample`` into ``batch[row]``, a C-contiguous array of flat rows.

        Raises:
            APIUsageError: A leaf is missing or does not fit, and the row may be partly written; or
                the rows are not of the layout's size.
        """
        cdef Py_ssize_t position
        cdef LeafSlot *slot
        cdef char *start
        if batch is not self._batch:
            self._bind(batch)
        if row < 0 or row >= self._view.shape[0]:
            raise IndexError(f"pack: row {row} of a batch of {self._view.shape[0]}")
        start = <char *>self._view.buf + row * self._view.strides[0]
        for position in range(len(self._leaves)):
            slot = &self._slots[position]
            value = find_leaf(sample, <tuple>self._paths[position], self._leaves[position])
            if type(value) is ndarray and heads_are_readable:
                if copy_array(slot, start + slot.offset, value):
                    continue
            elif slot.scalar_integer and copy_integer(slot, start + slot.offset, value):
                continue
            copy_converted(slot, start + slot.offset, self._leaves[position].convert(value))


cdef fill_slot(LeafSlot *slot, leaf):
    dtype = leaf.dtype
    slot.offset = leaf.offset
    slot.nbytes = leaf.nbytes
    slot.itemsize = dtype.itemsize
    slot.count = leaf.count
    slot.ndim = len(leaf.shape)
    for axis in range(slot.ndim):
        slot.shape[axis] = leaf.shape[axis]
    slot.dtype = <PyObject *>dtype
    slot.scalar_integer = isinstance(leaf.space, Discrete)
    slot.is_int32 = dtype == np.int32


cdef object find_leaf(sample, tuple path, leaf):
    """The value at ``path`` inside ``sample``."""
    value = sample
    try:
        for key in path:
            value = value[key]
    except (LookupError, TypeError):
        raise leaf.error("a value", f"no {key!r} in {type(value).__name__}") from None
    return value


cdef bint copy_array(const LeafSlot *slot, char *target, value):
    """Copy an array that needs at most to be narrowed; False when it needs more than that."""
    cdef int axis
    head = <const ArrayHead *><PyObject *>value
    if head.ndim != slot.ndim or head.flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS:
        return False
    for axis in range(slot.ndim):
        if head.shape[axis] != slot.shape[axis]:
            return False
    if head.dtype == slot.dtype:
        memcpy(target, head.data, slot.nbytes)
        return True
    if slot.is_int32 and head.dtype == <PyObject *>int64_dtype:
        return copy_narrowed(<const int64_t *>head.data, <int32_t *>target, slot.count)
    return False


cdef bint copy_narrowed(const int64_t *source, int32_t *target, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if not INT32_MIN <= source[i] <= INT32_MAX:
            return False
        target[i] = <int32_t>source[i]
    return True


cdef bint copy_integer(const LeafSlot *slot, char *target, value) except -1:
    """Copy a Python or numpy integer; False when it is none, or too large."""
    cdef int64_t number
    try:
        number = PyNumber_Index(value)
    except (TypeError, OverflowError):
        return False
    if not slot.is_int32:
        (<int64_t *>target)[0] = number
    elif INT32_MIN <= number <= INT32_MAX:
        (<int32_t *>target)[0] = <int32_t>number
    else:
        return False
    return True


cdef copy_converted(const LeafSlot *slot, char *target, array):
    """Copy what ``Leaf.convert`` returned: contiguous, of the right shape and dtype."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS)
    memcpy(target, view.buf, min(view.len, slot.nbytes))
    PyBuffer_Release(&view)


cdef class ActionReader:
    """Turns flat integer actions into what an environment takes.

    A Discrete gives a Python int (numpy's integers slow environments down), MultiDiscrete and
    MultiBinary a fresh array, Dict and Tuple their like.

    Args:
        layout: The ``Layout`` of the actions; its leaves are discrete.
    """

    cdef object _space
    cdef tuple _leaves
    cdef list _low
    cdef list _high

    def __cinit__(self, layout):
        self._space = layout.space
        self._leaves = tuple([leaf for leaf in layout.leaves for _ in range(leaf.count)])
        self._low = [int(low) for leaf in layout.leaves for low in leaf.bounds[0].ravel()]
        self._high = [int(high) for leaf in layout.leaves for high in leaf.bounds[1].ravel()]

    def read(self, list values):
        """The nested action of ``values``, the integers of all leaves in their order.

        Raises:
            APIUsageError: Too few or too many values, or one out of its range.
        """
        cdef Py_ssize_t i
        if len(values) != len(self._low):
            raise APIUsageError(f"emulation: an action must have {len(self._low)} integers, got {len(values)}")
        for i in range(len(self._low)):
            if not self._low[i] <= values[i] <= self._high[i]:
                raise APIUsageError(
                    f"emulation: {self._leaves[i].name} must be in {self._low[i]} to {self._high[i]}, "
                    f"got {values[i]}; choose actions from the action space"
                )
        return build_action(self._space, iter(values))


cdef object build_action(space, values):
    if isinstance(space, Discrete):
        return next(values)
    if isinstance(space, Dict):
        return {key: build_action(child, values) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple([build_action(child, values) for child in space.spaces])
    array = np.empty(space.shape, space.dtype)
    array.flat = [next(values) for _ in range(array.size)]
    return array
