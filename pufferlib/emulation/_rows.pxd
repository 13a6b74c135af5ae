from libc.float cimport FLT_MAX
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

from pufferlib.emulation._pack cimport Packer
from pufferlib.emulation._unpack cimport ActionReader

cdef enum:
    OBSERVATIONS, FINAL_OBSERVATIONS, ROW_ACTIONS, REWARDS, TERMINALS, TRUNCATIONS, MASKS, NUM_ARRAYS


cdef class Rows:
    cdef Py_buffer views[NUM_ARRAYS]
    cdef Py_ssize_t num_rows
    cdef Py_ssize_t row_bytes  # of an observation

    cdef int bind_all(self, dict arrays) except -1
    cdef int bind(self, str name, array) except -1
    cdef bint fits(self, int place, const Py_buffer *view)
    cdef int check_complete(self) except -1
    cdef void clear_outcome(self) noexcept
    cdef void show_ended(self) noexcept
    cdef bint copy_final_observations(self) noexcept

    cdef inline char *at(self, int place) noexcept:
        return <char *>self.views[place].buf


cdef class EmulatedRows(Rows):
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

    cdef bound(self, str name, array)
    cdef object act_on_rows(self)
    cdef object action_of(self, value)
    cdef double real_of(self, reward) except? -1
    cdef object no_reward(self, reward)
    cdef bint other_flag(self, str name, value) except -1
    cdef tuple other_outcome(self, outcome)

    # What every step does is here, so that the compilers of the modules that step can inline it.

    cdef inline object action_in(self, Py_ssize_t row):
        """The action in a row as the environment takes it."""
        if self.action_rows is not None:
            return self.decoder.decode(self.action_rows[row])
        if self.low > self.high:
            return self.reader.read_row(self.at(ROW_ACTIONS) + row * self.reader.row_bytes)
        cdef int32_t number = (<int32_t *>self.at(ROW_ACTIONS))[row]
        return number if self.low <= number <= self.high else self.decoder.decode(number)

    cdef inline tuple step_wrapped(self, action):
        """The five values that the environment's ``step`` returns."""
        outcome = self.wrapped.step(action)
        return <tuple>outcome if type(outcome) is tuple and len(<tuple>outcome) == 5 else self.other_outcome(outcome)

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

    cdef inline object number_of(self, reward):
        """The environment's own reward; a float if it is no number of Python, as an array is none."""
        return reward if isinstance(reward, (float, int)) else self.real_of(reward)

    cdef inline bint flag_of(self, str name, value) except -1:
        """Tell if an episode is said to have ended."""
        if value is False:
            return False
        if value is True:
            return True
        return self.other_flag(name, value)


cdef tuple five_values(outcome, str where, str values, str advice)
