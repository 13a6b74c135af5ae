# cython: auto_pickle=False
"""Steps of emulated environments: of Gymnasium's on one row, of PettingZoo's on a row for each agent."""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next
from cpython.object cimport PyObject
from libc.float cimport FLT_MAX
from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from pufferlib.emulation._array_ring cimport ArrayRing
from pufferlib.emulation._rows cimport MASKS, OBSERVATIONS, REWARDS, ROW_ACTIONS, TERMINALS, TRUNCATIONS, EmulatedRows

from collections.abc import Mapping

from pufferlib.actions import action_array
from pufferlib.errors import APIUsageError, InvalidAgentError

cdef enum:
    UNSEEN = 2


cdef class EmulatedStep(EmulatedRows):
    """Steps of emulated environments of any interface, by calls that the compiler can inline."""

    @cython.final
    cdef inline object action_in(self, Py_ssize_t row):
        """The action in a row as the environment takes it."""
        if self.action_rows is not None:
            return self.decoder.decode(self.action_rows[row])
        if self.low > self.high:
            return self.reader.read_row(self.at(ROW_ACTIONS) + row * self.reader.row_bytes)
        cdef int32_t number = (<int32_t *>self.at(ROW_ACTIONS))[row]
        return number if self.low <= number <= self.high else self.decoder.decode(number)

    @cython.final
    cdef inline tuple step_wrapped(self, action):
        """The five values that the environment's ``step`` returns."""
        outcome = self.wrapped.step(action)
        return <tuple>outcome if type(outcome) is tuple and len(<tuple>outcome) == 5 else self.other_outcome(outcome)

    @cython.final
    cdef inline int show(self, Py_ssize_t row, observation, bint is_first) except -1:
        """Write an observation into its row."""
        if not self.checked:
            self.layout.check(observation)
            self.checked = True
        return self.packer.write(self.at(OBSERVATIONS) + row * self.row_bytes, observation, is_first)

    @cython.final
    cdef inline int write_reward(self, Py_ssize_t row, reward) except -1:
        cdef double number = <double>reward if type(reward) is float else self.real_of(reward)
        if not fabs(number) <= FLT_MAX:  # nan is not, either
            raise self.no_reward(reward)
        (<float *>self.at(REWARDS))[row] = <float>number
        return 0

    @cython.final
    cdef inline object number_of(self, reward):
        """The environment's own reward; a float if it is no number of Python, as an array is none."""
        return reward if isinstance(reward, (float, int)) else self.real_of(reward)

    @cython.final
    cdef inline bint flag_of(self, str name, value) except -1:
        """Tell if an episode is said to have ended."""
        if value is False:
            return False
        if value is True:
            return True
        return self.other_flag(name, value)


cdef class GymnasiumStep(EmulatedStep):
    """``step`` and ``done`` of a Gymnasium environment on one row."""

    cdef object row  # a view of it
    cdef ArrayRing copies  # of it

    cdef bound(self, str name, array):
        EmulatedRows.bound(self, name, array)
        if name == "observations":
            self.row = array[0, ...]
            self.copies = None if self.is_shared else ArrayRing(self.row)

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
        return self.row if self.is_shared else self.copies.copy()

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


cdef class PettingZooStep(EmulatedStep):
    """``step``, ``done`` and ``agents`` of a parallel PettingZoo environment on its rows."""

    cdef tuple names  # of the agents, by row
    cdef dict row_of
    cdef dict views  # of the rows
    cdef list copies  # of the rows: an ArrayRing for each
    cdef dict no_ends  # what step returns if nobody ends; copies are given away
    cdef list alive  # names of those that act next
    cdef object listed  # the environment's own list after the last step
    cdef Py_ssize_t current  # row of the agent that is being worked on, for messages
    # By row: whether an agent acts next, is in that list, or was reported in this step (UNSEEN: without observation).
    cdef bytearray acting_array, listed_array, here_array
    cdef char *acting
    cdef char *is_listed
    cdef char *is_here

    def _prepare_agents(self, layout, actions, decoder, list agents, bint is_shared):
        """``_prepare``, and the agents in the order of their rows."""
        self._prepare(layout, actions, decoder, len(agents), is_shared)
        self.names = tuple(agents)
        self.row_of = {agent: row for row, agent in enumerate(agents)}
        self.no_ends = dict.fromkeys(agents, False)
        self.alive = []
        self.acting_array, self.listed_array, self.here_array = [bytearray(len(agents)) for _ in range(3)]
        self.acting, self.is_listed, self.is_here = self.acting_array, self.listed_array, self.here_array

    def _progress(self):
        """See ``EmulatedRows``."""
        return self.is_over, bytes(self.acting_array), bytes(self.listed_array), bytes(self.here_array), self.listed

    def _resume(self, tuple progress):
        """See ``EmulatedRows``."""
        is_over, self.acting_array[:], self.listed_array[:], self.here_array[:], self.listed = progress
        self.note_alive()
        self.is_over = is_over

    cdef bound(self, str name, array):
        EmulatedRows.bound(self, name, array)
        if name == "observations":
            self.views = {agent: array[row, ...] for row, agent in enumerate(self.names)}
            self.copies = [] if self.is_shared else [ArrayRing(view) for view in self.views.values()]

    @property
    def agents(self):
        """Agents that act in the next step, in the order of ``possible_agents``."""
        return self.alive

    @property
    def done(self):
        """True if ``reset`` must come next: before the first episode, and when no agent is left."""
        return self.is_over

    def _row(self, agent):
        """The row of ``agent``; InvalidAgentError if it is none of ``possible_agents``."""
        try:
            return self.row_of[agent]
        except KeyError:
            raise InvalidAgentError(
                f"{type(self).__name__}: unknown agent {agent!r}; possible agents: {list(self.names)}"
            ) from None

    def _begin(self, observations):
        """Show the first observations of an episode. Returns one of every agent."""
        cdef Py_ssize_t row
        self.is_over = True  # until all is well
        self.check_complete()
        self.clear_outcome()
        memset(self.at(OBSERVATIONS), 0, self.num_rows * self.row_bytes)
        memset(self.at(MASKS), 0, self.num_rows)
        by_agent = self.by_agent("the observations", observations)
        try:
            for agent, observation in by_agent.items():
                self.current = self._row(agent)
                self.show(self.current, observation, True)
                self.at(MASKS)[self.current] = True
        except APIUsageError as error:
            self.name_agent(error)
            raise
        self.listed = None
        self.note_listed()
        for row in range(self.num_rows):
            if self.is_listed[row] and not self.at(MASKS)[row]:
                raise self.missing("observation", row, "reset")
        memcpy(self.acting, self.is_listed, self.num_rows)
        self.note_alive()
        return self.shown()

    cdef object missing(self, str what, Py_ssize_t row, str method):
        return APIUsageError(
            f"emulation: {method} must return one {what} for each living agent, got none for {self.names[row]!r} from "
            f"{self.wrapped}; return one, or take the agent off the list of agents"
        )

    cdef dict shown(self):
        """The observations for the caller, who may keep them if the rows are in no batch."""
        cdef Py_ssize_t row
        if self.is_shared:
            return self.views.copy()
        return {self.names[row]: (<ArrayRing>self.copies[row]).copy() for row in range(self.num_rows)}

    cdef int note_listed(self) except -1:
        """Read who is in the environment's own list of agents."""
        agents = self.wrapped.agents
        if agents != self.listed:
            memset(self.is_listed, 0, self.num_rows)
            for agent in agents:
                self.is_listed[<Py_ssize_t>self._row(agent)] = True
            self.listed = list(agents)
        return 0

    cdef note_alive(self):
        self.alive = [self.names[row] for row in range(self.num_rows) if self.acting[row]]
        self.is_over = not self.alive

    def step(self, actions):
        """Act with every living agent once.

        Args:
            actions: One action per agent by name, or an array with one row per possible agent.
                Those of absent agents are ignored.

        Returns:
            Flat observations (views of the rows if these were given as ``buf``), rewards, terminations and
            truncations of every possible agent, and the infos as the environment gave them.

        Raises:
            APIUsageError: The episode has not begun or is over, an action is missing or is none, or the
                environment returned an observation that its space does not have, or a NaN.
            InvalidAgentError: An agent that is not one of ``possible_agents``.
        """
        if self.is_over:
            raise APIUsageError(f"{type(self).__name__}.step: no episode is running; call reset first")
        outcome = self.act(self.actions_by_name(actions) if isinstance(actions, Mapping) else self.actions_by_row(actions))
        rewards = self.rewards_of(self.by_agent("the rewards", outcome[1]))
        return self.shown(), rewards, self.flags_of(TERMINALS), self.flags_of(TRUNCATIONS), outcome[4]

    cdef dict rewards_of(self, dict rewards):
        cdef Py_ssize_t row
        return {
            self.names[row]: self.number_of(rewards.get(self.names[row], 0.0)) if self.is_here[row] else 0.0
            for row in range(self.num_rows)
        }

    cdef dict flags_of(self, int place):
        cdef dict ends = self.no_ends.copy()
        for row in range(self.num_rows):
            if self.at(place)[row]:
                ends[self.names[row]] = True
        return ends

    cdef dict actions_by_name(self, actions):
        for agent in actions:
            self._row(agent)
        missing = [agent for agent in self.alive if agent not in actions]
        if missing:
            raise APIUsageError(
                f"{type(self).__name__}.step: expected an action of every living agent, got none of {missing}"
            )
        return {agent: self.action_of(actions[agent]) for agent in self.alive}

    cdef dict actions_by_row(self, actions):
        cdef Py_ssize_t row
        array = action_array(f"{type(self).__name__}.step", actions)
        if array.ndim == 0 or len(array) != self.num_rows:
            raise APIUsageError(
                f"{type(self).__name__}.step: expected {self.num_rows} rows of actions, one per possible agent, "
                f"got shape {array.shape}; absent agents have a row too"
            )
        by_row = array.tolist() if self.low <= self.high and array.ndim == 1 and array.dtype.kind in "iu" else array
        return {self.names[row]: self.action_of(by_row[row]) for row in range(self.num_rows) if self.acting[row]}

    cdef object act_on_rows(self):
        cdef Py_ssize_t row
        cdef dict actions = {}
        for row in range(self.num_rows):
            if self.acting[row]:
                actions[self.names[row]] = self.action_in(row)
        return self.act(actions)[4]

    cdef tuple act(self, dict actions):
        """Step the environment with these actions of living agents. Returns what it returned."""
        cdef Py_ssize_t row
        cdef tuple outcome = self.step_wrapped(actions)
        observations, rewards = self.by_agent("the observations", outcome[0]), self.by_agent("the rewards", outcome[1])
        terminations, truncations = self.by_agent("the terminations", outcome[2]), self.by_agent("the truncations", outcome[3])
        # Whoever is reported without having acted, and not because it is new, ended in an earlier step.
        memcpy(self.is_here, self.is_listed, self.num_rows)
        self.note_listed()
        for row in range(self.num_rows):
            self.is_here[row] = self.acting[row] or (self.is_listed[row] and not self.is_here[row])
        memcpy(self.at(MASKS), self.is_here, self.num_rows)
        self.clear_outcome()
        try:
            self.show_agents(observations)
            self.show_outcome(rewards, terminations, truncations)
        except APIUsageError as error:
            self.name_agent(error)
            raise
        return outcome

    cdef inline dict by_agent(self, str name, values):
        """Values by agent, as the environment returned them, in a plain dict."""
        if type(values) is dict:
            return <dict>values
        if not isinstance(values, (dict, Mapping)):
            raise APIUsageError(
                f"emulation: {name} must be a dict by agent, got {values!r:.80} from {self.wrapped}; "
                "return one, empty when there is no agent"
            )
        return dict(values)

    cdef name_agent(self, error):
        error.add_note(f"agent: {self.names[self.current]!r}")

    cdef int show_agents(self, dict observations) except -1:
        """Write what those who are here see; the rows of others are 0."""
        cdef Py_ssize_t row, place = 0, known = 0
        cdef PyObject *found
        for row in range(self.num_rows):
            found = next_or_get(observations, &place, self.names[row])
            known += found is not NULL
            self.current = row
            if found is not NULL and self.is_here[row]:
                self.show(row, <object>found, False)
            else:
                memset(self.at(OBSERVATIONS) + row * self.row_bytes, 0, self.row_bytes)
                if self.is_here[row]:
                    self.is_here[row] = UNSEEN
        if known != len(observations):
            self.refuse_strangers(observations)
        return 0

    cdef int refuse_strangers(self, dict values) except -1:
        """Raise if a dict by agent has a key that is no possible agent. RLlib's "__all__" is ignored."""
        for agent in values:
            if agent != "__all__":
                self._row(agent)
        return 0

    cdef int show_outcome(self, dict rewards, dict terminations, dict truncations) except -1:
        """Write what happened to those who are here, and note who acts next."""
        cdef Py_ssize_t row, reward_place = 0, terminated_place = 0, truncated_place = 0
        cdef Py_ssize_t rewarded = 0, given_terminated = 0, given_truncated = 0
        cdef PyObject *found
        cdef PyObject *reward
        cdef bint truncated, terminated, ended, changed = False
        for row in range(self.num_rows):
            if self.is_here[row]:
                self.current, name = row, self.names[row]
                found = reward = next_or_get(rewards, &reward_place, name)
                if found is not NULL:
                    rewarded += 1
                    self.write_reward(row, <object>found)
                found = next_or_get(truncations, &truncated_place, name)
                given_truncated += found is not NULL
                truncated = found is not NULL and self.flag_of("the truncation", <object>found)
                found = next_or_get(terminations, &terminated_place, name)
                given_terminated += found is not NULL
                terminated = found is not NULL and self.flag_of("the termination", <object>found)
                terminated = terminated or not (self.is_listed[row] or truncated)  # it vanished
                self.at(TRUNCATIONS)[row] = truncated
                self.at(TERMINALS)[row] = terminated
                ended = terminated or truncated
                if not ended and self.is_here[row] == UNSEEN:
                    raise self.missing("observation", row, "step")
                if not ended and reward is NULL and self.acting[row]:
                    raise self.missing("reward", row, "step")
            else:
                ended = True
            changed = changed or self.acting[row] == ended
            self.acting[row] = not ended
        if changed:
            self.note_alive()
        if rewarded != len(rewards):
            self.refuse_strangers(rewards)
        if given_terminated != len(terminations):
            self.refuse_strangers(terminations)
        if given_truncated != len(truncations):
            self.refuse_strangers(truncations)
        return 0


cdef inline PyObject *next_or_get(dict values, Py_ssize_t *place, name) except? NULL:
    """The value of ``name``; NULL if there is none. Most dicts are in our order, so that it is the next one."""
    cdef Py_ssize_t ahead = place[0]
    cdef PyObject *key
    cdef PyObject *value
    if PyDict_Next(values, &ahead, &key, &value) and key == <PyObject *>name:
        place[0] = ahead
        return value
    return PyDict_GetItemWithError(values, name)
