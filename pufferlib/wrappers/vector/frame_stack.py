"""Frame stacking: the last observations of each agent as one."""

from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.wrappers.vector._kernels import push_frames
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import as_rows, emulation_of
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["FrameStack"]

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
        APIUsageError: Observations are not a Box, or are scalars and ``axis`` is "last".
    """

    def __init__(self, vecenv: Any, frames: int, axis: Axis = "first") -> None:
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

    def _settings(self) -> dict[str, Any]:
        return {"frames": self._frames, "is_last": self._axis == "last"}


def _bytes(rows: Array) -> Array:
    return as_rows(rows).view(np.uint8)
