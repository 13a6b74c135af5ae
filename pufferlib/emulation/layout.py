"""Layout of a nested space in one flat row, as a table of leaves that is computed once per space."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiDiscrete, OneOf, Text

from pufferlib.emulation.dtypes import Limits, check_keys, children_of, dtype_of, is_variable, value_bounds
from pufferlib.emulation.leaf import Leaf, VariableLeaf
from pufferlib.errors import APIUsageError
from pufferlib.spaces import MixedBox, Space

__all__ = ["Layout", "Leaf", "Limits", "action_layout", "observation_layout"]

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]

NO_LIMITS = Limits()
EXACT = 2**24  # largest number up to which float32 has all integers


@dataclass(frozen=True)
class Layout:
    """Layout of samples of ``space`` in flat rows of ``flat_space``.

    Attributes:
        name: Kind of the samples, "observation" or "action".
        space: Space of the environment.
        flat_space: Space that the learner sees.
        dtype: Dtype of one row. Structured if ``space`` has fields, so that ``flat.view(dtype)`` restores them.
            Otherwise an element dtype with a shape.
        leaves: Leaves in the order of the row.
        limits: Size limits of Sequences and Graphs.
    """

    name: str
    space: Space
    flat_space: Space
    dtype: Dtype
    leaves: tuple[Leaf, ...]
    limits: Limits = NO_LIMITS

    @property
    def emulated(self) -> dict[str, Any]:
        """Value of ``emulated`` for emulated environments. See ``GymnasiumPufferEnv``."""
        return {
            "observation_dtype": np.dtype(self.flat_space.dtype),
            "emulated_observation_dtype": self.dtype,
            "observation_bounds": value_bounds(self.space, self.limits),
        }

    @property
    def is_emulated(self) -> bool:
        """True if the learner sees a different space than the environment's."""
        return self.flat_space is not self.space

    def check(self, sample: Any) -> None:
        """Check that ``sample`` has exactly the leaves of the space, each within its bounds.

        Raises:
            APIUsageError: A leaf differs. The message names the first one, what was expected and what was found.
        """
        _check_keys(self.name, self.space, sample)
        for leaf in self.leaves:
            value = sample
            for key in leaf.path:
                value = value[key]
            leaf.check(value)


def observation_layout(space: Space, limits: Limits = NO_LIMITS) -> Layout:
    """Return the layout of observations.

    A Box is unchanged. Any other space becomes a one-dimensional Box. It has the elements of the leaves if all of them
    are arrays of one dtype. Otherwise it has uint8 bytes, in which each leaf is aligned to its dtype. A Dict or Tuple
    without elements has one byte, which is 0, so that rows can be viewed as their fields.

    Args:
        space: Observation space of the environment.
        limits: Size limits of Sequences and Graphs.

    Raises:
        APIUsageError: The space has an unknown type or no leaves, or needs a limit that was not given.
    """
    dtype, leaves = _table("observation", space, limits)
    if isinstance(space, Box):
        return Layout("observation", space, space, dtype, leaves, limits)
    if dtype.names and not dtype.itemsize:  # numpy cannot view a row as elements of 0 bytes
        formats, offsets = [dtype[name] for name in dtype.names], [0] * len(dtype.names)
        dtype = np.dtype({"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": 1})
    elif len({leaf.dtype for leaf in leaves}) == 1 and leaves[0].dtype.names is None:
        low, high = _joint_bounds(leaves)
        element: Any = leaves[0].dtype.type
        flat = Box(low.astype(element), high.astype(element), dtype=element)
        return Layout("observation", space, flat, dtype, leaves, limits)
    return Layout("observation", space, Box(0, 255, (dtype.itemsize,), np.uint8), dtype, leaves, limits)


def action_layout(space: Space) -> Layout:
    """Return the layout of actions.

    Box, Discrete and MultiDiscrete are unchanged. A nested space becomes one flat vector of all its leaves. It is a
    MultiDiscrete if each leaf has finitely many values (Discrete, MultiDiscrete, MultiBinary, or a bounded Box of
    integers), a Box if each leaf is a Box of floats, and a MixedBox of floats if there are leaves of both kinds.

    A OneOf becomes the index of the option, followed by the leaves of all options, of which only the chosen option is
    used. A Text becomes its length, followed by as many characters as it may have, of which only this number is used.
    Each character is an index into the allowed characters, sorted by their code.

    Raises:
        APIUsageError: The space has an unknown type or no leaves. Or it contains a Sequence or Graph, integers beyond
            int32, or a Box of floats without bounds beside other leaves.
    """
    leaves = tuple(_action_leaves("action", space))
    if not leaves:
        raise APIUsageError(f"emulation: action space {space} is empty; give it at least one leaf")
    dtype = _dtype("action", space, NO_LIMITS)
    if isinstance(space, Box):
        return Layout("action", space, space, dtype, leaves)
    low, high = _joint_bounds(leaves)
    is_real = np.repeat([leaf.dtype.kind == "f" for leaf in leaves], [leaf.count for leaf in leaves])
    if is_real.all():
        return Layout("action", space, Box(low, high, dtype=low.dtype.type), dtype, leaves)
    for leaf in leaves:
        _check_finite(leaf)
    if is_real.any():
        exact = float(max(np.abs(low).max(), np.abs(high).max())) <= EXACT
        is_double = any(leaf.dtype == np.float64 for leaf in leaves) or not exact
        return Layout(
            "action", space, MixedBox(low, high, ~is_real, np.float64 if is_double else np.float32), dtype, leaves
        )
    if isinstance(space, Discrete | MultiDiscrete):
        return Layout("action", space, space, dtype, leaves)
    low, high = low.astype(np.int64), high.astype(np.int64)
    return Layout("action", space, MultiDiscrete(high - low + 1, start=low), dtype, leaves)


def _check_finite(leaf: Leaf) -> None:
    """Raise unless ``leaf`` has integers that fit into int32, or finite bounds."""
    if leaf.dtype.kind == "f":
        if not (np.isfinite(leaf.bounds[0]) & np.isfinite(leaf.bounds[1])).all():
            raise APIUsageError(
                f"emulation: {leaf.name} is beside discrete leaves and must have finite bounds, got {leaf.space}; "
                "give it the bounds that the environment clips to"
            )
        return
    int32 = np.iinfo(np.int32)
    if np.any(leaf.bounds[0] < int32.min) or np.any(leaf.bounds[1] > int32.max):
        raise APIUsageError(f"emulation: {leaf.name} must be within int32, got {leaf.space}; give it smaller bounds")


def _action_leaves(name: str, space: Space) -> Iterator[Leaf]:
    """Yield the leaves in the order of the flat vector. Their offsets are 0, because actions have no byte layout."""
    if isinstance(space, OneOf):
        yield Leaf(f"{name}.index", (), Discrete(len(space.spaces)), np.dtype(np.int32), (), 0)
        for index, child in enumerate(space.spaces):
            yield from _action_leaves(f"{name}.f{index}", child)
        return
    if isinstance(space, Text):
        lengths = Discrete(space.max_length - space.min_length + 1, start=space.min_length)
        characters = MultiDiscrete([len(space.character_set)] * space.max_length)
        yield Leaf(f"{name}.length", (), lengths, np.dtype(np.int32), (), 0)
        yield Leaf(f"{name}.characters", (), characters, np.dtype(np.int32), characters.shape, 0)
        return
    if is_variable(space):
        raise APIUsageError(
            f"emulation: {name} is {space}; an action cannot have any number of parts; use Discrete, MultiDiscrete, "
            "MultiBinary, Box, Text, or Dict, Tuple and OneOf of them"
        )
    children = children_of(space)
    if children is None:
        dtype = dtype_of(name, space, NO_LIMITS)
        yield Leaf(name, (), space, dtype.base, dtype.shape, 0)
    for key, _, child in children or []:
        yield from _action_leaves(f"{name}[{key!r}]", child)


def _table(name: str, space: Space, limits: Limits) -> tuple[Dtype, tuple[Leaf, ...]]:
    dtype = _dtype(name, space, limits)
    leaves = tuple(_walk(name, space, limits, dtype, (), 0))
    if not leaves:
        raise APIUsageError(f"emulation: {name} space {space} is empty; give it at least one leaf")
    return dtype, leaves


def _dtype(name: str, space: Space, limits: Limits) -> Dtype:
    try:
        return dtype_of(name, space, limits)
    except APIUsageError:
        raise
    except ValueError as error:  # numpy: two keys with the same string representation
        raise APIUsageError(f"emulation: {name} space {space} has unusable keys: {error}; rename them") from None


def _walk(
    name: str, space: Space, limits: Limits, dtype: Dtype, path: tuple[Hashable, ...], offset: int
) -> Iterator[Leaf]:
    children = children_of(space)
    if children is None:
        if is_variable(space):
            yield VariableLeaf(name, path, space, dtype, (), offset, limits)
        else:
            yield Leaf(name, path, space, dtype.base, dtype.shape, offset)
        return
    fields: Mapping[str, Any] = dtype.fields or {}
    for key, field, child in children:
        child_dtype, start = fields[field][:2]
        yield from _walk(f"{name}[{key!r}]", child, limits, child_dtype, (*path, key), offset + start)


def _joint_bounds(leaves: tuple[Leaf, ...]) -> tuple[Array, Array]:
    """Return the bounds of all elements of all leaves, in order."""
    bounds = [leaf.bounds for leaf in leaves]
    return np.concatenate([low.ravel() for low, _ in bounds]), np.concatenate([high.ravel() for _, high in bounds])


def _check_keys(name: str, space: Space, sample: Any) -> None:
    children = children_of(space)
    if children is None:
        return
    check_keys(name, space, sample)
    for key, _, child in children:
        _check_keys(f"{name}[{key!r}]", child, sample[key])
