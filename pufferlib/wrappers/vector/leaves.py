"""Nested observations with float32 in place of all floats: dtypes, bounds and spaces."""

import math
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import numpy as np
from gymnasium.spaces import Box, Dict, Tuple

from pufferlib.buffers import Array

__all__ = [
    "as_rows",
    "emulation_of",
    "field_names",
    "flat_box",
    "joined_names",
    "real_bounds",
    "real_dtype",
    "real_space",
    "view_fields",
]

Dtype = np.dtype[Any]
Fields = tuple[str, ...]  # field names, outermost first


def real_dtype(dtype: Dtype) -> Dtype:
    """Return ``dtype`` of an observation with float32 in place of each float, and with new alignment."""
    if dtype.names is not None:
        return np.dtype([(name, real_dtype(dtype[name])) for name in dtype.names], align=True)
    return np.dtype((np.float32, dtype.shape)) if dtype.base.kind == "f" else dtype


def real_bounds(bounds: Any, dtype: Dtype, limit: float) -> Any:
    """Return ``observation_bounds`` with plus and minus ``limit`` for each float array of ``dtype``."""
    if bounds is None:
        return None
    if dtype.names is not None:
        return {name: real_bounds(bounds[name], dtype[name], limit) for name in dtype.names}
    return (-limit, limit) if dtype.base.kind == "f" else bounds


def real_space(space: Any, limit: float) -> Any:
    """Return ``space`` with each Box of floats replaced by one with bounds of plus and minus ``limit``."""
    if isinstance(space, Dict):
        return Dict({key: real_space(child, limit) for key, child in space.spaces.items()})
    if isinstance(space, Tuple):
        return Tuple([real_space(child, limit) for child in space.spaces])
    if isinstance(space, Box) and np.dtype(space.dtype).kind == "f":
        return Box(-limit, limit, space.shape, np.float32)
    return space


def field_names(dtype: Dtype, outer: Fields = ()) -> Iterator[Fields]:
    """Yield the path of field names to each array of ``dtype``. An empty path if ``dtype`` has no fields."""
    if dtype.names is None:
        yield outer
    for name in dtype.names or ():
        yield from field_names(dtype[name], (*outer, name))


def joined_names(arrays: Iterable[Fields]) -> dict[Fields, str]:
    """Return one distinct name for each array: its field names, joined by dots.

    If two arrays would have the same name, as ``{"a.b": ...}`` and ``{"a": {"b": ...}}``, special characters in field
    names are percent-encoded. Dots and slashes count as the same character.
    """
    plain = {names: ".".join(names) for names in arrays}
    if len({name.replace(".", "/") for name in plain.values()}) == len(plain):
        return plain
    return {names: ".".join(quote(name, safe="").replace(".", "%2E") for name in names) for names in plain}


def flat_box(dtype: Dtype, limit: float) -> Box:
    """Return the space of flat rows of ``dtype``, as emulation has it.

    It has the elements of the arrays if all have the same type, else bytes.
    """
    fields = list(field_names(dtype))
    bases = {_inner(dtype, names).base for names in fields}
    if len(bases) == 1:
        (base,) = bases
        return Box(-limit, limit, (dtype.itemsize // base.itemsize,), base.type)
    return Box(0, 255, (dtype.itemsize,), np.uint8)


def emulation_of(dtype: Dtype, flat: Dtype, bounds: Any) -> dict[str, Any]:
    """Return the value of ``emulated`` for emulated environments."""
    return {"observation_dtype": flat, "emulated_observation_dtype": dtype, "observation_bounds": bounds}


def view_fields(rows: Array, dtype: Dtype, names: Fields) -> Array:
    """Return a view of one array in flat ``rows`` of ``dtype``, ``(rows, elements)``."""
    found = rows.view(dtype)[:, 0]
    for name in names:
        found = found[name]
    return as_rows(found)


def as_rows(observations: Array) -> Array:
    """Return a view of ``observations`` as ``(rows, elements)``."""
    return observations.reshape(len(observations), math.prod(observations.shape[1:]))


def _inner(dtype: Dtype, names: Fields) -> Dtype:
    for name in names:
        dtype = dtype[name]
    return dtype
