"""Plain data: numbers, strings, arrays, random generators, and objects whose state is only their attributes.

``PlainWriter`` converts it to JSON trees and a buffer of arrays. ``PlainReader`` restores it into similar objects.
"""

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from pufferlib.errors import PufferError

__all__ = [
    "ATOMS",
    "BIT_GENERATORS",
    "MAX_DEPTH",
    "OWN_METHODS",
    "SEQUENCES",
    "HiddenStateError",
    "NotPlainError",
    "assign",
    "attributes",
    "class_of",
    "has_only_attributes",
    "held_by",
    "own_methods",
    "type_name",
]

ATOMS = {bool, float, int, str, type(None)}
SEQUENCES: dict[type, str] = {tuple: "tuple", list: "list", set: "set", frozenset: "frozenset"}
BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
# Methods that save and load an environment's state. The first pair is defined by pufferlib and always used. The others
# often cover only a part of the state, so they are used only if the attributes are not plain data.
OWN_METHODS = (("save_state", "load_state"), ("clone_state", "restore_state"), ("get_state", "set_state"))
HEAD_BYTES = object.__basicsize__
# Nesting limit, below Python's recursion limit, so that the result does not depend on the caller's stack.
MAX_DEPTH = 150


class NotPlainError(PufferError):
    """Error for something that is not plain data, or does not fit into the object to restore."""


class HiddenStateError(NotPlainError):
    """Error for an object with inaccessible state, which methods of its owner cannot save either."""


def type_name(kind: type) -> str:
    """Return the full name of a class."""
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"


def class_of(value: Any) -> Any:
    """Return the actual class of a value, regardless of its ``__class__``."""
    return type(value)


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object itself, including those in slots."""
    found, kind = dict(getattr(value, "__dict__", {})), class_of(value)
    found.update({name: getattr(value, name) for name in slots_of(kind) if hasattr(value, name)})
    return found


@functools.cache
def own_methods(kind: Any) -> tuple[str, str] | None:
    """Return the names of the methods of a class that save and load its state, or None."""
    for save, load in OWN_METHODS:
        if _arguments(getattr(kind, save, None)) == 0 and _arguments(getattr(kind, load, None)) == 1:
            return save, load
    return None


def _arguments(method: Any) -> int | None:
    """Return the number of required arguments of a method, or None if there is no such method."""
    if not isinstance(method, types.FunctionType):
        return None
    _, *parameters = inspect.signature(method).parameters.values()
    return sum(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def assign(found: Any, values: dict[str, Any], others: set[str]) -> None:
    """Set attributes of ``found``, bypassing ``__setattr__``, and delete the attributes ``others``."""
    own = getattr(found, "__dict__", None)
    slots = slots_of(class_of(found))
    for name in others:
        object.__delattr__(found, name)
    for name, value in values.items():
        if own is None or name in slots:
            object.__setattr__(found, name, value)
        else:
            own[name] = value


@functools.cache
def slots_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the attributes in slots, with mangled private names."""
    names: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{base.__name__.lstrip('_')}{name}" if is_private else name)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


@functools.cache
def has_only_attributes(kind: Any) -> bool:
    """Return whether objects of a class have no state in C beyond their attributes."""
    pointers = (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0) + len(slots_of(kind))
    size = HEAD_BYTES + pointers * np.dtype(np.intp).itemsize
    is_python = kind.__flags__ & (1 << 9) and not isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)
    return bool(is_python) and kind.__basicsize__ <= size


def held_by(value: Any) -> Iterator[Any]:
    """Yield the objects that a bound method, a partial or a closure refers to."""
    if isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
    else:
        yield value.__self__
