"""Checks of actions from callers, and their conversion to arrays.

Actions of a single emulated environment are checked and decoded in ``emulation.actions``.
"""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.native._actions import ActionRows
from pufferlib.spaces import MixedBox, Space, action_spec

__all__ = ["ActionCheck", "action_array", "action_bounds", "plain_actions"]

INT32_MAX = np.iinfo(np.int32).max


class ActionCheck(ActionRows):
    """Check of the actions of a batch, and their conversion to an array.

    A call with actions returns an array ``(rows, *action_shape)`` of the space's dtype, which the next call overwrites.
    Samples of a Gaussian policy can exceed any bounds. Clip them after sampling, or use ``ClipAction``.

    Args:
        where: Name of the calling function, for messages.
        space: Action space of one agent.
        rows: Number of agents in a batch.

    Raises:
        APIUsageError: When called, if the shape is wrong, floats are given for integers, or a value is out of bounds
            or NaN.
    """

    def __init__(self, where: str, space: Space, rows: int) -> None:
        row_shape, dtype = action_spec(space)
        self._where, self._space, self._dtype = where, space, np.dtype(dtype)
        self._shape = (rows, *row_shape)
        self._kinds = "biu" if self._dtype.kind in "iu" else "biuf"
        low, high = (np.broadcast_to(bound, self._shape) for bound in action_bounds(space))
        if self._dtype == np.int32:
            limits = np.iinfo(np.int32)
            low, high = (np.clip(bound, limits.min, limits.max) for bound in (low, high))
        self._low, self._high = (np.array(bound, self._dtype, order="C") for bound in (low, high))
        super().__init__(self._low, self._high, not isinstance(space, MixedBox))

    def _convert(self, actions: Any) -> Array:
        array = action_array(self._where, actions)
        if array.shape != self._shape:
            raise APIUsageError(
                f"{self._where}: actions must have shape {self._shape}, one row per agent of the batch, "
                f"got shape {array.shape}; give one action for each of the {self._shape[0]} rows"
            )
        if array.dtype.kind not in self._kinds:
            raise APIUsageError(
                f"{self._where}: actions must be numbers that fit {self._dtype}, got dtype {array.dtype}; "
                "convert them, e.g. actions.astype(int)"
            )
        if self._dtype.kind == "f":
            array = array.astype(self._dtype)  # before comparing, so that 0.7 does not exceed a float32 bound of 0.7
        self._check_bounds(array)
        return array.astype(self._dtype, copy=False)

    def _check_bounds(self, array: Array) -> None:
        fits = (array >= self._low) & (array <= self._high)
        if not fits.all():
            row = int(np.argwhere(~fits)[0][0])
            advice = "clip them, e.g. with pufferlib.ClipAction" if self._dtype.kind == "f" else "look at the policy"
            raise APIUsageError(
                f"{self._where}: actions must be in the action space {self._space}, "
                f"got {array[row].tolist()} in row {row}; {advice}, or choose from the action space"
            )
        if isinstance(self._space, MixedBox) and not self._space.has_integers(array):
            raise APIUsageError(
                f"{self._where}: actions must have integers at the places of discrete parts, {self._space}, got "
                f"{array.tolist()}; round them, or choose from the action space"
            )


def action_bounds(space: Space) -> tuple[Any, Any]:
    """Return the smallest and largest action of one agent."""
    if isinstance(space, Box):
        return space.low, space.high
    if isinstance(space, Discrete):
        return space.start, space.start + space.n - 1
    assert isinstance(space, MultiDiscrete)
    return space.start, space.start + space.nvec - 1


def action_array(where: str, actions: Any) -> Array:
    """Convert ``actions`` of any type to an array of any shape and dtype.

    Raises:
        APIUsageError: Rows differ in length, or a tensor cannot be converted by numpy.
    """
    try:
        return np.asarray(actions)
    except (TypeError, RuntimeError) as error:
        raise APIUsageError(
            f"{where}: actions must be something that numpy can convert, got {actions!r:.80} ({error}); for a tensor "
            "give actions.detach().cpu().numpy(), and convert bfloat16 with actions.float() first"
        ) from None
    except ValueError as error:
        raise APIUsageError(
            f"{where}: actions must be an array, or a list of rows of one length, got {actions!r:.80} ({error}); "
            "action_space.sample() has the right form"
        ) from None


def plain_actions(where: str, actions: Any, shape: tuple[int, ...], is_box: bool) -> Array:
    """Copy ``actions`` for a C environment, which handles values out of bounds itself.

    Args:
        where: Name of the calling function, for messages.
        actions: Actions of any type.
        shape: Expected shape, ``(rows, *action_shape)``.
        is_box: Whether floats are expected instead of integers.

    Returns:
        C-contiguous array of this shape, float32 or int64, that shares no memory with ``actions``.

    Raises:
        APIUsageError: The shape is wrong, or floats are given for integers.
    """
    array = action_array(where, actions)
    if array.dtype.kind not in ("fiu" if is_box else "iub") or array.shape != shape:
        raise APIUsageError(
            f"{where}: actions must be {'numbers' if is_box else 'integers'} of shape {shape}, "
            f"got dtype {array.dtype} and shape {array.shape}; give one action for each agent"
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, INT32_MAX)
    return np.array(array, np.float32 if is_box else np.int64, order="C")
