# A step of an emulated environment: its action taken from a row, what comes of it written there.

from cpython.buffer cimport PyBUF_FORMAT
from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AsDouble
from libc.string cimport memset

from collections.abc import Mapping

from pufferlib.errors import InvalidAgentError

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object owner, object name, object value) except -1

cdef enum:
    OBSERVATIONS, FINAL_OBSERVATIONS, ROW_ACTIONS, REWARDS, TERMINALS, TRUNCATIONS, MASKS, NUM_ARRAYS

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
    """The arrays that one environment writes into, found by their addresses.

    An array is held until another one takes its place.
    """

    cdef Py_buffer views[NUM_ARRAYS]
    cdef Py_ssize_t num_rows
    cdef Py_ssize_t row_bytes  # of an observation

    def __dealloc__(self):
        for place in range(NUM_ARRAYS):
            PyBuffer_Release(&self.views[place])

    cdef int adopt(self, str name, array) except -1:
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

    cdef inline char *at(self, int place) noexcept:
        return <char *>self.views[place].buf

    cdef int check_complete(self) except -1:
        for place in range(NUM_ARRAYS):
            if self.views[place].buf is NULL:
                raise APIUsageError(f"{type(self).__name__}: an array to write into is missing; call set_buffers first")
        return 0

    cdef void clear_outcome(self) noexcept:
        """Show reward 0 and no ends."""
        memset(self.at(REWARDS), 0, self.num_rows * sizeof(float))
        memset(self.at(TERMINALS), 0, self.num_rows)
        memset(self.at(TRUNCATIONS), 0, self.num_rows)

    cdef void show_ended(self) noexcept:
        """Show that nobody acts any more; the last observations stay."""
        self.clear_outcome()
        memset(self.at(MASKS), 0, self.num_rows)

    cdef bint keep_final(self) noexcept:
        """Keep the last observation of whoever ended, who is absent from now on; False if nobody has."""
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
    """What emulated environments have in common, and what they do in C.

    ``env``, the arrays, and whether ``step`` or ``done`` were replaced are noted as they are set, so
    that a step need not look them up.
    """

    cdef object wrapped
    cdef object layout
    cdef Packer packer
    cdef object decoder
    cdef ActionReader reader
    cdef list action_rows  # None if their type is as it should be, and they are read in place
    cdef int64_t low, high  # of a Discrete action; low > high for any other
    cdef bint is_shared  # the rows belong to a batch, whose owner looks at them there
    cdef bint checked  # the first observation
    cdef bint replaced  # step or done
    cdef bint is_over  # reset must come next

    def __cinit__(self):
        self.is_over = True

    def _prepare(self, layout, actions, decoder, Py_ssize_t num_rows, bint is_shared):
        """Tell the layouts of observations and actions, and whose the rows are, once, before the arrays are set."""
        self.layout = layout
        self.packer = Packer(layout)
        self.decoder, self.reader = decoder, decoder.reader
        self.num_rows, self.is_shared = num_rows, is_shared
        self.row_bytes = layout.dtype.itemsize
        self.low, self.high = 0, -1
        if isinstance(actions.space, Discrete):
            self.low = actions.space.start
            self.high = self.low + actions.space.n - 1

    def __setattr__(self, str name, value):
        if name in places:
            self.adopt(name, value)
            self.adopted(name, value)
        elif name == "env":
            self.wrapped = value
        elif name == "step" or name == "done":
            self.replaced = True
        PyObject_GenericSetAttr(self, name, value)

    cdef adopted(self, str name, array):
        """Called when an array was adopted."""
        if name == "actions":
            as_expected = array.dtype == self.reader.flat_dtype and array.nbytes == self.num_rows * self.reader.row_bytes
            self.action_rows = None if as_expected else [array[row, ...] for row in range(self.num_rows)]

    cdef object act_on_rows(self):
        """Step with the actions that stand in the rows. Returns the info."""
        raise NotImplementedError

    cdef inline object action_in(self, Py_ssize_t row):
        """The action in a row as the environment takes it."""
        if self.action_rows is not None:
            return self.decoder.decode(self.action_rows[row])
        if self.low > self.high:
            return self.reader.read_row(self.at(ROW_ACTIONS) + row * self.reader.row_bytes)
        cdef int32_t number = (<int32_t *>self.at(ROW_ACTIONS))[row]
        return number if self.low <= number <= self.high else self.decoder.decode(number)

    cdef object action_of(self, value):
        """An action as the environment takes it, given any way a caller may."""
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

    cdef inline int show(self, Py_ssize_t row, observation, bint is_first) except -1:
        """Write an observation into its row."""
        if not self.checked:
            self.layout.check(observation)
            self.checked = True
        return self.packer.write(self.at(OBSERVATIONS) + row * self.row_bytes, observation, is_first)

    cdef inline int write_reward(self, Py_ssize_t row, reward) except -1:
        cdef double number = <double>reward if type(reward) is float else self.real_of(reward)
        if not fabs(number) <= FLT_MAX:  # nan is not, either
            raise self.no_reward(reward)
        (<float *>self.at(REWARDS))[row] = <float>number
        return 0

    cdef double real_of(self, reward) except? -1:
        """A number of any kind, or an array of one."""
        try:
            return PyFloat_AsDouble(reward.item() if isinstance(reward, ndarray) else reward)
        except (TypeError, ValueError):
            raise self.no_reward(reward) from None

    cdef inline object number_of(self, reward):
        """The environment's own reward; a float if it is no number of Python, as an array is none."""
        return reward if isinstance(reward, (float, int)) else self.real_of(reward)

    cdef object no_reward(self, reward):
        return APIUsageError(
            f"emulation: the reward must be a finite number that float32 can hold, got {reward!r} from {self.wrapped}; "
            "return a float, and look for a division by zero if it is nan or infinite"
        )

    cdef inline bint flag_of(self, str name, value) except -1:
        """Whether an episode is said to have ended."""
        if value is False or value is numpy_false:
            return False
        if value is True or value is numpy_true:
            return True
        return self.unusual_flag(name, value)

    cdef bint unusual_flag(self, str name, value) except -1:
        # A string or a list would count as true whatever it says.
        try:
            number = value.item() if hasattr(value, "item") else value
        except (TypeError, ValueError):
            number = None
        if not isinstance(number, (bool, int, float)) or number not in (0, 1):
            raise APIUsageError(
                f"emulation: {name} must be True or False, got {value!r} from {self.wrapped}; return a bool"
            )
        return bool(number)

    cdef inline tuple step_wrapped(self, action):
        """The five values that the environment's ``step`` returns."""
        outcome = self.wrapped.step(action)
        if type(outcome) is not tuple or len(<tuple>outcome) != 5:
            outcome = five_values(outcome, "emulation", "observation, reward, terminated, truncated and info",
                                  f" from {self.wrapped}; convert one of an older API with pufferlib.GymToGymnasium or PettingZooTruncatedWrapper")
        return <tuple>outcome


cdef tuple five_values(outcome, str where, str values, str advice):
    """What a ``step`` returned, as a tuple of ``values``, if that is possible."""
    if isinstance(outcome, (tuple, list)) and len(outcome) == 5:
        return tuple(outcome)
    got = f"{len(outcome)} values" if isinstance(outcome, (tuple, list)) else f"{outcome!r:.80}"
    raise APIUsageError(f"{where}: step must return {values}, got {got}{advice}")


cdef class GymnasiumStep(EmulatedRows):
    """``step`` and ``done`` of a Gymnasium environment on one row."""

    cdef object row  # a view of it

    cdef adopted(self, str name, array):
        EmulatedRows.adopted(self, name, array)
        if name == "observations":
            self.row = array[0, ...]

    @property
    def done(self):
        """Whether ``reset`` must come next: before the first episode, and after each one's end."""
        return self.is_over

    def _begin(self, observation):
        """Show the first observation of an episode. Returns what ``reset`` gives away of it."""
        self.is_over = True  # until all is well
        self.check_complete()
        self.show(0, observation, True)
        self.clear_outcome()
        self.at(MASKS)[0] = True
        self.is_over = False
        return self.shown()

    cdef inline object shown(self):
        """The observation for the caller, who may keep it if the rows are in no batch."""
        return self.row if self.is_shared else self.row.copy()

    def step(self, action):
        """Act once.

        Args:
            action: A value of ``action_space``; any integer type, or a list, will do.

        Returns:
            The flat observation (a view of its row if that was given as ``buf``), the reward, terminated,
            truncated, and the info as the environment gave it.

        Raises:
            APIUsageError: The episode has not begun or is over, the action is not one, or the
                environment returned an observation that its space does not have, or a NaN.
        """
        if self.is_over:
            raise APIUsageError(f"{type(self).__name__}.step: no episode is running; call reset first")
        outcome = self.act(self.action_of(action))
        terminated, truncated = <bint>self.at(TERMINALS)[0], <bint>self.at(TRUNCATIONS)[0]
        return self.shown(), self.number_of(outcome[1]), terminated, truncated, outcome[4]

    cdef inline tuple act(self, action):
        cdef bint terminated, truncated
        outcome = self.step_wrapped(action)
        terminated = self.flag_of("terminated", outcome[2])
        truncated = self.flag_of("truncated", outcome[3])
        self.show(0, outcome[0], False)
        self.write_reward(0, outcome[1])
        self.at(TERMINALS)[0] = terminated
        self.at(TRUNCATIONS)[0] = truncated
        self.is_over = terminated or truncated
        return outcome

    cdef object act_on_rows(self):
        return self.act(self.action_in(0))[4]
