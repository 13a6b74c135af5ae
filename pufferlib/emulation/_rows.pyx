# cython: auto_pickle=False
"""Rows that emulated environments write into, and operations on them in every step."""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject, PyObject_GenericSetAttr
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from pufferlib.emulation._pack cimport Packer
from pufferlib.native._arrays cimport Int64, heads_match_numpy

import numpy as np
from gymnasium.spaces import Discrete

from pufferlib.emulation.dtypes import SEVERAL_AGENTS
from pufferlib.errors import APIUsageError

cdef bint heads_are_readable = heads_match_numpy()
cdef object ndarray = np.ndarray
cdef object int64_type = np.int64
cdef object numpy_true = np.True_  # True_ and False_ are singletons
cdef object numpy_false = np.False_

cdef dict places = {
    "observations": OBSERVATIONS,
    "final_observations": FINAL_OBSERVATIONS,
    "actions": ROW_ACTIONS,
    "rewards": REWARDS,
    "terminals": TERMINALS,
    "truncations": TRUNCATIONS,
    "masks": MASKS,
}
cdef tuple formats = (None, None, None, "f", "?", "?", "?")


cdef class Rows:
    """Arrays that one environment writes into, accessed by address.

    Each array is kept alive until another one replaces it.
    """

    def __dealloc__(self):
        for place in range(NUM_ARRAYS):
            PyBuffer_Release(&self.views[place])

    cdef int bind_all(self, dict arrays) except -1:
        """Bind the arrays of one environment, which define the number of rows."""
        self.num_rows = len(arrays["masks"])
        self.row_bytes = arrays["observations"].nbytes // self.num_rows
        for name in places:
            self.bind(name, arrays[name])
        return 0

    cdef int bind(self, str name, array) except -1:
        cdef Py_buffer view
        cdef int place = places[name]
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT)
        if not self.fits(place, &view):
            PyBuffer_Release(&view)
            raise APIUsageError(
                f"{type(self).__name__}: {name} must have {self.num_rows} rows as the spaces describe them, "
                f"got an array of shape {array.shape} and dtype {array.dtype}; leave the arrays to set_buffers"
            )
        PyBuffer_Release(&self.views[place])
        self.views[place] = view
        return 0

    cdef bint fits(self, int place, const Py_buffer *view):
        if view.ndim < 1 or view.shape[0] != self.num_rows:
            return False
        if place <= FINAL_OBSERVATIONS:
            return view.len == self.num_rows * self.row_bytes
        return place == ROW_ACTIONS or view.format.decode() == formats[place]

    cdef int check_complete(self) except -1:
        for place in range(NUM_ARRAYS):
            if self.views[place].buf is NULL:
                raise APIUsageError(f"{type(self).__name__}: an array to write into is missing; call set_buffers first")
        return 0

    cdef void clear_outcome(self) noexcept:
        """Set rewards to 0 and end flags to False."""
        memset(self.at(REWARDS), 0, self.num_rows * sizeof(float))
        memset(self.at(TERMINALS), 0, self.num_rows)
        memset(self.at(TRUNCATIONS), 0, self.num_rows)

    cdef void show_ended(self) noexcept:
        """Mark all agents as absent. The last observations stay."""
        self.clear_outcome()
        memset(self.at(MASKS), 0, self.num_rows)

    cdef bint copy_final_observations(self) noexcept:
        """Copy the final observations of agents that ended and mark them as absent. Return whether any ended."""
        cdef bint any_ended = False
        cdef Py_ssize_t row, start
        cdef const char *terminals = self.at(TERMINALS)
        cdef const char *truncations = self.at(TRUNCATIONS)
        cdef char *masks = self.at(MASKS)
        for row in range(self.num_rows):
            if terminals[row] or truncations[row]:
                any_ended = True
                masks[row] = False
                start = row * self.row_bytes
                memcpy(self.at(FINAL_OBSERVATIONS) + start, self.at(OBSERVATIONS) + start, self.row_bytes)
        return any_ended


cdef class EmulatedRows(Rows):
    """Base class of emulated environments with their compiled parts.

    ``env``, the arrays, and whether ``step`` or ``done`` were replaced are recorded when they are set, so
    that steps need not look them up.
    """

    def __cinit__(self):
        self.is_over = True

    def _prepare(self, layout, actions, decoder, Py_ssize_t num_rows, bint is_shared):
        """Set the layouts of observations and actions and the number of rows. Call once, before the arrays are set."""
        self.layout = layout
        self.packer = Packer(layout)
        self.decoder, self.reader = decoder, decoder.reader
        self.num_rows, self.is_shared = num_rows, is_shared
        self.row_bytes = layout.dtype.itemsize
        self.checked_array = bytearray(num_rows)
        self.is_checked = self.checked_array
        self.low, self.high = 0, -1
        if isinstance(actions.space, Discrete):
            self.low = actions.space.start
            self.high = self.low + actions.space.n - 1

    def __setattr__(self, str name, value):
        if name in places:
            self.bind(name, value)
            self.bound(name, value)
        elif name == "env":
            self.wrapped = value
        elif name == "step" or name == "done":
            self.replaced = True
        PyObject_GenericSetAttr(self, name, value)

    cdef bound(self, str name, array):
        """Handle a newly bound array."""
        if name == "actions":
            as_expected = array.dtype == self.reader.flat_dtype and array.nbytes == self.num_rows * self.reader.row_bytes
            self.action_rows = None if as_expected else [array[row, ...] for row in range(self.num_rows)]

    def _progress(self):
        """Return the episode state that the rows do not hold, for copies."""
        return (self.is_over,)

    def _resume(self, tuple progress):
        """Restore the state of ``_progress``."""
        (self.is_over,) = progress

    cdef object act_on_rows(self):
        """Step with the actions in the rows. Return the info."""
        raise NotImplementedError

    cdef object action_of(self, value):
        """Convert an action of any accepted type to the environment's action."""
        cdef int overflow = 0
        cdef int64_t number
        if self.low <= self.high:
            if type(value) is int:
                number = PyLong_AsLongLongAndOverflow(value, &overflow)
                if not overflow and self.low <= number <= self.high:
                    return value
            elif type(value) is int64_type and heads_are_readable:
                number = (<const Int64 *><PyObject *>value).number
                if self.low <= number <= self.high:
                    return number
        return self.decoder.decode(value)

    cdef double real_of(self, reward) except? -1:
        """Convert a number of any type, or an array with one element, to a float."""
        try:
            return PyFloat_AsDouble(reward.item() if isinstance(reward, ndarray) else reward)
        except (TypeError, ValueError):
            raise self.no_reward(reward) from None

    cdef object no_reward(self, reward):
        return APIUsageError(
            f"emulation: the reward must be a finite number that float32 can hold, got {reward!r} from {self.wrapped}; "
            f"return a float, and look for a division by zero if it is nan or infinite{hint_at_several(reward)}"
        )

    cdef bint other_flag(self, str name, value) except -1:
        if value is numpy_false:
            return False
        if value is numpy_true:
            return True
        # Do not use truth values, because any nonempty string or list would count as True.
        try:
            number = value.item() if hasattr(value, "item") else value
        except (TypeError, ValueError):
            number = None
        if not isinstance(number, (bool, int, float)) or number not in (0, 1):
            raise APIUsageError(
                f"emulation: {name} must be True or False, got {value!r} from {self.wrapped}; return a bool"
                f"{hint_at_several(value)}"
            )
        return bool(number)

    cdef tuple other_outcome(self, outcome):
        return five_values(
            outcome, "emulation", "observation, reward, terminated, truncated and info",
            f" from {self.wrapped}; convert one of an older API with pufferlib.GymToGymnasium or PettingZooTruncatedWrapper",
        )


cdef str hint_at_several(value):
    """Return advice for a value that seems to belong to several agents, or an empty string."""
    is_several = isinstance(value, (list, tuple, dict)) or isinstance(value, ndarray) and value.size > 1
    return f"; {SEVERAL_AGENTS}" if is_several else ""


cdef tuple five_values(outcome, str where, str values, str advice):
    """Return the result of a ``step`` as a tuple of five values, or raise."""
    if isinstance(outcome, (tuple, list)) and len(outcome) == 5:
        return tuple(outcome)
    got = f"{len(outcome)} values" if isinstance(outcome, (tuple, list)) else f"{outcome!r:.80}"
    raise APIUsageError(f"{where}: step must return {values}, got {got}{advice}")
