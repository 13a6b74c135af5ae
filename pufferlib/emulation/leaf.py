"""Single array inside a nested sample, and the conversion of the environment's values to it."""

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


ROUNDINGS = 16  # tolerance in units of the dtype's precision


def rounded_bounds(low: Array, high: Array, dtype: Dtype) -> tuple[Array, Array]:
    """Return float bounds with a tolerance for rounding. Bounds of other dtypes are returned unchanged."""
    if dtype.kind != "f":
        return low, high
    sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (low, high)]
    scale = np.maximum(*sizes)
    room = ROUNDINGS * np.finfo(dtype).eps * np.where(scale == 0, 1, scale)
    with np.errstate(over="ignore"):
        return low - room, high + room


@dataclass(frozen=True)
class Leaf:
    """Single array inside a nested sample.

    Attributes:
        name: Name in messages, such as ``observation['map'][0]``.
        path: Keys and indices that lead to it from the top.
        space: Space of the array, neither a Dict nor a Tuple.
        dtype: Dtype of its elements in the row. Structured if the space varies in size.
        shape: Shape of the array in the row. () for a Discrete and for a structured dtype.
        offset: Offset in bytes from the start of the row.
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
        """Number of bytes in the row."""
        return self.count * self.dtype.itemsize

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest allowed values, each with shape ``shape``."""
        low, high = bounds_of(self.space)
        return np.broadcast_to(low, self.shape), np.broadcast_to(high, self.shape)

    def convert(self, value: Any) -> Array:
        """Convert ``value`` to a C-contiguous array of ``shape`` and ``dtype``.

        Integers may be narrowed or become floats, and floats may lose precision. Values that would change otherwise, by
        overflow or truncation of a fraction, are rejected.

        Raises:
            APIUsageError: The shape is wrong, or the dtype cannot hold the values.
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
        is_integer = self.dtype.kind in "iub" and not isinstance(self.space, MultiBinary)  # MultiBinary allows floats
        allowed = "iub" if is_integer else "iubf"
        if array.dtype.kind not in allowed:
            raise self.error(f"dtype {self.dtype}", f"dtype {array.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):  # changed values are rejected below
            converted = array.astype(self.dtype, order="C")
        if self.dtype.kind in "iub":
            is_same = np.array_equal(converted, array)
        else:  # losing precision is allowed, becoming infinite is not
            is_same = array.dtype == self.dtype or not np.any(np.isinf(converted) & np.isfinite(array))
        if not is_same:
            raise self.error(f"values that {self.dtype} can hold", f"{array.min()} to {array.max()}")
        return converted

    def check(self, value: Any) -> None:
        """Raise APIUsageError unless ``value`` has the right shape and dtype and is within bounds.

        Floats may exceed the bounds by rounding.
        """
        array = self.convert(value)
        low, high = rounded_bounds(*self.bounds, self.dtype)
        if not np.all((array >= low) & (array <= high)):
            raise self.error(f"values in {self.space}", f"{array.min()} to {array.max()}")

    def error(self, expected: str, got: str) -> APIUsageError:
        """Return the error for a value that does not match the space."""
        return APIUsageError(
            f"emulation: {self.name} must have {expected}, got {got}; "
            f"let the environment and its space {self.space} agree"
        )
