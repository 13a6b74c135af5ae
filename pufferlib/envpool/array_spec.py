"""Specs of single arrays, from spaces."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["ArraySpec", "array_spec"]


@dataclass(frozen=True, eq=False)
class ArraySpec:
    """One array of a batch, without the dimension of the batch.

    Attributes:
        dtype: Of its elements.
        shape: Of a row; it begins with -1 where there is a row for each player.
        minimum: Least value: a number, or an array with one for each element.
        maximum: Greatest value, likewise.
        is_discrete: Its values are whole numbers from ``minimum`` to ``maximum``, each with a meaning of its own.
    """

    dtype: type
    shape: list[int]
    minimum: Any
    maximum: Any
    is_discrete: bool = False


def array_spec(space: Space, discrete_dtype: Any = None) -> ArraySpec:
    """Spec of the array that holds a sample of ``space``.

    Raises:
        APIUsageError: It is no Box, Discrete, MultiDiscrete or MultiBinary.
    """
    shape = list(space.shape or ())
    dtype: Any = np.dtype(space.dtype).type
    if isinstance(space, Box):
        return ArraySpec(dtype, shape, _bound(space.low), _bound(space.high))
    if isinstance(space, Discrete):
        last = int(space.start + space.n - 1)
        return ArraySpec(discrete_dtype or dtype, shape, int(space.start), last, is_discrete=True)
    if isinstance(space, MultiDiscrete):
        return ArraySpec(discrete_dtype or dtype, shape, space.start, space.start + space.nvec - 1)
    if isinstance(space, MultiBinary):
        return ArraySpec(dtype, shape, 0, 1)
    raise APIUsageError(
        f"envpool: spaces must be made of Box, Discrete, MultiDiscrete and MultiBinary, got {space!r}; wrap the "
        "environment so that it shows arrays of one length"
    )


def _bound(bounds: Any) -> Any:
    """``bounds`` of each element, or a number where they are all the same, as EnvPool has them."""
    return bounds.flat[0].item() if bounds.size and (bounds == bounds.flat[0]).all() else bounds
