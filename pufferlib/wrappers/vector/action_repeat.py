"""Action repetition."""

from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos, Received, Stepped
from pufferlib.errors import APIUsageError
from pufferlib.vector.specs import InfoSource
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.transitions import EpisodeTracker

__all__ = ["ActionRepeat"]


class ActionRepeat(VectorWrapper):
    """Repetition of every action for ``repeats`` steps. Rewards are summed, and the last observation is returned.

    All rows of a batch step together. If an episode ends before the last repeat, the remaining repeats are the first
    steps of the next episode, with the same action, and their rewards are added to the next step. An episode that
    starts and ends within one step is skipped, except for its infos. If episodes must end on whole steps, repeat
    actions inside the environments instead.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with autoreset "same_step" and whole batches.
        repeats: Number of steps per action, at least 1.

    Raises:
        APIUsageError: ``repeats`` is not a positive int, the autoreset mode is not "same_step", or batches hold only
            some of the agents.
    """

    def __init__(self, vecenv: Any, repeats: int) -> None:
        super().__init__(vecenv)
        if isinstance(repeats, bool) or not isinstance(repeats, int | np.integer) or repeats < 1:
            raise APIUsageError(f"ActionRepeat: repeats must be an int of at least 1, got {repeats!r}")
        if vecenv.autoreset != AutoresetMode.SAME_STEP:
            raise APIUsageError(
                f'ActionRepeat: autoreset must be "same_step", got {vecenv.autoreset!r}, with which rows would not act '
                "for part of a step; pass autoreset='same_step' to pufferlib.vector.make"
            )
        if vecenv.agents_per_batch != vecenv.num_agents:
            raise APIUsageError(
                f"ActionRepeat: a batch must have all {vecenv.num_agents} agents, got batches of "
                f"{vecenv.agents_per_batch}; make it without batch_size"
            )
        self._repeats = int(repeats)
        self._actions: Array | None = None
        self._tracker: EpisodeTracker = EpisodeTracker(self)  # its own, because a step here is several steps inside
        rows = vecenv.num_agents
        self.rewards = np.zeros(rows, np.float32)
        self.terminals, self.truncations = np.zeros(rows, bool), np.zeros(rows, bool)
        space = vecenv.single_observation_space
        self.final_observations = np.zeros((rows, *space.shape), space.dtype)
        self._next_rewards = np.zeros(rows, np.float32)  # rewards of episodes that started within the step
        self._absent = np.zeros(rows, bool)
        self._sources: list[InfoSource] = []

    @property
    def info_sources(self) -> list[InfoSource]:
        """Sources of the infos of the last step, in the order of the repeats."""
        return self._inner_sources() if self._actions is None else self._sources

    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        """Start new episodes. See ``VectorEnv.reset``."""
        outcome = super().reset(seed, **others)
        self._actions = None
        started = self.transitions.begins
        for array in (self.rewards, self.terminals, self.truncations, self._next_rewards):
            array[started] = 0
        self._absent = ~self.transitions.masks
        return outcome

    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        """Start new episodes. ``recv`` returns the first observations."""
        super().async_reset(seed, *options, **more)
        self._actions = None

    def step(self, actions: Any) -> Stepped:
        """Take ``repeats`` steps with every agent."""
        self.send(actions)
        observations, rewards, terminals, truncations, infos, _, _ = self.recv()
        return observations, rewards, terminals, truncations, infos

    def send(self, actions: Any) -> None:
        """Send the actions of all agents. ``recv`` repeats them and returns the outcome."""
        self.vecenv.send(actions)
        self._actions = np.array(actions)

    def recv(self) -> Received:
        """Return the outcome of all repeats, or of a reset."""
        received = self.vecenv.recv()
        for array in (self.rewards, self.terminals, self.truncations):
            array[:] = 0
        if self._actions is None:
            self._next_rewards[:] = 0
        else:
            received = self._repeated(received, self._actions)
        observations, _, _, _, infos, agent_ids, masks = received
        self._absent = ~masks
        outcome = (observations, self.rewards, self.terminals, self.truncations, infos, agent_ids, masks)
        self._finish(self._tracker.after(outcome))
        return outcome

    def _repeated(self, received: Received, actions: Array) -> Received:
        infos, over = list(received[4]), self._absent
        self._sources = self._inner_sources()
        self.rewards += self._next_rewards
        self._next_rewards[:] = 0
        self._count(received, over)
        for _ in range(self._repeats - 1):
            self.vecenv.send(actions)
            received = self.vecenv.recv()
            infos += received[4]
            self._sources += self._inner_sources()
            self._count(received, over)
        observations, rewards, terminals, truncations, _, agent_ids, masks = received
        return observations, rewards, terminals, truncations, infos, agent_ids, masks

    def _count(self, received: Received, over: Array) -> None:
        """Add one repeat. Rows whose episode has ended in this step are marked in ``over``."""
        _, rewards, terminals, truncations, _, _, _ = received
        counted = rewards * ~over
        self.rewards += counted
        self._next_rewards += rewards - counted
        ended = terminals | truncations
        if ended.any():
            first = np.flatnonzero(ended & ~over)
            self.terminals[first], self.truncations[first] = terminals[first], truncations[first]
            self.final_observations[first] = self.vecenv.final_observations[first]
            self._next_rewards[ended] = 0
            over |= ended

    def _inner_sources(self) -> list[InfoSource]:
        return list(getattr(self.vecenv, "info_sources", ()))  # native environments have none

    def _settings(self) -> dict[str, Any]:
        return {"repeats": self._repeats}
