"""Arrays and structures inside a nested sample, and the conversion of the environment's values to them.

A Text, Sequence, Graph or OneOf varies in size or type. Its structure has room for the largest sample, and unused parts
are zero. ``dtypes`` defines its fields.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Text
from gymnasium.vector.utils import iterate

from pufferlib.emulation.dtypes import SEVERAL_AGENTS, Limits, bounds_of, check_keys, children_of, dtype_of
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["Leaf", "VariableLeaf", "rounded_bounds"]

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]
Index = tuple[Any, ...]

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


class _Part:
    """Part of a nested sample."""

    name: str
    space: Any

    def error(self, expected: str, got: str) -> APIUsageError:
        """Return the error for a value that does not match the space."""
        return APIUsageError(
            f"emulation: {self.name} must have {expected}, got {got}; "
            f"let the environment and its space {self.space} agree"
        )


@dataclass(frozen=True)
class Leaf(_Part):
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


@dataclass(frozen=True)
class VariableLeaf(Leaf):
    """Text, Sequence, Graph or OneOf in a row.

    Attributes:
        limits: Size limits.
    """

    limits: Limits

    def convert(self, value: Any) -> Array:
        """Return the bytes of the structure that holds ``value``.

        Raises:
            APIUsageError: ``value`` is not a sample of the space, or is too large.
        """
        return self._write(value, is_checked=False)

    def check(self, value: Any) -> None:
        """Raise APIUsageError unless ``value`` is a sample of the space and not too large."""
        self._write(value, is_checked=True)

    def _write(self, value: Any, is_checked: bool) -> Array:
        structure = np.zeros(1, self.dtype)
        self._writer.write(structure, (0,), value, is_checked)
        return structure.view(np.uint8)

    @cached_property
    def _writer(self) -> "_Writer":
        return _writer(self.name, self.space, self.limits)


@dataclass(frozen=True)
class _Writer(_Part):
    """Writer of samples of a space into a batch of structures."""

    name: str
    space: Any

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        """Write ``value`` to ``target[index]``. If ``is_checked``, also check the bounds."""
        raise NotImplementedError

    def write_all(self, target: Array, index: Index, values: list[Any], is_checked: bool) -> None:
        """Write ``values`` to ``target[(*index, 0)]``, ``target[(*index, 1)]`` and so on."""
        for position, value in enumerate(values):
            self.write(target, (*index, position), value, is_checked)

    def items(self, batch: Space | None, values: Any) -> list[Any]:
        """Return the samples in ``values``: a collection, or a sample of the batched space ``batch``."""
        try:
            return list(values if batch is None else iterate(batch, values))
        except (TypeError, ValueError, LookupError) as error:
            raise self.error("a collection of samples", f"{values!r} ({error})") from None

    def check_count(self, count: int, limit: int, noun: str, option: str) -> None:
        """Raise unless ``count`` is at most ``limit``."""
        if count > limit:
            raise APIUsageError(
                f"emulation: {self.name} must have at most {limit} {noun}, got {count}; "
                f"give the emulation a larger {option}"
            )


@dataclass(frozen=True)
class _Plain(_Writer):
    leaf: Leaf

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        target[index] = _converted(self.leaf, value, is_checked)

    def write_all(self, target: Array, index: Index, values: list[Any], is_checked: bool) -> None:
        if values:  # an empty list has no shape to compare
            rows = replace(self.leaf, shape=(len(values), *self.leaf.shape))
            target[(*index, slice(len(values)))] = _converted(rows, values, is_checked)


@dataclass(frozen=True)
class _Fields(_Writer):
    children: list[tuple[Hashable, str, _Writer]]

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        check_keys(self.name, self.space, value)
        for key, field, writer in self.children:
            writer.write(target[field], index, value[key], is_checked)

    def write_all(self, target: Array, index: Index, values: list[Any], is_checked: bool) -> None:
        for value in values:
            check_keys(self.name, self.space, value)
        for key, field, writer in self.children:
            writer.write_all(target[field], index, [value[key] for value in values], is_checked)


@dataclass(frozen=True)
class _Text(_Writer):
    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        space: Text = self.space
        if not isinstance(value, str):
            raise self.error("a str", f"{value!r}")
        if not space.min_length <= len(value) <= space.max_length:
            raise self.error(f"{space.min_length} to {space.max_length} characters", f"{len(value)}")
        if not space.character_set.issuperset(value):
            raise self.error(f"characters of {space.characters!r}", f"{value!r}")
        target["length"][index] = len(value)
        target["codes"][(*index, slice(len(value)))] = [ord(character) for character in value]


@dataclass(frozen=True)
class _OneOf(_Writer):
    options: list[_Writer]

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise self.error("a pair (index, sample)", f"{value!r}")
        choice = value[0]
        if not isinstance(choice, int | np.integer) or not 0 <= choice < len(self.options):
            raise self.error(f"an index of 0 to {len(self.options) - 1}", f"{choice!r}")
        target["index"][index] = choice
        self.options[choice].write(target[f"f{choice}"], index, value[1], is_checked)


@dataclass(frozen=True)
class _Sequence(_Writer):
    item: _Writer
    max_length: int

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        items = self.items(self.space.stacked_feature_space if self.space.stack else None, value)
        self.check_count(len(items), self.max_length, "items", "max_length")
        target["length"][index] = len(items)
        self.item.write_all(target["items"], index, items, is_checked)


@dataclass(frozen=True)
class _Graph(_Writer):
    node: _Writer
    max_nodes: int
    edges: "_Edges | None"

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        if not all(hasattr(value, field) for field in ("nodes", "edges", "edge_links")):
            raise self.error("nodes, edges and edge_links", f"{value!r}")
        nodes = self.items(self.space.batch_node_space, value.nodes)
        self.check_count(len(nodes), self.max_nodes, "nodes", "max_nodes")
        target["num_nodes"][index] = len(nodes)
        self.node.write_all(target["nodes"], index, nodes, is_checked)
        if value.edges is None and value.edge_links is None:
            return
        if self.edges is None:
            raise self.error("no edges", f"{value!r}")
        self.edges.write(target, index, value, is_checked)


@dataclass(frozen=True)
class _Edges(_Writer):
    edge: _Writer
    max_edges: int
    link: Leaf

    def write(self, target: Array, index: Index, value: Any, is_checked: bool) -> None:
        edges = self.items(self.space.batch_edge_space, value.edges)
        self.check_count(len(edges), self.max_edges, "edges", "max_edges")
        links = replace(self.link, shape=(len(edges), 2)).convert(value.edge_links)
        num_nodes = target["num_nodes"][index]
        if not np.all((links >= 0) & (links < num_nodes)):
            raise self.error(f"edge_links from 0 to {num_nodes - 1}", f"{links.min()} to {links.max()}")
        target["num_edges"][index] = len(edges)
        self.edge.write_all(target["edges"], index, edges, is_checked)
        target["edge_links"][(*index, slice(len(edges)))] = links


def _writer(name: str, space: Space, limits: Limits) -> _Writer:
    children = children_of(space)
    if children is not None:
        writers = [(key, field, _writer(f"{name}[{key!r}]", child, limits)) for key, field, child in children]
        return _Fields(name, space, writers)
    if isinstance(space, Text):
        return _Text(name, space)
    if isinstance(space, OneOf):
        return _OneOf(name, space, [_writer(f"{name}.f{i}", child, limits) for i, child in enumerate(space.spaces)])
    if isinstance(space, Sequence):
        item = _writer(f"{name}[:]", space.feature_space, limits)
        return _Sequence(name, space, item, limits.get("max_length", name, space))
    if isinstance(space, Graph):
        node = _writer(f"{name}.nodes", space.node_space, limits)
        return _Graph(name, space, node, limits.get("max_nodes", name, space), _edges(name, space, limits))
    return _Plain(name, space, _leaf(name, space, limits))


def _edges(name: str, space: Graph, limits: Limits) -> _Edges | None:
    if space.edge_space is None:
        return None
    edge = _writer(f"{name}.edges", space.edge_space, limits)
    link = _leaf(f"{name}.edge_links", MultiDiscrete([2, 2]), limits)
    return _Edges(name, space, edge, limits.get("max_edges", name, space), link)


def _leaf(name: str, space: Space, limits: Limits) -> Leaf:
    dtype = dtype_of(name, space, limits)
    return Leaf(name, (), space, dtype.base, dtype.shape, 0)


def _converted(leaf: Leaf, value: Any, is_checked: bool) -> Array:
    if is_checked:
        leaf.check(value)
    array = leaf.convert(value)
    if leaf.dtype.kind == "f" and np.isnan(array).any():
        raise leaf.error("numbers", "nan")
    return array
