# cython: auto_pickle=False
"""Steps of an emulated Gymnasium environment, on its row."""

from pufferlib.emulation._rows cimport MASKS, TERMINALS, TRUNCATIONS, EmulatedRows

from pufferlib.errors import APIUsageError


cdef class GymnasiumStep(EmulatedRows):
    """``step`` and ``done`` of a Gymnasium environment on one row."""

    cdef object row  # a view of it

    cdef bound(self, str name, array):
        EmulatedRows.bound(self, name, array)
        if name == "observations":
            self.row = array[0, ...]

    @property
    def done(self):
        """True if ``reset`` must come next: before the first episode, and after each one's end."""
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
