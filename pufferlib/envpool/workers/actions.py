"""Actions of some environments of a pool, checked."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pufferlib.actions import action_array, action_bounds
from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.native._actions import ActionRows
from pufferlib.spaces import Space, action_spec

__all__ = ["ActionReader"]


class ActionReader:
    """Makes actions an array of the dtype of their space.

    Reals beyond the bounds of a Box go to the environment as they are, as EnvPool does it: environments clip them.

    Args:
        where: Begins the messages of errors.
        space: Of one agent.
        batch_rows: Agents of a batch, whose actions are read in one pass.
    """

    def __init__(self, where: str, space: Space, batch_rows: int) -> None:
        self._where, self._space = f"{where}.send", space
        self._shape, dtype = action_spec(space)
        self._dtype = np.dtype(dtype)
        self._is_real = self._dtype.kind == "f"
        self._low, self._high = action_bounds(space)
        self._batch_rows, self._read_batch = batch_rows, _BatchReader(self._read, batch_rows, *self._limits())

    def _limits(self) -> tuple[Array, Array]:
        """Least and greatest numbers of one agent's action that are read without a further look."""
        limits = np.finfo(self._dtype) if self._is_real else np.iinfo(self._dtype)
        bounds = (limits.min, limits.max) if self._is_real else np.clip((self._low, self._high), limits.min, limits.max)
        low, high = (np.broadcast_to(bound, self._shape).astype(self._dtype) for bound in bounds)
        return low, high

    def read(self, actions: Any, rows: int) -> Array:
        """Return ``actions`` as a C-contiguous array ``(rows, *action_shape)``: the given one, or one of the reader.

        Raises:
            APIUsageError: Another shape; no numbers, NaN or infinity; fractions or numbers out of range where the space
                has whole numbers.
        """
        return self._read_batch(actions) if rows == self._batch_rows else self._read(actions, rows)

    def _read(self, actions: Any, rows: int) -> Array:
        array = action_array(self._where, actions)
        if array.shape != (rows, *self._shape):
            raise APIUsageError(
                f"{self._where}: actions must have shape {(rows, *self._shape)}, one row for each environment and "
                f"player, got {array.shape}"
            )
        if array.dtype.kind not in "biuf":
            raise APIUsageError(f"{self._where}: actions must be numbers, got dtype {array.dtype}; convert them")
        fits = np.isfinite(array) if self._is_real else (array >= self._low) & (array <= self._high)
        if not self._is_real and array.dtype.kind == "f":
            fits &= array == np.floor(array)
        if not fits.all():
            row = int(np.argwhere(~fits)[0][0])
            numbers = "finite numbers" if self._is_real else "whole numbers"
            raise APIUsageError(
                f"{self._where}: actions must be {numbers} of the action space {self._space}, got "
                f"{array[row].tolist()} in row {row}; look at the policy"
            )
        return np.ascontiguousarray(array, self._dtype)


class _BatchReader(ActionRows):
    """Reads the actions of a batch in one pass, and by ``read(actions, rows)`` those that are no plain numbers.

    Args:
        read: Reads anything.
        rows: Agents.
        low: Least numbers of one of them.
        high: Greatest numbers of one of them.
    """

    def __init__(self, read: Callable[[Any, int], Array], rows: int, low: Array, high: Array) -> None:
        self._read, self._rows = read, rows
        super().__init__(*(np.array(np.broadcast_to(bound, (rows, *bound.shape)), order="C") for bound in (low, high)))

    def _convert(self, actions: Any) -> Array:
        return self._read(actions, self._rows)
