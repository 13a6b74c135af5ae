"""Actions of some environments of a pool, checked."""

from typing import Any

import numpy as np

from pufferlib.actions import action_array, action_bounds
from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, action_spec

__all__ = ["ActionReader"]


class ActionReader:
    """Makes actions an array of the dtype of their space.

    Reals beyond the bounds of a Box go to the environment as they are, as EnvPool does it: environments clip them.

    Args:
        where: Begins the messages of errors.
        space: Of one agent.
    """

    def __init__(self, where: str, space: Space) -> None:
        self._where, self._space = f"{where}.send", space
        self._shape, dtype = action_spec(space)
        self._dtype = np.dtype(dtype)
        self._is_real = self._dtype.kind == "f"
        self._low, self._high = action_bounds(space)

    def read(self, actions: Any, rows: int) -> Array:
        """Return ``actions`` as an array ``(rows, *action_shape)``, which may be the one that was given.

        Raises:
            APIUsageError: Another shape; no numbers, NaN or infinity; fractions or numbers out of range where the space
                has whole numbers.
        """
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
        return array.astype(self._dtype, copy=False)
