"""The last observations of each agent as one."""

from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.wrappers.vector._kernels import push_frames
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import as_rows, emulation_of
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["FrameStack"]

Axis = Literal["first", "last"]


class FrameStack(VectorWrapper):
    """Observations with the ``frames`` last ones of an agent, the oldest first.

    The first observation of an episode fills the stack. Last observations have the stack of the episode that ended.

    Args:
        vecenv: Of ``pufferlib.vector.make``; its observations are a Box.
        frames: Observations in a stack, at least 1.
        axis: "first" puts them on a new axis before the others, ``(frames, *shape)``; "last" on the last one, as
            channels of an image: ``(height, width, channels)`` becomes ``(height, width, frames * channels)``.

    Raises:
        APIUsageError: Observations are no Box, or have no axis for "last".
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
            self._show(box, emulated)
        else:
            self._show(box, emulated, action_mask=self._action_mask(space))
        self._stacks = np.zeros((vecenv.num_agents, *box.shape), box.dtype)  # of all agents
        side_by_side = int(np.prod(space.shape)) if axis == "first" else space.shape[-1]
        self._chunk = side_by_side * self._stacks.itemsize

    def _stacked(self, observation: Array) -> Array:
        if self._axis == "first":
            return np.repeat(observation[None], self._frames, 0)
        if not observation.ndim:
            raise APIUsageError("FrameStack: axis 'last' needs observations with an axis, got numbers; use 'first'")
        return np.concatenate([observation] * self._frames, -1)

    def _action_mask(self, space: Box) -> slice | None:
        """The elements that say which actions are legal, in the newest of the stack."""
        mask: slice | None = self.vecenv.driver_env.action_mask
        if mask is None:
            return None
        if self._axis == "last" and len(space.shape) > 1:
            raise APIUsageError(
                "FrameStack: axis must be 'first' where observations say which actions are legal, got 'last', which "
                "would scatter those elements"
            )
        size = int(np.prod(space.shape))
        start, stop, step = mask.indices(size)
        first = (self._frames - 1) * size
        return slice(first + start, first + stop, step)

    def transform(self, transitions: Transitions) -> None:
        """Push the observations onto the stacks."""
        agents, is_partial = transitions.agents, transitions.reset_rows is not None
        stacks = self._stacks[agents]  # a view, or a copy where the rows lie apart
        if transitions.any_ended and self.autoreset == "same_step":
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
