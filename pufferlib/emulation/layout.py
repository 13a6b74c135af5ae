"""Where every leaf of a nested space lies in one flat row: a table computed once per space."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["Layout", "Leaf", "action_layout", "observation_layout"]

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]


@dataclass(frozen=True)
class Leaf:
    """One array inside a nested sample.

    Attributes:
        name: How messages call it, such as ``observation['map'][0]``.
        path: The keys and indices that lead to it from the top.
        space: Its Box, Discrete, MultiDiscrete or MultiBinary.
        dtype: Of its elements in the row.
        shape: Of its array in the row; () for a Discrete.
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
        low, high = _bounds(self.space)
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
        if array.shape != self.shape:
            raise self.error(f"shape {self.shape}", f"shape {array.shape}")
        allowed = "iub" if self.dtype.kind in "iub" else "iubf"
        if array.dtype.kind not in allowed:
            raise self.error(f"dtype {self.dtype}", f"dtype {array.dtype}")
        converted = array.astype(self.dtype, order="C")
        if self.dtype.kind in "iub" and not np.array_equal(converted, array):
            raise self.error(f"values that {self.dtype} can hold", f"{array.min()} to {array.max()}")
        return converted

    def check(self, value: Any) -> None:
        """Raise APIUsageError unless ``value`` has the right shape and dtype and is within bounds."""
        array = self.convert(value)
        low, high = self.bounds
        if not np.all((array >= low) & (array <= high)):
            raise self.error(f"values in {self.space}", f"{array.min()} to {array.max()}")

    def error(self, expected: str, got: str) -> APIUsageError:
        """The error for a value of this leaf that is not as its space says."""
        return APIUsageError(
            f"emulation: {self.name} must have {expected}, got {got}; "
            f"let the environment and its space {self.space} agree"
        )


@dataclass(frozen=True)
class Layout:
    """How samples of ``space`` lie in flat rows of ``flat_space``.

    Attributes:
        name: What is laid out: "observation" or "action".
        space: As the environment defines it.
        flat_space: As the learner sees it.
        dtype: Of one row: structured, so that ``flat.view(dtype)`` restores the fields, or, when
            ``space`` has no fields, an element dtype with a shape.
        leaves: In the order of the row.
    """

    name: str
    space: Space
    flat_space: Space
    dtype: Dtype
    leaves: tuple[Leaf, ...]

    @property
    def is_emulated(self) -> bool:
        """Whether the learner sees another space than the environment's."""
        return self.flat_space is not self.space

    def check(self, sample: Any) -> None:
        """Raise unless ``sample`` has exactly the leaves of the space, each within its bounds.

        Raises:
            APIUsageError: Names the first leaf that differs, what it must be and what it is.
        """
        _check_keys(self.name, self.space, sample)
        for leaf in self.leaves:
            value = sample
            for key in leaf.path:
                value = value[key]
            leaf.check(value)


def observation_layout(space: Space) -> Layout:
    """The layout of observations.

    A Box stays as it is. Anything else becomes a one-dimensional Box: of the elements when all
    leaves share a dtype, otherwise of uint8 bytes, in which each leaf is aligned to its dtype.

    Raises:
        APIUsageError: A leaf is none of Box, Discrete, MultiDiscrete and MultiBinary.
    """
    dtype, leaves = _table("observation", space)
    if isinstance(space, Box):
        return Layout("observation", space, space, dtype, leaves)
    if len({leaf.dtype for leaf in leaves}) == 1:
        low, high = (np.concatenate([side.ravel() for side in sides]) for sides in _all_bounds(leaves))
        element: Any = leaves[0].dtype.type
        flat: Space = Box(low.astype(element), high.astype(element), dtype=element)
    else:
        flat = Box(0, 255, (dtype.itemsize,), np.uint8)
    return Layout("observation", space, flat, dtype, leaves)


def action_layout(space: Space) -> Layout:
    """The layout of actions.

    Box, Discrete and MultiDiscrete stay as they are. MultiBinary, and Dict and Tuple nested of
    discrete spaces, become one MultiDiscrete of all leaves.

    Raises:
        APIUsageError: A leaf of a nested space is not discrete.
    """
    dtype, leaves = _table("action", space)
    if isinstance(space, Box | Discrete | MultiDiscrete):
        return Layout("action", space, space, dtype, leaves)
    for leaf in leaves:
        if isinstance(leaf.space, Box):
            raise APIUsageError(
                f"emulation: {leaf.name} is {leaf.space}; a nested action space may hold only Discrete, "
                "MultiDiscrete and MultiBinary; split the range into steps, or make the whole space one Box"
            )
    low, high = (np.concatenate([side.ravel() for side in sides]) for sides in _all_bounds(leaves))
    return Layout("action", space, MultiDiscrete(high - low + 1, start=low), dtype, leaves)


def _table(name: str, space: Space) -> tuple[Dtype, tuple[Leaf, ...]]:
    try:
        dtype = _dtype(name, space)
    except ValueError as error:  # numpy: two keys that look alike as strings
        raise APIUsageError(f"emulation: {name} space {space} has unusable keys: {error}; rename them") from None
    leaves = tuple(_walk(name, space, dtype, (), 0))
    if not leaves:
        raise APIUsageError(f"emulation: {name} space {space} is empty; give it at least one leaf")
    return dtype, leaves


def _children(space: Space) -> list[tuple[Hashable, Space]] | None:
    """Keys and spaces inside ``space``; None for a leaf."""
    if isinstance(space, Dict):
        return list(space.spaces.items())
    if isinstance(space, Tuple):
        return list(enumerate(space.spaces))
    return None


def _dtype(name: str, space: Space) -> Dtype:
    children = _children(space)
    if children is None:
        return np.dtype((_element_dtype(name, space), space.shape))
    names = (f"f{key}" if isinstance(space, Tuple) else str(key) for key, _ in children)
    fields = [(field, _dtype(f"{name}[{key!r}]", child)) for field, (key, child) in zip(names, children, strict=True)]
    return np.dtype(fields, align=True)


def _element_dtype(name: str, space: Space) -> Dtype:
    if isinstance(space, Box | MultiBinary):
        return np.dtype(space.dtype)
    if not isinstance(space, Discrete | MultiDiscrete):
        raise APIUsageError(
            f"emulation: {name} space {space} is not supported; "
            "use Box, Discrete, MultiDiscrete, MultiBinary, or Dict and Tuple of them"
        )
    low, high = _bounds(space)
    int32 = np.iinfo(np.int32)
    fits = np.all(low >= int32.min) and np.all(high <= int32.max)
    return np.dtype(np.int32) if fits else np.dtype(np.int64)


def _walk(name: str, space: Space, dtype: Dtype, path: tuple[Hashable, ...], offset: int) -> Iterator[Leaf]:
    children = _children(space)
    if children is None:
        yield Leaf(name, path, space, dtype.base, dtype.shape, offset)
        return
    fields: Mapping[str, Any] = dtype.fields or {}
    for (key, child), field in zip(children, dtype.names or (), strict=True):
        child_dtype, start = fields[field][:2]
        yield from _walk(f"{name}[{key!r}]", child, child_dtype, (*path, key), offset + start)


def _bounds(space: Any) -> tuple[Array, Array]:
    if isinstance(space, Box):
        return space.low, space.high
    if isinstance(space, Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1)
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    return np.zeros(space.shape, np.int8), np.ones(space.shape, np.int8)


def _all_bounds(leaves: tuple[Leaf, ...]) -> tuple[list[Array], list[Array]]:
    bounds = [leaf.bounds for leaf in leaves]
    return [low for low, _ in bounds], [high for _, high in bounds]


def _check_keys(name: str, space: Space, sample: Any) -> None:
    children = _children(space)
    if children is None:
        return
    keys: list[Any]
    if isinstance(space, Dict):
        keys = list(sample) if isinstance(sample, Mapping) else [type(sample).__name__]
    else:
        keys = list(range(len(sample))) if isinstance(sample, tuple | list) else [type(sample).__name__]
    expected = [key for key, _ in children]
    if len(keys) != len(expected) or set(keys) != set(expected):
        raise APIUsageError(
            f"emulation: {name} must have the keys {expected}, got {keys}; let the environment and its space agree"
        )
    for key, child in children:
        _check_keys(f"{name}[{key!r}]", child, sample[key])
