"""Plain data: numbers, texts, arrays, random generators, and objects that are nothing but their attributes.

A ``PlainWriter`` makes trees of JSON and arrays of them; a ``PlainReader`` puts these back into objects made alike.
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
    "held_by",
    "is_all_seen",
    "own_methods",
    "type_name",
]

ATOMS = {bool, float, int, str, type(None)}
SEQUENCES: dict[type, str] = {tuple: "tuple", list: "list", set: "set", frozenset: "frozenset"}
BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
# Methods by which environments save and load their state. The first are ours, and always called; others are often about
# less than all of it, and called only where attributes do not tell it.
OWN_METHODS = (("save_state", "load_state"), ("clone_state", "restore_state"), ("get_state", "set_state"))
HEAD_BYTES = object.__basicsize__
# Objects in objects: fewer than fill Python's stack, so that what is refused does not depend on the caller's.
MAX_DEPTH = 150


class NotPlainError(PufferError):
    """Something is no plain data, or does not fit where it is to be put."""


class HiddenStateError(NotPlainError):
    """An object keeps some of its state to itself, so that no methods of its owner can save it either."""


def type_name(kind: type) -> str:
    """Full name of a class."""
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"


def class_of(value: Any) -> Any:
    """Class of a value, whatever the value says that it is."""
    return type(value)


def attributes(value: Any) -> dict[str, Any]:
    """Attributes of an object itself, those in slots too."""
    found, kind = dict(getattr(value, "__dict__", {})), class_of(value)
    found.update({name: getattr(value, name) for name in slots_of(kind) if hasattr(value, name)})
    return found


@functools.cache
def own_methods(kind: Any) -> tuple[str, str] | None:
    """Names of the methods of a class that save its state and load it; None without."""
    for save, load in OWN_METHODS:
        if _arguments(getattr(kind, save, None)) == 0 and _arguments(getattr(kind, load, None)) == 1:
            return save, load
    return None


def _arguments(method: Any) -> int | None:
    """Arguments that a method must be given; None if there is no such method."""
    if not isinstance(method, types.FunctionType):
        return None
    _, *parameters = inspect.signature(method).parameters.values()
    return sum(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def assign(found: Any, values: dict[str, Any], others: set[str]) -> None:
    """Give ``found`` these attributes, past any ``__setattr__``, and take away ``others``."""
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
    """Names of the attributes in slots, as they are found from outside a class."""
    names: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{base.__name__.lstrip('_')}{name}" if is_private else name)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


@functools.cache
def is_all_seen(kind: Any) -> bool:
    """True of classes whose objects are their attributes, and hold nothing in C beside them."""
    pointers = (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0) + len(slots_of(kind))
    size = HEAD_BYTES + pointers * np.dtype(np.intp).itemsize
    is_python = kind.__flags__ & (1 << 9) and not isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)
    return bool(is_python) and kind.__basicsize__ <= size


def held_by(value: Any) -> Iterator[Any]:
    """Objects that a bound method, a partial or a closure holds."""
    if isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
    else:
        yield value.__self__
