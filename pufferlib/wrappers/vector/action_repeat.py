"""Each action several times in a row."""

from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import Infos, Received, Stepped
from pufferlib.errors import APIUsageError
from pufferlib.vector.specs import InfoSource
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.transitions import EpisodeTracker

__all__ = ["ActionRepeat"]


class ActionRepeat(VectorWrapper):
    """Every action taken ``repeats`` times; a step is the sum of their rewards, and shows what came last.

    A batch moves as one, so an episode that ends before the last repeat does not wait for the others: the remaining
    repeats are the first of the next episode, with the same action, and their rewards count for the next step. An
    episode that begins and ends within one step is passed over, but for its infos. Where ends must fall on whole
    steps, repeat inside the environments.

    Args:
        vecenv: Of ``pufferlib.vector.make``, with autoreset "same_step" and whole batches.
        repeats: At least 1.

    Raises:
        APIUsageError: Episodes begin in another way, or batches are parts of the agents.
    """

    def __init__(self, vecenv: Any, repeats: int) -> None:
        super().__init__(vecenv)
        if isinstance(repeats, bool) or not isinstance(repeats, int | np.integer) or repeats < 1:
            raise APIUsageError(f"ActionRepeat: repeats must be an int of at least 1, got {repeats!r}")
        if vecenv.autoreset != "same_step":
            raise APIUsageError(
                f'ActionRepeat: autoreset must be "same_step", got {vecenv.autoreset!r}, with which rows would stand '
                "still for a part of a step; pass autoreset='same_step' to pufferlib.vector.make"
            )
        if vecenv.agents_per_batch != vecenv.num_agents:
            raise APIUsageError(
                f"ActionRepeat: a batch must have all {vecenv.num_agents} agents, got batches of "
                f"{vecenv.agents_per_batch}; make it without batch_size"
            )
        self._repeats = int(repeats)
        self._actions: Array | None = None
        self._tracker: EpisodeTracker = EpisodeTracker(self)  # one step here is several inside
        rows = vecenv.num_agents
        self.rewards = np.zeros(rows, np.float32)
        self.terminals, self.truncations = np.zeros(rows, bool), np.zeros(rows, bool)
        space = vecenv.single_observation_space
        self.final_observations = np.zeros((rows, *space.shape), space.dtype)
        self._next_rewards = np.zeros(rows, np.float32)  # of episodes that began before the step was over
        self._absent = np.zeros(rows, bool)
        self._sources: list[InfoSource] = []

    @property
    def info_sources(self) -> list[InfoSource]:
        """Sources of the infos of the last step, in their order, which is that of the repeats."""
        return self._inner_sources() if self._actions is None else self._sources

    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        """Start new episodes, as ``VectorEnv.reset`` does."""
        outcome = super().reset(seed, **others)
        self._actions = None
        begun = self.transitions.begins
        for array in (self.rewards, self.terminals, self.truncations, self._next_rewards):
            array[begun] = 0
        self._absent = ~self.transitions.masks
        return outcome

    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        """Start new episodes; ``recv`` returns their first observations."""
        super().async_reset(seed, *options, **more)
        self._actions = None

    def step(self, actions: Any) -> Stepped:
        """Act ``repeats`` times with every agent."""
        self.send(actions)
        observations, rewards, terminals, truncations, infos, _, _ = self.recv()
        return observations, rewards, terminals, truncations, infos

    def send(self, actions: Any) -> None:
        """Act with every agent; ``recv`` repeats it, and returns the outcome."""
        self.vecenv.send(actions)
        self._actions = np.array(actions)

    def recv(self) -> Received:
        """The outcome of all repeats, or of a reset."""
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
        """Add one repeat; rows whose episode ended in this step are ``over`` from then on."""
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
        return list(getattr(self.vecenv, "info_sources", ()))  # a native environment has none

    def _settings(self) -> dict[str, Any]:
        return {"repeats": self._repeats}
