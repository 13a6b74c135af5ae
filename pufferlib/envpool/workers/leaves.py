"""Flat rows of observations as the arrays that they were made of: views of the rows."""

from collections import OrderedDict
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Tuple

from pufferlib.buffers import Array
from pufferlib.emulation.dtypes import children_of, is_variable
from pufferlib.spaces import Space

__all__ = ["array_space", "channels_first", "unflatten"]


def array_space(space: Space, dtype: np.dtype[Any]) -> Space:
    """``space`` with a Dict of plain arrays for each part that has no array: Text, Sequence, Graph, OneOf.

    Args:
        space: Of one observation.
        dtype: Of it as a row, with a field for each part.
    """
    children = children_of(space)
    if children is not None:
        parts: dict[Any, Space] = {key: array_space(child, dtype[field]) for key, field, child in children}
        return Tuple(list(parts.values())) if isinstance(space, Tuple) else Dict(OrderedDict(parts))
    return _arrays_of(dtype) if is_variable(space) else space


def _arrays_of(dtype: np.dtype[Any]) -> Space:
    if dtype.names is not None:
        return Dict(OrderedDict((name, _arrays_of(dtype[name])) for name in dtype.names))
    base: Any = dtype.base.type
    is_real = dtype.base.kind == "f"
    low, high = (-np.inf, np.inf) if is_real else (np.iinfo(base).min, np.iinfo(base).max)
    return Box(low, high, dtype.shape, base)


def channels_first(space: Space) -> Box:
    """Space of pictures ``(channels, height, width)`` of that of pictures ``(height, width, channels)``."""
    assert isinstance(space, Box)
    low, high = space.low.transpose(2, 0, 1), space.high.transpose(2, 0, 1)
    return Box(low, high, low.shape, np.dtype(space.dtype).type)


def unflatten(rows: Array, space: Space, dtype: np.dtype[Any]) -> Any:
    """Arrays of ``rows``, in dicts and tuples as in ``space``.

    Args:
        rows: ``(count, *flat_shape)``, C-contiguous.
        space: As ``array_space`` returns it.
        dtype: Of one row.

    Returns:
        An array ``(count, *shape)`` for each part, a view.
    """
    if dtype.names is None:
        return rows.reshape(len(rows), *(space.shape or ()))
    return _parts(rows.reshape(len(rows), -1).view(dtype)[:, 0], space)


def _parts(rows: Array, space: Space) -> Any:
    names = rows.dtype.names or ()
    if isinstance(space, Tuple):
        return tuple(_parts(rows[name], child) for name, child in zip(names, space.spaces, strict=True))
    if isinstance(space, Dict):
        # The fields stand in the order of the space, under the texts of its keys.
        return {key: _parts(rows[name], child) for (key, child), name in zip(space.spaces.items(), names, strict=True)}
    return rows
