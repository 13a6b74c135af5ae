from libc.stdint cimport int64_t

from pufferlib.emulation._pack cimport Packer
from pufferlib.emulation._unpack cimport ActionReader

cdef enum:
    OBSERVATIONS, FINAL_OBSERVATIONS, ROW_ACTIONS, REWARDS, TERMINALS, TRUNCATIONS, MASKS, NUM_ARRAYS


cdef class Rows:
    cdef Py_buffer views[NUM_ARRAYS]
    cdef Py_ssize_t num_rows
    cdef Py_ssize_t row_bytes  # bytes of one observation

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
    cdef list action_rows  # views of the actions by row, or None if actions can be read in place
    cdef int64_t low, high  # bounds of a Discrete action, or low > high for any other action
    cdef bint is_shared  # whether the rows belong to a batch, whose owner reads them there
    cdef bytearray checked_array  # by row: whether its first observation was checked
    cdef char *is_checked
    cdef bint replaced  # whether step or done were set on the instance
    cdef bint is_over  # whether reset must be called next

    cdef bound(self, str name, array)
    cdef object act_on_rows(self)
    cdef object action_of(self, value)
    cdef double real_of(self, reward) except? -1
    cdef object no_reward(self, reward)
    cdef bint other_flag(self, str name, value) except -1
    cdef tuple other_outcome(self, outcome)


cdef tuple five_values(outcome, str where, str values, str advice)
