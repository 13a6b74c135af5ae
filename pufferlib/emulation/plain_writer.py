"""Writing of objects as plain data."""

import collections
import enum
import functools
import logging
import random
import types
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from gymnasium import Space
from gymnasium.envs.registration import EnvSpec

from pufferlib.emulation import simulators
from pufferlib.emulation.plain_data import (
    ATOMS,
    BIT_GENERATORS,
    MAX_DEPTH,
    OWN_METHODS,
    SEQUENCES,
    HiddenStateError,
    NotPlainError,
    attributes,
    class_of,
    has_only_attributes,
    held_by,
    own_methods,
    type_name,
)

__all__ = ["PlainWriter"]

# Types of values that no step changes. They are not saved, and the reader keeps its own.
CONSTANT = (
    *(type, types.ModuleType, types.GenericAlias, property),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType),
    *(np.dtype, np.ufunc, logging.Logger, EnvSpec),
)
CONSTANT_NAMES = {"pygame.time.Clock", "pygame.font.Font"}
# Attributes of a space that can change: its random generator, and the spaces in it.
SPACE_ATTRIBUTES = ("_np_random", "spaces", "feature_space", "node_space", "edge_space")
RANDOM_ATTRIBUTES = ("_np_random", "np_random")


class PlainWriter:
    """Writer of objects as trees of lists that JSON can hold, with their arrays in ``buffers``.

    Objects that occur again are written as references, so that shared objects stay shared.
    """

    def __init__(self) -> None:
        self.buffers = bytearray()
        self._depth = 0
        self._numbers: dict[int, int] = {}  # from object id to number
        self._seen: list[Any] = []  # keeps the objects alive, so that their ids stay unique
        self._arrays: list[tuple[np.ndarray[Any, Any], list[Any]]] = []

    def write(self, value: Any, path: str) -> Any:
        """Return the tree of ``value``.

        Raises:
            NotPlainError: A part of it is not plain data. The message names the part, starting with ``path``.
        """
        if type(value) in ATOMS:
            return value
        if id(value) in self._numbers:
            return ["same", self._numbers[id(value)]]
        if self._depth == MAX_DEPTH:
            raise NotPlainError(f"{path:.60}... is nested more than {MAX_DEPTH} deep")
        self._numbers[id(value)] = len(self._seen)
        self._seen.append(value)
        self._depth += 1
        try:
            return getattr(self, next((name for matches, name in _WRITERS if matches(value)), "_object"))(value, path)
        finally:
            self._depth -= 1

    def _bytes(self, value: bytes | bytearray, path: str = "") -> list[Any]:
        start = len(self.buffers)
        self.buffers += value
        return ["bytes", type(value).__name__, start, len(value)]

    def _number(self, value: Any, path: str) -> list[Any]:
        if isinstance(value, complex) and not isinstance(value, np.generic):
            return ["complex", value.real, value.imag]
        return ["number", self._dtype(value.dtype, path), self._bytes(value.tobytes())]

    def _array(self, value: np.ndarray[Any, Any], path: str) -> list[Any]:
        order: Literal["F", "C"] = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        data = self._bytes(value.tobytes(order))
        tree = ["array", self._dtype(value.dtype, path), list(value.shape), order, self._group(value), data]
        self._arrays.append((value, tree))
        return tree

    def _group(self, value: np.ndarray[Any, Any]) -> int | None:
        """Return the group number of arrays that share memory with ``value``, or None. Mark the others with it.

        Groups that ``value`` connects become one.
        """
        found = [number for number, (other, _) in enumerate(self._arrays) if np.may_share_memory(value, other)]
        if not found:
            return None
        joined = {self._arrays[number][1][4] for number in found} - {None}
        for number, (_, tree) in enumerate(self._arrays):
            if number in found or tree[4] in joined:
                tree[4] = found[0]
        return found[0]

    def _dtype(self, dtype: np.dtype[Any], path: str) -> Any:
        if dtype.hasobject:
            raise NotPlainError(f"{path} is an array of Python objects")
        return np.lib.format.dtype_to_descr(dtype)

    def _sequence(self, value: Any, path: str) -> list[Any]:
        return [SEQUENCES[type(value)], self._each(value, path)]

    def _each(self, values: Any, path: str) -> list[Any]:
        return [self.write(value, f"{path}[{place}]") for place, value in enumerate(values)]

    def _deque(self, value: Any, path: str) -> list[Any]:
        return ["deque", value.maxlen, self._each(value, path)]

    def _named_tuple(self, value: Any, path: str) -> list[Any]:
        return ["named tuple", type_name(type(value)), self._each(value, path)]

    def _dict(self, value: Any, path: str) -> list[Any]:
        items = [
            [self.write(key, f"{path} key"), self.write(one, f"{path}[{key!r:.40}]")] for key, one in value.items()
        ]
        return ["dict", type_name(type(value)), items]

    def _enum(self, value: enum.Enum, path: str) -> list[Any]:
        return ["enum", type_name(type(value)), value.name]

    def _range(self, value: range | slice, path: str) -> list[Any]:
        return [type(value).__name__, self._each((value.start, value.stop, value.step), path)]

    def _generator(self, value: np.random.Generator, path: str) -> list[Any]:
        source: Any = value.bit_generator
        has_spawned = source.seed_seq is not None and source.seed_seq.n_children_spawned
        if type(source).__name__ not in BIT_GENERATORS or has_spawned:
            raise NotPlainError(f"{path} is a random generator that has spawned others, or of a kind of its own")
        return ["generator", type(source).__name__, self._temporary(source.state, path)]

    def _random_state(self, value: np.random.RandomState, path: str) -> list[Any]:
        return ["random state", self._temporary(value.get_state(legacy=False), path)]

    def _random(self, value: random.Random, path: str) -> list[Any]:
        return ["random", self._temporary(value.getstate(), path)]

    def _temporary(self, value: Any, path: str) -> Any:
        """Write a temporary object. It stays alive in ``_seen``."""
        return self.write(value, path)

    def _space(self, value: Space[Any], path: str) -> list[Any]:
        return ["space", type_name(type(value)), self._attributes(value, path, SPACE_ATTRIBUTES)]

    def _simulator(self, value: Any, path: str) -> list[Any]:
        data = simulators.CODECS[type_name(type(value))].save(value)
        return ["simulator", type_name(type(value)), self._temporary(data, path)]

    def _wired(self, value: Any, path: str) -> list[Any]:
        """Write a callable that refers to other objects but never changes: a bound method, a partial, a closure."""
        return ["wired", type_name(type(value)), self._each(held_by(value), path)]

    def _constant(self, value: Any, path: str) -> list[Any]:
        return ["constant", type_name(type(value))]

    def _object(self, value: Any, path: str) -> list[Any]:
        methods = own_methods(class_of(value))
        if methods == OWN_METHODS[0]:
            return self._by_methods(value, path, methods)
        seen, arrays, size = len(self._seen), len(self._arrays), len(self.buffers)
        try:
            if not has_only_attributes(class_of(value)):
                raise NotPlainError(f"{path} is of {type_name(type(value))}, which is no plain data")
            return ["object", type_name(type(value)), self._attributes(value, path)]
        except NotPlainError as error:
            if methods is None or isinstance(error, HiddenStateError):
                raise
            for each in self._seen[seen:]:
                del self._numbers[id(each)]
            del self._seen[seen:], self._arrays[arrays:], self.buffers[size:]
            return self._by_methods(value, path, methods)

    def _by_methods(self, value: Any, path: str, methods: tuple[str, str]) -> list[Any]:
        data = self._temporary(getattr(value, methods[0])(), f"{path}.{methods[0]}()")
        return ["methods", type_name(type(value)), data, self._attributes(value, path, RANDOM_ATTRIBUTES)]

    def _attributes(self, value: Any, path: str, names: tuple[str, ...] | None = None) -> dict[str, Any]:
        found = attributes(value)
        return {
            name: self.write(one, f"{path}.{name}") for name, one in found.items() if names is None or name in names
        }


def _is_exactly(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _is_wired(value: Any) -> bool:
    if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):  # len, or a method of a C object
        return not isinstance(value.__self__, types.ModuleType | type | None)
    return isinstance(value, types.MethodType | functools.partial) or bool(getattr(value, "__closure__", None))


def _is_constant(value: Any) -> bool:
    return isinstance(value, CONSTANT) or type_name(type(value)) in CONSTANT_NAMES


# Type checks in order, with the method of PlainWriter for each.
_WRITERS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_exactly(np.ndarray), "_array"),
    (_is_exactly(dict, collections.OrderedDict, collections.defaultdict, collections.Counter), "_dict"),
    (_is_exactly(*SEQUENCES), "_sequence"),
    (lambda value: isinstance(value, np.generic) or type(value) is complex, "_number"),
    (_is_exactly(bytes, bytearray), "_bytes"),
    (_is_exactly(np.random.Generator), "_generator"),
    (_is_exactly(np.random.RandomState), "_random_state"),
    (_is_exactly(random.Random), "_random"),
    (_is_exactly(collections.deque), "_deque"),
    (_is_exactly(range, slice), "_range"),
    (lambda value: isinstance(value, enum.Enum), "_enum"),
    (lambda value: isinstance(value, tuple) and hasattr(value, "_fields"), "_named_tuple"),
    (lambda value: isinstance(value, Space), "_space"),
    (lambda value: type_name(type(value)) in simulators.CODECS, "_simulator"),
    (_is_wired, "_wired"),
    (_is_constant, "_constant"),
)
