"""Conversion of flat actions to the environment's own action space."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from pufferlib.actions import action_array
from pufferlib.emulation._unpack import ActionReader
from pufferlib.emulation.layout import Layout
from pufferlib.errors import APIUsageError
from pufferlib.spaces import MixedBox, action_spec

__all__ = ["ActionDecoder"]

Array = npt.NDArray[Any]


class ActionDecoder:
    """Converter of the actions of one agent, which checks them and gives them the form that the environment expects.

    Args:
        where: Name of the calling method, for messages.
        layout: Layout of the actions.

    Attributes:
        reader: Reader for flat actions that need no check.
    """

    def __init__(self, where: str, layout: Layout) -> None:
        self._where = where
        self._layout = layout
        self._shape: tuple[int, ...] = layout.flat_space.shape or ()
        self._shapes = (self._shape, (1, *self._shape))
        # Bounds of a single integer, the most common action. An empty range for any other action.
        self._low, self._high = 0, -1
        if isinstance(layout.space, Discrete):
            self._low = int(layout.space.start)
            self._high = self._low + int(layout.space.n) - 1
        self.reader = ActionReader(layout, np.dtype(action_spec(layout.flat_space)[1]))
        self._is_box = isinstance(layout.flat_space, Box)

    def decode(self, action: Any) -> Any:
        """Convert ``action``, a value of the flat action space, to the argument of the environment's ``step``.

        A batch of one such value is also accepted. The result shares no memory with ``action``, whose
        buffer the next step overwrites.

        Raises:
            APIUsageError: The shape or type is wrong, or a value is out of range or NaN.
        """
        if self._is_box:
            return self._decode_box(action)
        if type(action) is int and self._low <= action <= self._high:
            return action
        array = self._array(action, "iu", "integers")
        return self.reader.read(array.ravel().tolist())

    def _decode_box(self, action: Any) -> Any:
        space: Any = self._layout.flat_space
        is_real = space.dtype.kind == "f"
        array = self._array(action, "iuf" if is_real else space.dtype.kind, "numbers" if is_real else str(space.dtype))
        if is_real:  # convert before comparing, so that 0.7 does not exceed a float32 bound of 0.7
            array = array.astype(space.dtype)
        flat = np.ascontiguousarray(array, self.reader.flat_dtype)
        if not self.reader.is_in_range(flat):
            raise APIUsageError(
                f"{self._where}: the action must be in {space}, got {array.min()} to {array.max()}; "
                "wrap the environment with pufferlib.wrappers.ClipAction to have actions clipped"
            )
        if isinstance(space, MixedBox) and not space.has_integers(array.reshape(self._shape)):
            raise APIUsageError(
                f"{self._where}: the action must have integers at the places of discrete parts, {space}, got "
                f"{array.tolist()}; round them, or choose actions from the action space"
            )
        return self.reader.read_array(flat)

    def _array(self, action: Any, kinds: str, noun: str) -> Any:
        array = action_array(self._where, action)
        if array.shape not in self._shapes or array.dtype.kind not in kinds:
            raise APIUsageError(
                f"{self._where}: an action must be {noun} of shape {self._shape}, "
                f"got {array.dtype} of shape {array.shape}; choose actions from {self._layout.flat_space}"
            )
        return array
