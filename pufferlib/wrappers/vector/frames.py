"""Frame stacking, and action repetition (frame skip)."""

from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, EnvIds, Infos, Received, Stepped
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.vector.specs import InfoSource
from pufferlib.wrappers.vector._kernels import push_frames
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import as_rows, emulation_of
from pufferlib.wrappers.vector.transitions import EpisodeTracker, Transitions

__all__ = ["ActionRepeat", "FrameStack"]


Axis = Literal["first", "last"]


class FrameStack(VectorWrapper):
    """Stack of the last ``frames`` observations of each agent, oldest first.

    The first observation of an episode fills the whole stack. Final observations have the stack of the ended episode.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with a Box observation space.
        frames: Number of observations in a stack, at least 1.
        axis: "first" stacks along a new first axis, ``(frames, *shape)``. "last" concatenates along the last axis, as
            for image channels: ``(height, width, channels)`` becomes ``(height, width, frames * channels)``.

    Raises:
        APIUsageError: Observations are a Dict or Tuple, ``frames`` is not a positive int, or ``axis`` is unknown. Or
            ``axis`` is "last", and observations are scalars or have several axes and an action mask.
    """

    def __init__(self, vecenv: AnyVectorEnv, frames: int, axis: Axis = "first") -> None:
        super().__init__(vecenv)
        if isinstance(frames, bool) or not isinstance(frames, int | np.integer) or frames < 1:
            raise APIUsageError(f"FrameStack: frames must be an int of at least 1, got {frames!r}")
        if axis not in ("first", "last"):
            raise UnknownNameError.of("FrameStack", "axis", axis, ("first", "last"))
        self._frames, self._axis = int(frames), axis
        space, emulated = vecenv.single_observation_space, vecenv.emulated
        if emulated and emulated["emulated_observation_dtype"].names is not None:
            raise APIUsageError(
                "FrameStack: observations must be a Box, got a Dict or Tuple; stack before the emulation, with "
                "gymnasium.wrappers.FrameStackObservation"
            )
        box = Box(self._stacked(space.low), self._stacked(space.high), dtype=np.dtype(space.dtype).type)
        if emulated:
            dtype = np.dtype((emulated["emulated_observation_dtype"].base, box.shape))
            emulated = emulation_of(dtype, np.dtype(box.dtype), emulated["observation_bounds"])
            self._set_observation_space(box, emulated)
        else:
            self._set_observation_space(box, emulated, action_mask=self._action_mask(space))
        self._stacks = np.zeros((vecenv.num_agents, *box.shape), box.dtype)  # one per agent
        side_by_side = int(np.prod(space.shape)) if axis == "first" else space.shape[-1]
        self._chunk = side_by_side * self._stacks.itemsize

    def _stacked(self, observation: Array) -> Array:
        if self._axis == "first":
            return np.repeat(observation[None], self._frames, 0)
        if not observation.ndim:
            raise APIUsageError("FrameStack: axis 'last' needs observations with an axis, got numbers; use 'first'")
        return np.concatenate([observation] * self._frames, -1)

    def _action_mask(self, space: Box) -> slice | None:
        """Return the elements of the action mask in the newest observation of the stack."""
        mask: slice | None = self.vecenv.driver_env.action_mask
        if mask is None:
            return None
        if self._axis == "last" and len(space.shape) > 1:
            raise APIUsageError(
                "FrameStack: axis must be 'first' if observations hold an action mask, got 'last', which would scatter "
                "the elements of the mask"
            )
        size = int(np.prod(space.shape))
        start, stop, step = mask.indices(size)
        first = (self._frames - 1) * size
        return slice(first + start, first + stop, step)

    def transform(self, transitions: Transitions) -> None:
        """Add the observations to the stacks."""
        agents, is_partial = transitions.agents, transitions.reset_rows is not None
        stacks = self._stacks[agents]  # a view, or a copy if the rows are not adjacent
        if transitions.any_ended and self.autoreset == AutoresetMode.SAME_STEP:
            rows = transitions.ended_rows
            last = stacks[rows]
            self._push(last, self.vecenv.final_observations[rows], np.zeros(len(rows), bool))
            self.final_observations[rows] = last
        self._push(stacks, transitions.observations, transitions.begins, is_partial)
        if not isinstance(agents, slice):
            self._stacks[agents] = stacks
        self.observations = transitions.observations = stacks

    def _push(self, stacks: Array, frames: Array, begins: Array, only_begins: bool = False) -> None:
        if stacks.size:
            push_frames(_bytes(stacks), _bytes(frames), self._chunk, begins, only_begins)

    def _converted_space(self, space: Any) -> Any:
        return self.single_observation_space

    def _settings(self) -> dict[str, Any]:
        return {"frames": self._frames, "is_last": self._axis == "last"}


def _bytes(rows: Array) -> Array:
    return as_rows(rows).view(np.uint8)


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

    def __init__(self, vecenv: AnyVectorEnv, repeats: int) -> None:
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

    def _begin(self, observations: Array, infos: Infos, env_ids: EnvIds) -> Transitions:
        transitions = super()._begin(observations, infos, env_ids)
        self._actions = None
        for array in (self.rewards, self.terminals, self.truncations, self._next_rewards):
            array[transitions.begins] = 0
        self._absent = ~transitions.masks
        return transitions

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
