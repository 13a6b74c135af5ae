"""Conversion of nested values to flat rows, by a table of leaves (emulation/layout.py)."""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_GetItemWithError
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.float cimport FLT_MAX
from libc.math cimport fabs
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t
from libc.string cimport memcpy

from pufferlib.native._arrays cimport (
    ALIGNED_AND_CONTIGUOUS, ArrayHead, Int64, heads_match_numpy, holds_nan, is_native,
)

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from pufferlib.errors import APIUsageError

cdef bint heads_are_readable = heads_match_numpy()
cdef object ndarray = np.ndarray
cdef object int32_type = np.int32
cdef object int64_type = np.int64
cdef object float32_type = np.float32
cdef object float64_type = np.float64


cdef class Packer:
    """Copier of nested samples to rows of a batch.

    Arrays with the right dtype and shape are copied directly. Other values go through ``Leaf.convert``, which converts
    them or raises. No value can write outside its row.

    Args:
        layout: ``Layout`` of the samples.
    """

    def __cinit__(self, layout):
        self._leaves = layout.leaves
        self._row_bytes = layout.dtype.itemsize
        self._paths = tuple([leaf.path for leaf in self._leaves])
        self._num_leaves = len(self._leaves)
        self._slots = <LeafSlot *>PyMem_Calloc(self._num_leaves, sizeof(LeafSlot))
        if self._slots == NULL:
            raise MemoryError()
        for position, leaf in enumerate(self._leaves):
            fill_slot(&self._slots[position], leaf)
        self._is_one_leaf = self._paths == ((),) and self._row_bytes <= ALWAYS_CHECKED_BYTES

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
        """Write ``sample`` to ``batch[row]``, in a C-contiguous array of flat rows.

        Raises:
            APIUsageError: The rows do not have the layout's size, or a leaf is missing, does not fit or holds NaN. In
                the second case the row may be partly written.
        """
        if batch is not self._batch:
            self._bind(batch)
        if row < 0 or row >= self._view.shape[0]:
            raise IndexError(f"pack: row {row} of a batch of {self._view.shape[0]}")
        self.write(<char *>self._view.buf + row * self._row_bytes, sample, True)

    cdef int write(self, char *start, sample, bint check_all) except -1:
        """Write ``sample`` to the row at ``start``. If ``check_all``, also check large leaves for NaN."""
        if self._is_one_leaf and copy_exact(self._slots, start, <PyObject *>sample, True):
            return 0
        return self.write_leaves(start, sample, check_all)

    cdef int write_leaves(self, char *start, sample, bint check_all) except -1:
        cdef Py_ssize_t position
        cdef LeafSlot *slot
        cdef PyObject *value
        cdef bint check_nan
        cdef bint is_dict = type(sample) is dict
        for position in range(self._num_leaves):
            slot = &self._slots[position]
            check_nan = slot.real_bytes and (check_all or slot.nbytes <= ALWAYS_CHECKED_BYTES)
            if is_dict and slot.key is not NULL:  # the most common case, where borrowing is safe because no Python runs
                value = PyDict_GetItemWithError(sample, <object>slot.key)
                if value is not NULL and copy_exact(slot, start + slot.offset, value, check_nan):
                    continue
            self.write_leaf(position, start + slot.offset, self.find(position, sample), check_nan)
        return 0

    cdef int write_leaf(self, Py_ssize_t position, char *target, value, bint check_nan) except -1:
        """Write any value that a leaf accepts."""
        slot = &self._slots[position]
        if not copy_plain(slot, target, value):
            copy_converted(slot, target, self._leaves[position].convert(value))
        if check_nan and holds_nan(target, slot.real_bytes, slot.count):
            raise self._leaves[position].error("numbers", "nan")
        return 0

    cdef object find(self, Py_ssize_t position, sample):
        """Return the value of a leaf inside ``sample``."""
        cdef PyObject *found
        value = sample
        for key in self._paths[position]:
            if type(value) is dict:
                found = PyDict_GetItemWithError(value, key)
                if found is NULL:
                    raise missing_leaf(self._leaves[position], key, value)
                value = <object>found
            else:
                try:
                    value = value[key]
                except (LookupError, TypeError):
                    raise missing_leaf(self._leaves[position], key, value) from None
        return value


cdef fill_slot(LeafSlot *slot, leaf):
    dtype = leaf.dtype
    scalar_type = dtype.type
    slot.offset = leaf.offset
    slot.nbytes = leaf.nbytes
    slot.count = leaf.count
    slot.key = <PyObject *>leaf.path[0] if len(leaf.path) == 1 else NULL
    slot.ndim = len(leaf.shape)
    for axis in range(slot.ndim):
        slot.shape[axis] = leaf.shape[axis]
    slot.scalar_type = <PyObject *>scalar_type
    slot.is_array = dtype.isnative and isinstance(leaf.space, (Box, Discrete, MultiBinary, MultiDiscrete))
    slot.is_integer = isinstance(leaf.space, Discrete)
    slot.is_long = slot.is_integer and scalar_type is int64_type and dtype.isnative
    slot.real_bytes = dtype.itemsize if dtype.kind == "f" and dtype.isnative else 0


cdef object missing_leaf(leaf, key, value):
    return leaf.error("a value", f"no {key!r} in {type(value).__name__}")


cdef inline bint copy_plain(const LeafSlot *slot, char *target, value) except -1:
    """Copy a value unchanged or narrowed. Return False if it needs another conversion."""
    if type(value) is ndarray:
        return heads_are_readable and slot.is_array and copy_array(slot, target, value)
    return slot.is_integer and copy_integer(slot, target, value)


cdef inline bint copy_exact(const LeafSlot *slot, char *target, PyObject *value, bint check_nan) noexcept:
    """Copy a value of the exact dtype and shape, the fast path. Return False for any other value."""
    if not heads_are_readable:
        return False
    if <PyObject *>value.ob_type != <PyObject *>ndarray:
        if <PyObject *>value.ob_type != <PyObject *>int64_type or not slot.is_long:
            return False
        (<int64_t *>target)[0] = (<const Int64 *>value).number
        return True
    head = <const ArrayHead *>value
    if not slot.is_array or head.dtype.scalar_type != slot.scalar_type or not has_shape(head, slot) or not is_native(head.dtype):
        return False
    memcpy(target, head.data, slot.nbytes)
    return not check_nan or not holds_nan(target, slot.real_bytes, slot.count)


cdef inline bint has_shape(const ArrayHead *head, const LeafSlot *slot) noexcept:
    """Return whether an array is contiguous and has the shape of a leaf."""
    cdef int axis
    if head.ndim != slot.ndim or head.flags & ALIGNED_AND_CONTIGUOUS != ALIGNED_AND_CONTIGUOUS:
        return False
    for axis in range(slot.ndim):
        if head.shape[axis] != slot.shape[axis]:
            return False
    return True


cdef inline bint copy_array(const LeafSlot *slot, char *target, value):
    """Copy an array unchanged or narrowed. Return False if it needs another conversion."""
    head = <const ArrayHead *><PyObject *>value
    if not has_shape(head, slot) or not is_native(head.dtype):
        return False
    if head.dtype.scalar_type == slot.scalar_type:
        memcpy(target, head.data, slot.nbytes)
        return True
    if slot.scalar_type == <PyObject *>int32_type and head.dtype.scalar_type == <PyObject *>int64_type:
        return narrow_integers(<const int64_t *>head.data, <int32_t *>target, slot.count)
    if slot.scalar_type == <PyObject *>float32_type and head.dtype.scalar_type == <PyObject *>float64_type:
        return narrow_reals(<const double *>head.data, <float *>target, slot.count)
    return False


cdef bint narrow_integers(const int64_t *source, int32_t *target, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if not INT32_MIN <= source[i] <= INT32_MAX:
            return False
        target[i] = <int32_t>source[i]
    return True


cdef bint narrow_reals(const double *source, float *target, Py_ssize_t count) noexcept nogil:
    """Return False if a number is too large, which numpy then handles."""
    cdef Py_ssize_t i
    cdef int too_large = 0
    for i in range(count):
        too_large |= fabs(source[i]) > FLT_MAX
        target[i] = <float>source[i]
    return not too_large


cdef bint copy_integer(const LeafSlot *slot, char *target, value) except -1:
    """Copy a Python or numpy integer. Return False if it is not an integer, or too large."""
    cdef int overflow = 0
    cdef int64_t number
    if type(value) is int64_type and heads_are_readable:
        number = (<const Int64 *><PyObject *>value).number
    else:
        if type(value) is not int:
            try:
                value = PyNumber_Index(value)
            except TypeError:
                return False
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return False
    if slot.scalar_type == <PyObject *>int64_type:
        (<int64_t *>target)[0] = number
    elif slot.scalar_type == <PyObject *>int32_type and INT32_MIN <= number <= INT32_MAX:
        (<int32_t *>target)[0] = <int32_t>number
    else:
        return False
    return True


cdef copy_converted(const LeafSlot *slot, char *target, array):
    """Copy the result of ``Leaf.convert``, which is contiguous and has the right shape and dtype."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS)
    memcpy(target, view.buf, min(view.len, slot.nbytes))
    PyBuffer_Release(&view)
