"""Restoring of plain data into objects.

The data never cause code to be executed. Environments and simulators are filled in place. Other objects are created
with ``object.__new__`` alone, from classes in the packages of the environment.
"""

import collections
import enum
import functools
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pufferlib.emulation import simulators
from pufferlib.emulation.plain_data import (
    BIT_GENERATORS,
    MAX_DEPTH,
    NotPlainError,
    assign,
    attributes,
    class_of,
    has_only_attributes,
    held_by,
    own_methods,
    type_name,
)

__all__ = ["PlainReader"]

DICTS: dict[str, Callable[[], Any]] = {
    "builtins.dict": dict,
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
}
MISSING: Any = types.SimpleNamespace()  # marks that there is no current object


class PlainReader:
    """Reader of the trees of a ``PlainWriter``. Nothing is changed before ``commit``.

    Args:
        buffers: Buffers of the writer.
        packages: Names of packages whose classes may be instantiated.
        owners: Objects to fill in place, which must stay alive. Other objects are created.
    """

    def __init__(self, buffers: memoryview, packages: set[str], owners: Iterable[Any]) -> None:
        self._buffers, self._packages = buffers, packages
        self._owners = {id(owner) for owner in owners}
        self._made: dict[int, Any] = {}
        self._count = self._depth = 0
        self._groups: dict[int, list[tuple[str, Any]]] = {}  # paths and arrays that share memory
        self._writes: list[Callable[[], object]] = []

    def commit(self) -> None:
        """Apply all changes."""
        for write in self._writes:
            write()

    def check_groups(self) -> None:
        """Check that arrays share memory as they did when they were saved.

        Raises:
            NotPlainError: An array does not.
        """
        for arrays in self._groups.values():
            for number, (path, array) in enumerate(arrays):
                others = (other for place, (_, other) in enumerate(arrays) if place != number)
                if len(arrays) > 1 and not any(np.may_share_memory(array, other) for other in others):
                    raise NotPlainError(f"{path} shares its memory with another array, which it does not here")

    def read(self, tree: Any, current: Any = MISSING, path: str = "") -> Any:
        """Return the object of ``tree``: ``current`` if it can be filled in place, or a new object.

        Raises:
            NotPlainError: The tree does not fit.
        """
        if not isinstance(tree, list):
            return tree
        kind, *parts = tree
        if kind == "same":
            return self._made[parts[0]]
        if self._depth == MAX_DEPTH:
            raise NotPlainError(f"it is nested more than {MAX_DEPTH} deep")
        number, self._count = self._count, self._count + 1
        self._depth += 1
        found = getattr(self, _READERS[kind])(number, current, path, *parts)
        self._depth -= 1
        return found

    def _register(self, number: int, found: Any) -> Any:
        """Register ``found`` for later references to ``number``."""
        self._made[number] = found
        return found

    def _bytes(self, number: int, current: Any, path: str, kind: str, start: int, length: int) -> Any:
        data = bytes(self._buffers[start : start + length])
        self._made[number] = bytearray(data) if kind == "bytearray" else data
        return self._made[number]

    def _data(self, tree: list[Any]) -> memoryview:
        *_, start, length = tree
        return self._buffers[start : start + length]

    def _number(self, number: int, current: Any, path: str, descr: Any, data: list[Any]) -> Any:
        self._made[number] = np.frombuffer(self._data(data), _dtype(descr))[0]
        return self._made[number]

    def _complex(self, number: int, current: Any, path: str, real: float, imag: float) -> complex:
        self._made[number] = complex(real, imag)
        return complex(real, imag)

    def _array(
        self, number: int, current: Any, path: str, descr: Any, shape: list[int], order: Any, group: Any, data: Any
    ) -> Any:
        dtype = _dtype(descr)
        value = np.ndarray(shape, dtype, bytes(self._data(data)), order=order)
        if group is None:
            self._made[number] = value.copy(order)
            return self._made[number]
        is_like = type(current) is np.ndarray and (current.shape, current.dtype) == (value.shape, dtype)
        if not (is_like and current.flags.writeable):
            raise NotPlainError(f"{path} shares its memory with another array, which it does not here")
        self._groups.setdefault(group, []).append((path, current))
        self._made[number] = current
        self._writes.append(functools.partial(np.copyto, current, value))
        return current

    def _each(self, trees: list[Any], current: Any, path: str) -> list[Any]:
        there = list(current) if isinstance(current, tuple | list | collections.deque) else []
        there += [MISSING] * (len(trees) - len(there))
        return [
            self.read(tree, one, f"{path}[{place}]")
            for place, (tree, one) in enumerate(zip(trees, there, strict=False))
        ]

    def _tuple(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        self._made[number] = tuple(self._each(trees, current, path))
        return self._made[number]

    def _frozenset(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        self._made[number] = frozenset(self._hashable(tree, path) for tree in trees)
        return self._made[number]

    def _hashable(self, tree: Any, path: str) -> Any:
        """Return a new object whose attributes are set, because its hash may depend on them."""
        return self._temporary(tree, path) if isinstance(tree, list) else tree

    def _list(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        found: list[Any] = self._register(number, [])
        items = self._each(trees, current, path)
        self._writes.append(functools.partial(found.extend, items))
        return found

    def _set(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        found: set[Any] = self._register(number, set())
        items = self._each(trees, MISSING, path)
        self._writes.append(functools.partial(found.update, items))
        return found

    def _deque(self, number: int, current: Any, path: str, maxlen: int | None, trees: list[Any]) -> Any:
        found: collections.deque[Any] = self._register(number, collections.deque(maxlen=maxlen))
        items = self._each(trees, current, path)
        self._writes.append(functools.partial(found.extend, items))
        return found

    def _named_tuple(self, number: int, current: Any, path: str, name: str, trees: list[Any]) -> Any:
        kind = self._class(name, current, path)
        if not (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            raise NotPlainError(f"{path} is of {name}, which is no named tuple here")
        self._made[number] = tuple.__new__(kind, self._each(trees, current, path))
        return self._made[number]

    def _dict(self, number: int, current: Any, path: str, name: str, items: list[Any]) -> Any:
        fits = current is not MISSING and type_name(type(current)) == name
        if name == "collections.defaultdict" and fits:
            found = self._register(number, collections.defaultdict(current.default_factory))
        elif name in DICTS:
            found = self._register(number, DICTS[name]())
        else:
            raise NotPlainError(f"{path} is of {name}, which cannot be made of plain data")
        pairs = []
        for key_tree, tree in items:
            key = self._hashable(key_tree, path)
            there = current.get(key, MISSING) if fits else MISSING
            pairs.append((key, self.read(tree, there, f"{path}[{key!r:.40}]")))
        # The method of the class keeps the order of an OrderedDict. That of a Counter would add to its counts.
        update = dict.update if isinstance(found, collections.Counter) else type(found).update
        self._writes.append(functools.partial(update, found, pairs))
        return found

    def _enum(self, number: int, current: Any, path: str, name: str, member: str) -> Any:
        kind = self._class(name, current, path)
        if not issubclass(kind, enum.Enum) or member not in kind.__members__:
            raise NotPlainError(f"{path} is {member} of {name}, which is not there")
        self._made[number] = kind.__members__[member]
        return self._made[number]

    def _range(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        self._made[number] = range(*self._each(trees, MISSING, path))
        return self._made[number]

    def _slice(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        self._made[number] = slice(*self._each(trees, MISSING, path))
        return self._made[number]

    def _generator(self, number: int, current: Any, path: str, name: str, tree: Any) -> Any:
        if name not in BIT_GENERATORS:
            raise NotPlainError(f"{path} is a random generator of {name}, which is none of numpy's")

        def set_state(found: np.random.Generator, state: Any) -> None:
            found.bit_generator.state = state

        kind = getattr(np.random, name)
        return self._restore_generator(number, tree, np.random.Generator(kind(0)), set_state)

    def _random_state(self, number: int, current: Any, path: str, tree: Any) -> Any:
        return self._restore_generator(number, tree, np.random.RandomState(0), np.random.RandomState.set_state)

    def _random(self, number: int, current: Any, path: str, tree: Any) -> Any:
        return self._restore_generator(number, tree, random.Random(0), random.Random.setstate)

    def _restore_generator(self, number: int, tree: Any, found: Any, set_state: Callable[[Any, Any], None]) -> Any:
        set_state(found, self._temporary(tree, ""))
        return self._register(number, found)

    def _temporary(self, tree: Any, path: str) -> Any:
        """Return a new object that is filled immediately."""
        writes, self._writes = self._writes, []
        found = self.read(tree, MISSING, path)
        self.commit()
        self._writes = writes
        return found

    def _space(self, number: int, current: Any, path: str, name: str, trees: dict[str, Any]) -> Any:
        self._expect(current, name, path)
        self._made[number] = current
        self._set_attributes(current, trees, path, is_all=False)
        return current

    def _simulator(self, number: int, current: Any, path: str, name: str, tree: Any) -> Any:
        self._expect(current, name, path)
        self._made[number] = current
        data, codec = self._temporary(tree, path), simulators.CODECS[name]
        if not codec.fits(current, data):
            raise NotPlainError(f"{path} is of another {name}: of another model, game or size")
        self._writes.append(lambda: codec.load(current, data))
        return current

    def _wired(self, number: int, current: Any, path: str, name: str, trees: list[Any]) -> Any:
        """Bind the function ``current`` to the restored objects that it refers to."""
        self._expect(current, name, path)
        self._made[number] = current  # for references from inside
        found = self._each(trees, list(held_by(current)), path)
        if isinstance(current, types.FunctionType):
            self._writes.append(lambda: _fill_cells(current, found))
            return current
        if isinstance(current, functools.partial):
            function, arguments, keywords = found
            partial: Any = self._register(number, functools.partial(function))
            self._writes.append(lambda: partial.__setstate__((function, arguments, keywords, {})))
            return partial
        if found[0] is current.__self__:
            return current
        if isinstance(current, types.MethodType):
            return self._register(number, types.MethodType(current.__func__, found[0]))
        return self._register(number, getattr(found[0], current.__name__))

    def _constant(self, number: int, current: Any, path: str, name: str) -> Any:
        self._expect(current, name, path)
        self._made[number] = current
        return current

    def _object(self, number: int, current: Any, path: str, name: str, trees: dict[str, Any]) -> Any:
        fits = current is not MISSING and type_name(type(current)) == name
        # Only objects of the environment are filled in place. Others may be shared, as constants of a module are.
        found = self._register(number, current if fits and id(current) in self._owners else self._new(name, path))
        self._set_attributes(found, trees, path, is_all=True)
        return found

    def _methods(self, number: int, current: Any, path: str, name: str, tree: Any, trees: dict[str, Any]) -> Any:
        self._expect(current, name, path)
        self._made[number] = current
        data, methods = self._temporary(tree, path), own_methods(class_of(current))
        if methods is None:
            raise NotPlainError(f"{path} has no method that loads its state")
        load = getattr(current, methods[1])
        self._writes.append(lambda: load(data))
        self._set_attributes(current, trees, path, is_all=False)
        return current

    def _set_attributes(self, found: Any, trees: dict[str, Any], path: str, is_all: bool) -> None:
        there = attributes(found)
        values = {name: self.read(tree, there.get(name, MISSING), f"{path}.{name}") for name, tree in trees.items()}
        others = set(there) - set(values) if is_all else set()
        self._writes.append(lambda: assign(found, values, others))

    def _expect(self, current: Any, name: str, path: str) -> None:
        if current is MISSING or type_name(type(current)) != name:
            raise NotPlainError(f"{path} must be of {name}, which cannot be made of plain data, and is not there")

    def _new(self, name: str, path: str) -> Any:
        kind = self._class(name, MISSING, path)
        if not has_only_attributes(kind) or hasattr(kind, "__del__"):
            raise NotPlainError(f"{path} is of {name}, none of which can be made here")
        return object.__new__(kind)

    def _class(self, name: str, current: Any, path: str) -> Any:
        """Return the class with this name, from ``current`` or from modules that are already imported."""
        if current is not MISSING and type_name(type(current)) == name:
            return type(current)
        for module, kind in _classes_named(name):
            if module.partition(".")[0] in self._packages:
                return kind
        raise NotPlainError(f"{path} is of {name}, which is in none of the environment's packages")


def _fill_cells(function: Any, values: list[Any]) -> None:
    cells = [cell for cell in function.__closure__ if cell != types.CellType()]
    for cell, value in zip(cells, values, strict=True):
        cell.cell_contents = value


def _dtype(descr: Any) -> np.dtype[Any]:
    dtype = np.lib.format.descr_to_dtype(descr)
    if dtype.hasobject:
        raise NotPlainError("an array is of Python objects")
    return dtype


def _classes_named(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the module names and classes with this full name in imported modules."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        for part in parts[cut:]:
            found = vars(found).get(part) if isinstance(found, type | types.ModuleType) else None
        if isinstance(found, type):
            yield ".".join(parts[:cut]), found


_READERS = {
    "bytes": "_bytes",
    "number": "_number",
    "complex": "_complex",
    "array": "_array",
    "tuple": "_tuple",
    "list": "_list",
    "set": "_set",
    "frozenset": "_frozenset",
    "deque": "_deque",
    "named tuple": "_named_tuple",
    "dict": "_dict",
    "enum": "_enum",
    "range": "_range",
    "slice": "_slice",
    "generator": "_generator",
    "random state": "_random_state",
    "random": "_random",
    "space": "_space",
    "simulator": "_simulator",
    "wired": "_wired",
    "constant": "_constant",
    "object": "_object",
    "methods": "_methods",
}
