"""Numpy dtypes of rows that hold one sample of a space, with the same nesting."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Text, Tuple

from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = [
    "SEVERAL_AGENTS",
    "Limits",
    "bounds_of",
    "check_keys",
    "children_of",
    "dtype_of",
    "is_variable",
    "value_bounds",
]

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]
Shape = tuple[int, ...]
COUNT = np.dtype(np.int32)
# Advice for messages about a space or value that seems to belong to several agents.
SEVERAL_AGENTS = (
    "if these are of several agents, make the environment a PettingZoo ParallelEnv and wrap it with PettingZooPufferEnv"
)


@dataclass(frozen=True)
class Limits:
    """Largest sizes of one sample, for spaces that do not limit them.

    Attributes:
        max_length: Largest number of items of a Sequence.
        max_nodes: Largest number of nodes of a Graph.
        max_edges: Largest number of edges of a Graph.
    """

    max_length: int | None = None
    max_nodes: int | None = None
    max_edges: int | None = None

    def get(self, option: str, name: str, space: Space) -> int:
        """Return the limit called ``option`` for ``space``.

        Raises:
            APIUsageError: The limit was not given, or is not a positive integer.
        """
        limit = getattr(self, option)
        if type(limit) is not int or limit < 1:
            raise APIUsageError(
                f"emulation: {name} is {space}, which has no limit of its own; {option} must be a positive integer, "
                f"got {limit!r}; pass {option}=..., the most that one observation may have, to GymnasiumPufferEnv or "
                "PettingZooPufferEnv"
            )
        return limit


def is_variable(space: Space) -> bool:
    """Return whether samples have different sizes or types. Rows then have room for the largest."""
    return isinstance(space, Text | Sequence | Graph | OneOf)


def children_of(space: Space) -> list[tuple[Hashable, str, Space]] | None:
    """Return key, field name and space of everything in a Dict or Tuple, or None for any other space."""
    if isinstance(space, Dict):
        return [(key, str(key) or f"f{place}", child) for place, (key, child) in enumerate(space.spaces.items())]
    if isinstance(space, Tuple):
        return [(index, f"f{index}", child) for index, child in enumerate(space.spaces)]
    return None


def dtype_of(name: str, space: Space, limits: Limits, batch: Shape = ()) -> Dtype:
    """Return the dtype of ``batch`` samples of ``space``. A batch of structures is a structure of arrays.

    Raises:
        APIUsageError: The space has an unknown type, or needs a limit that was not given.
    """
    children = children_of(space)
    if children is not None:
        fields = [(field, dtype_of(f"{name}[{key!r}]", child, limits, batch)) for key, field, child in children]
    elif is_variable(space):
        fields = _variable_fields(name, space, limits, batch)
    else:
        return np.dtype((_element_dtype(name, space), (*batch, *(space.shape or ()))))
    return np.dtype(fields, align=True)


def _variable_fields(name: str, space: Space, limits: Limits, batch: Shape) -> list[tuple[str, Dtype]]:
    count = np.dtype((COUNT, batch))
    if isinstance(space, Text):
        code = np.min_scalar_type(max(map(ord, space.character_set), default=0))
        code = code if code.itemsize == 1 else COUNT  # torch hardly supports other unsigned integers
        return [("length", count), ("codes", np.dtype((code, (*batch, space.max_length))))]
    if isinstance(space, Sequence):
        items = (*batch, limits.get("max_length", name, space))
        return [("length", count), ("items", dtype_of(f"{name}[:]", space.feature_space, limits, items))]
    if isinstance(space, OneOf):
        options = [(f"f{index}", child) for index, child in enumerate(space.spaces)]
        return [
            ("index", count),
            *[(field, dtype_of(f"{name}.{field}", child, limits, batch)) for field, child in options],
        ]
    assert isinstance(space, Graph)
    nodes = (*batch, limits.get("max_nodes", name, space))
    fields = [("num_nodes", count), ("nodes", dtype_of(f"{name}.nodes", space.node_space, limits, nodes))]
    if space.edge_space is not None:
        edges = (*batch, limits.get("max_edges", name, space))
        fields += [
            ("num_edges", count),
            ("edges", dtype_of(f"{name}.edges", space.edge_space, limits, edges)),
            ("edge_links", np.dtype((COUNT, (*edges, 2)))),
        ]
    return fields


#: Advice for the texts of MiniGrid, whose longest one is unknown.
MISSION = (
    "; leave the mission out with minigrid's ImgObsWrapper, or encode it with its FlatObsWrapper or "
    "DictObservationSpaceWrapper. Known worlds have names such as minigrid/MiniGrid-Empty-5x5-v0"
)


def _element_dtype(name: str, space: Space) -> Dtype:
    if isinstance(space, Box | MultiBinary):
        return np.dtype(space.dtype)
    if not isinstance(space, Discrete | MultiDiscrete):
        advice = f"; {SEVERAL_AGENTS}" if isinstance(space, list | tuple | dict) else ""
        if type(space).__name__ == "MissionSpace":
            advice = MISSION
        raise APIUsageError(
            f"emulation: {name} space {space} is not supported; use Box, Discrete, MultiDiscrete, MultiBinary, Text, "
            f"or Dict, Tuple, Sequence, Graph and OneOf of them{advice}"
        )
    low, high = bounds_of(space)
    int32 = np.iinfo(np.int32)
    fits = np.all(low >= int32.min) and np.all(high <= int32.max)
    return np.dtype(np.int32) if fits else np.dtype(np.int64)


def bounds_of(space: Any) -> tuple[Array, Array]:
    """Return the lowest and highest values of a Box, Discrete, MultiDiscrete or MultiBinary."""
    if isinstance(space, Box):
        return space.low, space.high
    if isinstance(space, Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1)
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    return np.zeros(space.shape, np.int8), np.ones(space.shape, np.int8)


def value_bounds(space: Any, limits: Limits, is_padded: bool = False) -> Any:
    """Return the lowest and highest value of every array of ``dtype_of``, as ``(low, high)`` in dicts by field.

    The value is None for an array without elements. If ``is_padded``, the bounds include zero, because samples may not
    fill the array.
    """
    children = children_of(space)
    if children is not None:
        return {field: value_bounds(child, limits, is_padded) for _, field, child in children}
    if isinstance(space, Text):
        return {"length": (0, space.max_length), "codes": (0, max(map(ord, space.character_set), default=0))}
    if isinstance(space, Sequence):
        return {"length": (0, limits.max_length), "items": value_bounds(space.feature_space, limits, True)}
    if isinstance(space, OneOf):
        options = {f"f{index}": value_bounds(child, limits, True) for index, child in enumerate(space.spaces)}
        return {"index": (0, len(options) - 1), **options}
    if isinstance(space, Graph):
        return _graph_bounds(space, limits)
    low, high = bounds_of(space)
    if low.size == 0:
        return None
    lowest, highest = low.min().item(), high.max().item()
    return (min(lowest, 0), max(highest, 0)) if is_padded else (lowest, highest)


def _graph_bounds(space: Graph, limits: Limits) -> dict[str, Any]:
    bounds = {"num_nodes": (0, limits.max_nodes), "nodes": value_bounds(space.node_space, limits, True)}
    if space.edge_space is not None:
        bounds["num_edges"] = (0, limits.max_edges)
        bounds["edges"] = value_bounds(space.edge_space, limits, True)
        bounds["edge_links"] = (0, limits.get("max_nodes", "observation", space) - 1)
    return bounds


def check_keys(name: str, space: Space, sample: Any) -> None:
    """Raise APIUsageError unless ``sample`` has exactly the keys of ``space``, a Dict or Tuple."""
    keys: list[Any]
    if isinstance(space, Dict) and isinstance(sample, dict) and sample.keys() == space.spaces.keys():
        return
    if isinstance(space, Dict):
        keys = list(sample) if isinstance(sample, Mapping) else [type(sample).__name__]
    else:
        is_sequence = isinstance(sample, tuple | list) or (isinstance(sample, np.ndarray) and sample.ndim > 0)
        keys = list(range(len(sample))) if is_sequence else [type(sample).__name__]
    expected = [key for key, _, _ in children_of(space) or []]
    if len(keys) != len(expected) or set(keys) != set(expected):
        raise APIUsageError(
            f"emulation: {name} must have the keys {expected}, got {keys}; let the environment and its space agree"
        )
