"""Plain data put back into objects.

Nothing that the data name is executed: objects that are there are filled; others are made of classes of the packages
that the environment comes from, by ``object.__new__`` alone.
"""

import collections
import enum
import functools
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pufferlib.emulation import simulators
from pufferlib.emulation.plain_data import (
    ATOMS,
    BIT_GENERATORS,
    NotPlainError,
    assign,
    attributes,
    class_of,
    held_by,
    is_all_seen,
    own_methods,
    type_name,
)

__all__ = ["PlainReader"]

MISSING: Any = types.SimpleNamespace()  # in the place of an object that is not there


class PlainReader:
    """Puts the trees of a ``PlainWriter`` back; nothing is changed before ``commit``.

    Args:
        buffers: Of the writer.
        packages: Names of packages of whose classes objects may be made.
    """

    def __init__(self, buffers: memoryview, packages: set[str]) -> None:
        self._buffers, self._packages = buffers, packages
        self._made: dict[int, Any] = {}
        self._count = 0
        self._taken: set[int] = set()  # ids of the objects that are filled
        self._arrays: list[np.ndarray[Any, Any]] = []  # those of them
        self._kept: list[Any] = []
        self._writes: list[Callable[[], object]] = []

    def commit(self) -> None:
        """Fill the objects."""
        for write in self._writes:
            write()

    def read(self, tree: Any, current: Any = MISSING, path: str = "") -> Any:
        """The object of ``tree``: ``current`` where that can be filled, or a new one.

        Raises:
            NotPlainError: It fits neither.
        """
        if not isinstance(tree, list):
            return tree
        kind, *parts = tree
        if kind == "same":
            return self._made[parts[0]]
        number, self._count = self._count, self._count + 1
        return getattr(self, _READERS[kind])(number, current, path, *parts)

    def _take(self, number: int, current: Any, fits: bool, make: Callable[[], Any]) -> Any:
        """``current`` if it fits and is not another's yet, else a new one."""
        is_free = fits and current is not MISSING and id(current) not in self._taken
        found = current if is_free else make()
        self._taken.add(id(found))
        self._kept.append(found)
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
        self, number: int, current: Any, path: str, descr: Any, shape: list[int], order: Any, overlaps: bool, data: Any
    ) -> Any:
        dtype = _dtype(descr)
        value = np.ndarray(shape, dtype, bytes(self._data(data)), order=order)
        is_like = type(current) is np.ndarray and (current.shape, current.dtype) == (value.shape, dtype)
        fits = is_like and current.flags.writeable
        if fits and overlaps != any(np.may_share_memory(current, other) for other in self._arrays):
            fits = False
        if overlaps and not fits:
            raise NotPlainError(f"{path} shares its memory with another array, which it does not here")
        found = self._take(number, current, fits, lambda: value.copy(order))
        self._arrays.append(found)
        self._writes.append(functools.partial(np.copyto, found, value))
        return found

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
        self._made[number] = frozenset(self._each(trees, MISSING, path))
        return self._made[number]

    def _list(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        found = self._take(number, current, type(current) is list, list)
        items = self._each(trees, current, path)
        self._writes.append(lambda: found.__setitem__(slice(None), items))
        return found

    def _set(self, number: int, current: Any, path: str, trees: list[Any]) -> Any:
        found = self._take(number, current, type(current) is set, set)
        items = self._each(trees, MISSING, path)
        self._writes.append(lambda: (found.clear(), found.update(items)))
        return found

    def _deque(self, number: int, current: Any, path: str, maxlen: int | None, trees: list[Any]) -> Any:
        fits = type(current) is collections.deque and current.maxlen == maxlen
        found = self._take(number, current, fits, lambda: collections.deque(maxlen=maxlen))
        items = self._each(trees, current, path)
        self._writes.append(lambda: (found.clear(), found.extend(items)))
        return found

    def _named_tuple(self, number: int, current: Any, path: str, name: str, trees: list[Any]) -> Any:
        kind = self._class(name, current, path)
        if not (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            raise NotPlainError(f"{path} is of {name}, which is no named tuple here")
        self._made[number] = tuple.__new__(kind, self._each(trees, current, path))
        return self._made[number]

    def _dict(self, number: int, current: Any, path: str, name: str, items: list[Any]) -> Any:
        make = {"builtins.dict": dict, "collections.OrderedDict": collections.OrderedDict}.get(name)
        fits = current is not MISSING and type_name(type(current)) == name
        if make is None and (not fits or id(current) in self._taken):
            raise NotPlainError(f"{path} is of {name}, and none is there to be filled")
        found = self._take(number, current, fits, make or dict)
        pairs = []
        for key_tree, tree in items:
            key = self.read(key_tree, MISSING, path)
            there = current.get(key, MISSING) if fits else MISSING
            pairs.append((key, self.read(tree, there, f"{path}[{key!r:.40}]")))
        self._writes.append(lambda: (found.clear(), found.update(pairs)))
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
        fits = type(current) is np.random.Generator and type(current.bit_generator).__name__ == name

        def set_state(found: np.random.Generator, state: Any) -> None:
            found.bit_generator.state = state

        kind = getattr(np.random, name)
        return self._chance(number, current if fits else MISSING, tree, lambda: np.random.Generator(kind(0)), set_state)

    def _random_state(self, number: int, current: Any, path: str, tree: Any) -> Any:
        there = current if type(current) is np.random.RandomState else MISSING
        return self._chance(number, there, tree, lambda: np.random.RandomState(0), np.random.RandomState.set_state)

    def _random(self, number: int, current: Any, path: str, tree: Any) -> Any:
        there = current if type(current) is random.Random else MISSING
        return self._chance(number, there, tree, lambda: random.Random(0), random.Random.setstate)

    def _chance(
        self, number: int, current: Any, tree: Any, make: Callable[[], Any], set_state: Callable[[Any, Any], None]
    ) -> Any:
        found = self._take(number, current, current is not MISSING, make)
        state = self._temporary(tree, "")
        set_state(make(), state)  # raises if it is none, while nothing is changed
        self._writes.append(lambda: set_state(found, state))
        return found

    def _temporary(self, tree: Any, path: str) -> Any:
        """A new object, filled at once."""
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
        self._expect(current, name, path)
        self._made[number] = current
        there = list(held_by(current))
        found = self._each(trees, there, path)
        if len(found) != len(there) or not all(map(_is_same, found, there)):
            raise NotPlainError(f"{path} holds other things than the one that was saved")
        return current

    def _constant(self, number: int, current: Any, path: str, name: str) -> Any:
        self._expect(current, name, path)
        self._made[number] = current
        return current

    def _object(self, number: int, current: Any, path: str, name: str, trees: dict[str, Any]) -> Any:
        fits = current is not MISSING and type_name(type(current)) == name
        found = self._take(number, current, fits, lambda: self._new(name, path))
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
        if not is_all_seen(kind) or hasattr(kind, "__del__"):
            raise NotPlainError(f"{path} is of {name}, none of which can be made here")
        return object.__new__(kind)

    def _class(self, name: str, current: Any, path: str) -> Any:
        """The class of that name, which is imported already; that of ``current`` if it is the one."""
        if current is not MISSING and type_name(type(current)) == name:
            return type(current)
        for module, kind in _classes_named(name):
            if module.partition(".")[0] in self._packages:
                return kind
        raise NotPlainError(f"{path} is of {name}, which is in none of the environment's packages")


def _is_same(one: Any, other: Any) -> bool:
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) in ATOMS and bool(one == other)


def _dtype(descr: Any) -> np.dtype[Any]:
    dtype = np.lib.format.descr_to_dtype(descr)
    if dtype.hasobject:
        raise NotPlainError("an array is of Python objects")
    return dtype


def _classes_named(name: str) -> Iterator[tuple[str, Any]]:
    """Classes of that full name in modules that are imported, with the names of these."""
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
