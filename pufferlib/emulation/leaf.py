"""One array inside a nested sample, and the conversion of the environment's values to it."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import MultiBinary

from pufferlib.emulation.dtypes import SEVERAL_AGENTS, bounds_of
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["Leaf", "rounded_bounds"]

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]


ROUNDINGS = 16  # steps of the dtype's precision


def rounded_bounds(low: Array, high: Array, dtype: Dtype) -> tuple[Array, Array]:
    """Return bounds of reals with room for numbers that are outside by rounding alone; other bounds as they are."""
    if dtype.kind != "f":
        return low, high
    sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (low, high)]
    scale = np.maximum(*sizes)
    room = ROUNDINGS * np.finfo(dtype).eps * np.where(scale == 0, 1, scale)
    with np.errstate(over="ignore"):
        return low - room, high + room


@dataclass(frozen=True)
class Leaf:
    """One array inside a nested sample.

    Attributes:
        name: How messages call it, such as ``observation['map'][0]``.
        path: The keys and indices that lead to it from the top.
        space: Its space, which is neither a Dict nor a Tuple.
        dtype: Of its elements in the row; a structure where the space varies in size.
        shape: Of its array in the row; () for a Discrete, and for a structure.
        offset: Bytes from the start of the row.
    """

    name: str
    path: tuple[Hashable, ...]
    space: Space
    dtype: Dtype
    shape: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in the row."""
        return self.count * self.dtype.itemsize

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest allowed values, both of ``shape``."""
        low, high = bounds_of(self.space)
        return np.broadcast_to(low, self.shape), np.broadcast_to(high, self.shape)

    def convert(self, value: Any) -> Array:
        """``value`` as a C-contiguous array of ``shape`` and ``dtype``.

        Integers may become narrower or real, and reals may lose precision; a value that would
        become another one (an overflow, a fraction cut off) is refused.

        Raises:
            APIUsageError: Another shape, or values that the dtype cannot hold.
        """
        try:
            array = np.asarray(value)
        except ValueError as error:  # rows of different lengths
            raise self.error(f"an array of shape {self.shape}", f"{value!r} ({error})") from None
        if array.shape != self.shape and array.dtype == object and not array.shape:  # a dict, None, ...
            raise self.error(f"an array of shape {self.shape}", repr(value))
        if array.shape != self.shape:
            several = f"; {SEVERAL_AGENTS}" if self.shape and array.shape[1:] == self.shape else ""
            raise self.error(f"shape {self.shape}", f"shape {array.shape}{several}")
        is_integer = self.dtype.kind in "iub" and not isinstance(self.space, MultiBinary)  # np.zeros(n) is in its space
        allowed = "iub" if is_integer else "iubf"
        if array.dtype.kind not in allowed:
            raise self.error(f"dtype {self.dtype}", f"dtype {array.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):  # what changes is refused below
            converted = array.astype(self.dtype, order="C")
        if self.dtype.kind in "iub":
            is_same = np.array_equal(converted, array)
        else:  # losing precision is all right, becoming infinite is not
            is_same = array.dtype == self.dtype or not np.any(np.isinf(converted) & np.isfinite(array))
        if not is_same:
            raise self.error(f"values that {self.dtype} can hold", f"{array.min()} to {array.max()}")
        return converted

    def check(self, value: Any) -> None:
        """Raise APIUsageError unless ``value`` has the right shape and dtype and is within bounds.

        Reals may leave the bounds by rounding.
        """
        array = self.convert(value)
        low, high = rounded_bounds(*self.bounds, self.dtype)
        if not np.all((array >= low) & (array <= high)):
            raise self.error(f"values in {self.space}", f"{array.min()} to {array.max()}")

    def error(self, expected: str, got: str) -> APIUsageError:
        """The error for a value of this leaf that is not as its space says."""
        return APIUsageError(
            f"emulation: {self.name} must have {expected}, got {got}; "
            f"let the environment and its space {self.space} agree"
        )
