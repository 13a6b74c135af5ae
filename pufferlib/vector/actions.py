"""Actions as callers give them, lists or arrays of any integer type, checked and made into arrays."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, action_layout

__all__ = ["ActionCheck"]


class ActionCheck:
    """Checks the actions of a batch: shape and kind on every call, the bounds on the first.

    Args:
        where: The call whose actions these are, for messages.
        space: Action space of one agent.
        rows: Agents in a batch.
    """

    def __init__(self, where: str, space: Space, rows: int) -> None:
        row_shape, dtype = action_layout(space)
        self._where, self._space, self._dtype = where, space, np.dtype(dtype)
        self._shape = (rows, *row_shape)
        self._kinds = "biu" if self._dtype.kind in "iu" else "biuf"
        self._seen_one = False

    def __call__(self, actions: Any) -> Array:
        """``actions`` as an array ``(rows, *action_shape)`` of numbers that fit the space.

        Raises:
            APIUsageError: Wrong shape, floats for integer actions, or first actions out of bounds.
        """
        array = np.asarray(actions)
        if array.shape != self._shape:
            raise APIUsageError(
                f"{self._where}: actions must have shape {self._shape}, one row per agent of the batch, "
                f"got shape {array.shape}; action_space.sample() has the right one"
            )
        if array.dtype.kind not in self._kinds:
            raise APIUsageError(
                f"{self._where}: actions must be numbers that fit {self._dtype}, got dtype {array.dtype}; "
                "convert them, e.g. actions.astype(int)"
            )
        if not self._seen_one:
            # Rounded to the space's precision, in which 0.7 is not above a bound of 0.7.
            self._check_bounds(array.astype(self._dtype) if self._dtype.kind == "f" else array)
            self._seen_one = True
        return array

    def _check_bounds(self, array: Array) -> None:
        low, high = _bounds(self._space)
        outside = ~((array >= low) & (array <= high))
        if outside.any():
            row = int(np.argwhere(outside)[0][0])
            raise APIUsageError(
                f"{self._where}: the first actions must be in the action space {self._space}, "
                f"got {array[row].tolist()} in row {row}"
            )


def _bounds(space: Space) -> tuple[Any, Any]:
    """Smallest and largest action of one agent."""
    if isinstance(space, Box):
        return space.low, space.high
    if isinstance(space, Discrete):
        return space.start, space.start + space.n - 1
    assert isinstance(space, MultiDiscrete)
    return space.start, space.start + space.nvec - 1
