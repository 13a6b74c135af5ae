"""Episodes of the environments of one worker: steps, ends and resets of each environment."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

cdef enum:
    NEXT_STEP = 0
    SAME_STEP = 1
    DISABLED = 2
    UNWRITTEN = 0xAA  # fills last observations until an environment writes them

cdef tuple AUTORESETS = ("next_step", "same_step", "disabled")


cdef class Episodes:
    """Steps and resets with the pool's autoreset mode, whatever the mode of the environments themselves.

    Args:
        runner: ``EnvRunner`` of the environments.
        own: Autoreset mode of each environment itself: "same_step", "next_step" or "disabled".
        autoreset: Autoreset mode of the pool.
        limit: Steps after which an episode is truncated, or 0 for no limit.
        rows: C-contiguous arrays of the batch, by name.
        envs: Arrays with an entry for each environment, by name: ``terminated`` and ``truncated`` bool,
            ``elapsed_step`` int32, ``seeds`` int64, the seed of the next reset or -1 for none.

    Attributes:
        ended: Infos of the last step and number of steps of an episode that ended with "same_step". The caller sets it
            to None again.
    """

    cdef public object ended

    cdef object _runner
    cdef list _own
    cdef object _observations, _final_observations
    cdef float[::1] _rewards
    cdef uint8_t[::1] _terminals, _truncations, _masks
    cdef uint8_t[::1] _terminated, _truncated
    cdef int32_t[::1] _elapsed  # steps before the observation, 0 for the first one of an episode
    cdef int32_t[::1] _steps
    cdef int64_t[::1] _seeds
    cdef uint8_t[::1] _is_begun, _is_over, _is_swapped, _ended_itself
    cdef int _autoreset
    cdef int32_t _limit
    cdef Py_ssize_t _agents

    def __init__(self, runner, own, autoreset, limit, rows, envs):
        cdef Py_ssize_t count = len(own)
        self._runner, self._own = runner, list(own)
        self._autoreset, self._limit = AUTORESETS.index(autoreset), limit
        self._observations, self._final_observations = rows["observations"], rows["final_observations"]
        self._rewards = rows["rewards"]
        self._terminals, self._truncations, self._masks = (
            rows[name].view(np.uint8) for name in ("terminals", "truncations", "masks"))
        self._terminated, self._truncated = (envs[name].view(np.uint8) for name in ("terminated", "truncated"))
        self._elapsed, self._seeds = envs["elapsed_step"], envs["seeds"]
        self._is_begun, self._is_over, self._is_swapped, self._ended_itself = (
            np.zeros(count, np.uint8) for _ in range(4))
        self._steps = np.zeros(count, np.int32)
        self._agents = len(self._rewards) // count
        self._final_observations.view(np.uint8)[...] = UNWRITTEN

    def reset(self, Py_ssize_t position):
        """Reset an environment. Return the infos."""
        seed = self._seeds[position]
        self._seeds[position] = -1
        if self._is_swapped[position]:
            self._swap(position)
        infos = self._runner.reset([None if seed < 0 else seed], None, [position])
        self._begin(position)
        return infos

    cdef void _begin(self, Py_ssize_t position) noexcept:
        self._is_begun[position] = True
        self._is_over[position] = False
        self._terminated[position] = self._truncated[position] = False
        self._elapsed[position] = self._steps[position] = 0
        self._clear(position)

    cdef void _clear(self, Py_ssize_t position) noexcept:
        cdef Py_ssize_t first = position * self._agents
        memset(&self._rewards[first], 0, self._agents * sizeof(float))
        memset(&self._terminals[first], 0, self._agents)
        memset(&self._truncations[first], 0, self._agents)

    def step(self, Py_ssize_t position):
        """Step an environment, or reset it if its episode is over. Return the infos."""
        if not self._is_begun[position]:
            return self.reset(position)
        if self._is_over[position]:
            if self._autoreset == DISABLED:
                self._clear(position)
                self._terminated[position] = self._truncated[position] = False
                return []
            return self._begin_next(position)
        infos = self._runner.step_at(position)
        self._steps[position] += 1
        self._elapsed[position] = self._steps[position]
        self._look_for_end(position)
        if self._is_over[position] and self._autoreset == SAME_STEP:
            self.ended = infos, self._steps[position]
            infos = self._begin_in_same_step(position)
        elif self._is_over[position] and self._ended_itself[position] and self._own[position] == "same_step":
            if self._has_final(position):
                self._swap(position)
        return infos

    cdef int _look_for_end(self, Py_ssize_t position) except -1:
        cdef Py_ssize_t row
        cdef Py_ssize_t first = position * self._agents
        cdef bint terminated = False, truncated = False, is_over = True
        for row in range(first, first + self._agents):
            terminated |= self._terminals[row]
            truncated |= self._truncations[row]
            is_over &= self._terminals[row] or self._truncations[row] or not self._masks[row]
        is_over &= terminated or truncated
        self._ended_itself[position] = is_over
        if self._limit and self._steps[position] >= self._limit:
            truncated = is_over = True
            for row in range(first, first + self._agents):
                self._truncations[row] = self._masks[row]
        self._is_over[position] = is_over
        self._terminated[position] = is_over and terminated
        self._truncated[position] = is_over and truncated
        return 0

    cdef list _begin_next(self, Py_ssize_t position):
        """Reset after an episode is over, as the environment would if it had ended the episode itself."""
        if self._is_swapped[position]:
            self._swap(position)
            infos = []
        elif self._ended_itself[position] and self._own[position] == "same_step":
            infos = []
        elif self._ended_itself[position] and self._own[position] == "next_step":
            infos = self._runner.step_at(position)
        else:
            infos = self._runner.reset([None], None, [position])
        self._begin(position)
        return infos

    cdef list _begin_in_same_step(self, Py_ssize_t position):
        """Reset, and return the first observation with the reward and the ends of the last step."""
        cdef Py_ssize_t first = position * self._agents
        cdef uint8_t terminated = self._terminated[position], truncated = self._truncated[position]
        rows = slice(first, first + self._agents)
        if not (self._ended_itself[position] and self._own[position] == "same_step"):
            self._final_observations[rows] = self._observations[rows]
        cdef bytes rewards = (<const char *>&self._rewards[first])[:self._agents * sizeof(float)]
        cdef bytes terminals = (<const char *>&self._terminals[first])[:self._agents]
        cdef bytes truncations = (<const char *>&self._truncations[first])[:self._agents]
        infos = self._begin_next(position)
        memcpy(&self._rewards[first], <const char *>rewards, self._agents * sizeof(float))
        memcpy(&self._terminals[first], <const char *>terminals, self._agents)
        memcpy(&self._truncations[first], <const char *>truncations, self._agents)
        self._terminated[position], self._truncated[position] = terminated, truncated
        return infos

    cdef bint _has_final(self, Py_ssize_t position) except -1:
        """Return whether an environment that resets itself has written the last observation of the episode.

        Some do not write it at a termination, where no value is computed from it.
        """
        last = self._final_observations[position * self._agents:(position + 1) * self._agents]
        return bool((last.view(np.uint8) != UNWRITTEN).any())

    cdef int _swap(self, Py_ssize_t position) except -1:
        """Swap the last observation of an episode with the first of the next if the environment returned that."""
        rows = slice(position * self._agents, (position + 1) * self._agents)
        kept = self._observations[rows].copy()
        self._observations[rows] = self._final_observations[rows]
        self._final_observations[rows] = kept
        self._is_swapped[position] = not self._is_swapped[position]
        if not self._is_swapped[position]:
            self._final_observations[rows].view(np.uint8)[...] = UNWRITTEN
        return 0
