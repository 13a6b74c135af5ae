# cython: auto_pickle=False
"""Steps of emulated environments: Gymnasium environments on one row, PettingZoo environments on a row per agent."""

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
    """Steps common to emulated environments, as final methods that the compiler can inline."""

    @cython.final
    cdef inline object action_in(self, Py_ssize_t row):
        """Return the action in a row, converted to the environment's action."""
        if self.action_rows is not None:
            return self.decoder.decode(self.action_rows[row])
        if self.low > self.high:
            return self.reader.read_row(self.at(ROW_ACTIONS) + row * self.reader.row_bytes)
        cdef int32_t number = (<int32_t *>self.at(ROW_ACTIONS))[row]
        return number if self.low <= number <= self.high else self.decoder.decode(number)

    @cython.final
    cdef inline tuple step_wrapped(self, action):
        """Return the five values of the wrapped environment's ``step``."""
        outcome = self.wrapped.step(action)
        return <tuple>outcome if type(outcome) is tuple and len(<tuple>outcome) == 5 else self.other_outcome(outcome)

    @cython.final
    cdef inline int show(self, Py_ssize_t row, observation, bint is_first) except -1:
        """Write an observation to its row."""
        if not self.is_checked[row]:
            self.layout.check(observation)
            self.is_checked[row] = True
        return self.packer.write(self.at(OBSERVATIONS) + row * self.row_bytes, observation, is_first)

    @cython.final
    cdef inline int write_reward(self, Py_ssize_t row, reward) except -1:
        cdef double number = <double>reward if type(reward) is float else self.real_of(reward)
        if not fabs(number) <= FLT_MAX:  # also rejects nan
            raise self.no_reward(reward)
        (<float *>self.at(REWARDS))[row] = <float>number
        return 0

    @cython.final
    cdef inline object number_of(self, reward):
        """Return the reward of the environment, converted to a float unless it is a Python number."""
        return reward if isinstance(reward, (float, int)) else self.real_of(reward)

    @cython.final
    cdef inline bint flag_of(self, str name, value) except -1:
        """Convert an end flag to a bool."""
        if value is False:
            return False
        if value is True:
            return True
        return self.other_flag(name, value)


cdef class GymnasiumStep(EmulatedStep):
    """``step`` and ``done`` of a Gymnasium environment on one row."""

    cdef object row  # view of the observation row
    cdef ArrayRing copies  # copies of this row

    cdef bound(self, str name, array):
        EmulatedRows.bound(self, name, array)
        if name == "observations":
            self.row = array[0, ...]
            self.copies = None if self.is_shared else ArrayRing(self.row)

    @property
    def done(self):
        """Whether ``reset`` must be called next: before the first episode, and after each episode."""
        return self.is_over

    def _begin(self, observation):
        """Write the first observation of an episode. Return the observation for the caller of ``reset``."""
        self.is_over = True  # until this method succeeds
        self.check_complete()
        self.show(0, observation, True)
        self.clear_outcome()
        self.at(MASKS)[0] = True
        self.is_over = False
        return self.shown()

    cdef inline object shown(self):
        """Return the observation for the caller. It may be kept unless the rows belong to a batch."""
        return self.row if self.is_shared else self.copies.copy()

    def step(self, action):
        """Take one step.

        Args:
            action: Value of ``action_space``. Lists and any integer type are accepted.

        Returns:
            Flat observation (a view of its row if ``buf`` was given), reward, terminated, truncated, and the info of
            the wrapped environment.

        Raises:
            APIUsageError: No episode is running, the action is invalid, or the environment returned an observation
                that is not in its space, or NaN.
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

    cdef tuple names  # names of the agents, by row
    cdef dict row_of
    cdef dict views  # views of the observation rows, by agent
    cdef list copies  # an ArrayRing for each row
    cdef dict no_ends  # end flags if no agent ends, which callers get a copy of
    cdef list alive  # names of the agents that act next
    cdef object listed  # the environment's own list of agents after the last step
    cdef Py_ssize_t current  # row of the agent being processed, for messages
    # By row: whether an agent acts next, is in that list, or was reported in this step (UNSEEN: without observation).
    cdef bytearray acting_array, listed_array, here_array
    cdef char *acting
    cdef char *is_listed
    cdef char *is_here

    def _prepare_agents(self, layout, actions, decoder, list agents, bint is_shared):
        """Call ``_prepare``, and set the agents in the order of their rows."""
        self._prepare(layout, actions, decoder, len(agents), is_shared)
        self.names = tuple(agents)
        self.row_of = {agent: row for row, agent in enumerate(agents)}
        self.no_ends = dict.fromkeys(agents, False)
        self.alive = []
        self.acting_array, self.listed_array, self.here_array = [bytearray(len(agents)) for _ in range(3)]
        self.acting, self.is_listed, self.is_here = self.acting_array, self.listed_array, self.here_array

    def _progress(self):
        """See ``EmulatedRows._progress``."""
        return self.is_over, bytes(self.acting_array), bytes(self.listed_array), bytes(self.here_array), self.listed

    def _resume(self, tuple progress):
        """See ``EmulatedRows._resume``."""
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
        """Whether ``reset`` must be called next: before the first episode, and when no agent is left."""
        return self.is_over

    def _row(self, agent):
        """Return the row of ``agent``. Raise InvalidAgentError if it is not in ``possible_agents``."""
        try:
            return self.row_of[agent]
        except KeyError:
            raise InvalidAgentError(
                f"{type(self).__name__}: unknown agent {agent!r}; possible agents: {list(self.names)}"
            ) from None

    def _begin(self, observations):
        """Write the first observations of an episode. Return an observation for every agent."""
        cdef Py_ssize_t row
        self.is_over = True  # until this method succeeds
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
        """Return the observations for the caller. They may be kept unless the rows belong to a batch."""
        cdef Py_ssize_t row
        if self.is_shared:
            return self.views.copy()
        return {self.names[row]: (<ArrayRing>self.copies[row]).copy() for row in range(self.num_rows)}

    cdef int note_listed(self) except -1:
        """Read the environment's own list of agents."""
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
        """Take one step with every living agent.

        Args:
            actions: Dict from agent to action, or array with one row per possible agent. Actions of absent agents are
                ignored.

        Returns:
            Flat observations (views of the rows if ``buf`` was given), rewards, terminations and truncations of every
            possible agent, and the infos of the wrapped environment.

        Raises:
            APIUsageError: No episode is running, an action is missing or invalid, or the environment returned an
                observation that is not in its space, or NaN.
            InvalidAgentError: An agent is not in ``possible_agents``.
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
        """Step the environment with the actions of living agents. Return its five values."""
        cdef Py_ssize_t row
        cdef tuple outcome = self.step_wrapped(actions)
        observations, rewards = self.by_agent("the observations", outcome[0]), self.by_agent("the rewards", outcome[1])
        terminations, truncations = self.by_agent("the terminations", outcome[2]), self.by_agent("the truncations", outcome[3])
        # An agent that is reported although it neither acted nor is new has ended in an earlier step.
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
        """Return values by agent as a plain dict."""
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
        """Write the observations of present agents. The rows of other agents become 0."""
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
            self.check_known(observations)
        return 0

    cdef int check_known(self, dict values) except -1:
        """Raise if a dict has a key that is not a possible agent. RLlib's "__all__" is ignored."""
        for agent in values:
            if agent != "__all__":
                self._row(agent)
        return 0

    cdef int show_outcome(self, dict rewards, dict terminations, dict truncations) except -1:
        """Write rewards and end flags of present agents, and update which agents act next."""
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
                terminated = terminated or not (self.is_listed[row] or truncated)  # the agent vanished
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
            self.check_known(rewards)
        if given_terminated != len(terminations):
            self.check_known(terminations)
        if given_truncated != len(truncations):
            self.check_known(truncations)
        return 0


cdef inline PyObject *next_or_get(dict values, Py_ssize_t *place, name) except? NULL:
    """Return the value of ``name``, or NULL. Most dicts are in row order, so that it is the next item."""
    cdef Py_ssize_t ahead = place[0]
    cdef PyObject *key
    cdef PyObject *value
    if PyDict_Next(values, &ahead, &key, &value) and key == <PyObject *>name:
        place[0] = ahead
        return value
    return PyDict_GetItemWithError(values, name)
