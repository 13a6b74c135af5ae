"""Conversion of flat actions to the environment's actions, by a tree of the action space."""

from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy

from pufferlib.native._arrays cimport head_of

import numpy as np
from gymnasium.spaces import Dict, Discrete, OneOf, Text, Tuple

from pufferlib.errors import APIUsageError


cdef class ActionNode:
    """Builder of actions of one space from adjacent elements of a flat action.

    Args:
        space: Action space.
        flat_dtype: Dtype of the flat action.
    """

    def __cinit__(self, space, flat_dtype):
        self.item_bytes, self.is_real = flat_dtype.itemsize, flat_dtype.kind == "f"
        self.count = 1
        if isinstance(space, Discrete):
            self.kind = AN_INTEGER
        elif isinstance(space, (Dict, Tuple, OneOf)):
            self.kind = MAPPING if isinstance(space, Dict) else SEQUENCE if isinstance(space, Tuple) else CHOICE
            inside = space.spaces.values() if self.kind == MAPPING else space.spaces
            self.keys = tuple(space.spaces) if self.kind == MAPPING else ()
            self.children = tuple([ActionNode(child, flat_dtype) for child in inside])
            self.count = sum([(<ActionNode>child).count for child in self.children]) + (self.kind == CHOICE)
        elif isinstance(space, Text):
            self.kind = STRING
            self.characters = "".join(sorted(space.character_set))
            self.count = 1 + space.max_length
        else:
            is_real = space.dtype.kind == "f"
            self.kind = AS_IT_IS if is_real or flat_dtype == space.dtype else INTEGERS
            self.template = np.zeros(space.shape, flat_dtype if self.kind == AS_IT_IS else space.dtype)
            self.dtype = space.dtype if self.template.dtype != space.dtype else None
            self.count = self.template.size

    cdef object build(self, const char *numbers):
        if self.kind == AN_INTEGER:
            return self.integer(numbers, 0)
        if self.template is not None:
            return self.build_array(numbers)
        if self.kind == CHOICE:
            return self.build_choice(numbers)
        if self.kind == STRING:
            return self.build_string(numbers)
        parts = []
        for child in self.children:
            parts.append((<ActionNode>child).build(numbers))
            numbers += (<ActionNode>child).count * self.item_bytes
        return dict(zip(self.keys, parts)) if self.kind == MAPPING else tuple(parts)

    cdef object build_array(self, const char *numbers):
        cdef Py_ssize_t i
        array = self.template.copy()
        if self.kind == AS_IT_IS:
            memcpy(head_of(array).data, numbers, self.count * self.item_bytes)
            return array if self.dtype is None else array.astype(self.dtype)
        for i in range(self.count):
            write_integer(head_of(array).data, i, array.itemsize, self.integer(numbers, i))
        return array

    cdef object build_choice(self, const char *numbers):
        """Return the index of the chosen option and its action. The elements of other options are ignored."""
        cdef Py_ssize_t i, start = 1
        cdef int32_t index = self.integer(numbers, 0)
        for i in range(index):
            start += (<ActionNode>self.children[i]).count
        return index, (<ActionNode>self.children[index]).build(numbers + start * self.item_bytes)

    cdef object build_string(self, const char *numbers):
        """Return a string whose length is the first element. Elements beyond this length are ignored."""
        cdef Py_ssize_t i
        return "".join([self.characters[self.integer(numbers, 1 + i)] for i in range(self.integer(numbers, 0))])

    cdef inline int32_t integer(self, const char *numbers, Py_ssize_t place) noexcept:
        if not self.is_real:
            return (<const int32_t *>numbers)[place]
        if self.item_bytes == sizeof(float):
            return <int32_t>(<const float *>numbers)[place]
        return <int32_t>(<const double *>numbers)[place]


cdef inline void write_integer(char *array, Py_ssize_t place, int itemsize, int32_t number) noexcept:
    """Write a number that fits into ``itemsize`` bytes, signed or unsigned."""
    if itemsize == 1:
        array[place] = <char>number
    elif itemsize == 2:
        (<uint16_t *>array)[place] = <uint16_t>number
    elif itemsize == 4:
        (<int32_t *>array)[place] = number
    else:
        (<int64_t *>array)[place] = number


cdef class ActionReader:
    """Converter of flat actions to the environment's actions.

    A Discrete becomes a Python int (numpy integers slow environments down), MultiDiscrete, MultiBinary and Box become a
    new array, Dict and Tuple a dict and tuple, OneOf a pair of index and action of the option, and Text a str.

    Args:
        layout: ``Layout`` of the actions.
        flat_dtype: Dtype of the flat actions: int32, or the dtype of a Box. Integers among floats are converted.
    """

    def __cinit__(self, layout, flat_dtype):
        self.flat_dtype = flat_dtype
        self.is_int32 = flat_dtype == np.int32
        self.is_single = flat_dtype == np.float32
        self.root = ActionNode(layout.space, flat_dtype)
        self.row_bytes = self.root.count * flat_dtype.itemsize
        self.leaves = tuple([leaf for leaf in layout.leaves for _ in range(leaf.count)])
        bounds = [leaf.bounds for leaf in layout.leaves]
        self.low, self.high = (
            np.concatenate([side[place].ravel() for side in bounds]).astype(flat_dtype) for place in range(2)
        )
        self.bounds = list(zip(self.low.tolist(), self.high.tolist()))

    def read(self, list values):
        """Return the action for ``values``, the integers of all leaves in order.

        Raises:
            APIUsageError: The number of values is wrong, or one is out of range.
        """
        if len(values) != self.root.count:
            raise APIUsageError(f"emulation: an action must have {self.root.count} integers, got {len(values)}")
        for place, (low, high) in enumerate(self.bounds):
            if not low <= values[place] <= high:
                raise APIUsageError(
                    f"emulation: {self.leaves[place].name} must be in {low} to {high}, got {values[place]}; "
                    "choose actions from the action space"
                )
        return self.read_array(np.array(values, self.flat_dtype))

    def read_array(self, array):
        """Return the action for an array of ``flat_dtype`` whose values are in range.

        Raises:
            APIUsageError: The array has the wrong size, or is not contiguous.
        """
        self.check_array(array)
        return self.root.build(head_of(array).data)

    def is_in_range(self, array):
        """Return whether each element of a flat action is in range, which NaN never is."""
        cdef Py_ssize_t i
        cdef int inside = 1
        self.check_array(array)
        if not self.is_single:
            flat = array.ravel()
            return bool(((flat >= self.low) & (flat <= self.high)).all())
        numbers = <const float *>head_of(array).data
        low, high = <const float *>head_of(self.low).data, <const float *>head_of(self.high).data
        for i in range(self.root.count):
            inside &= (numbers[i] >= low[i]) & (numbers[i] <= high[i])
        return bool(inside)

    cdef int check_array(self, array) except -1:
        if array.dtype != self.flat_dtype or array.nbytes != self.row_bytes or not array.flags.c_contiguous:
            raise APIUsageError(
                f"emulation: an action must be {self.root.count} contiguous {self.flat_dtype}, "
                f"got {array.dtype} of shape {array.shape}"
            )
        return 0

    cdef object read_row(self, const char *row):
        """Return the action in a row of the batch. Float actions must be checked before."""
        cdef Py_ssize_t i
        if self.is_int32:
            numbers = <const int32_t *>row
            low, high = <const int32_t *>head_of(self.low).data, <const int32_t *>head_of(self.high).data
            for i in range(self.root.count):
                if not low[i] <= numbers[i] <= high[i]:
                    return self.read([numbers[i] for i in range(self.root.count)])  # raises with a message
        return self.root.build(row)
