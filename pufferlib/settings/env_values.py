"""Conversion between keyword arguments of environments and plain data for settings files.

Numbers, strings, booleans, and lists and dicts of them are stored unchanged. A table with one key stands for a value
that TOML lacks::

    {"$none" = true}                    None
    {"$path" = "/data/prices.csv"}      a path
    {"$tuple" = [84, 84]}               a tuple
    {"$set" = [1, 2]}                   a set
    {"$array" = [0, 1], dtype = "<i8"}  an array
    {"$pairs" = [[1, "a"]]}             a dict whose keys are not strings
    {"$name" = "mypkg.rewards:dense"}   a function, a class or a member of an enum of a module
    {"$object" = "<Frame ...>", ...}    any other object, which only this process can restore
"""

import enum
import os
import time
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from pufferlib import registry
from pufferlib.errors import APIUsageError

__all__ = ["Missing", "check_present", "from_plain", "to_plain"]


NONE, PATH, TUPLE, SET, ARRAY, PAIRS = "$none", "$path", "$tuple", "$set", "$array", "$pairs"
NAME, OBJECT = "$name", "$object"

LARGEST_ARRAY = 10_000  # maximum number of elements, because larger arrays are data and not settings

_PROCESS = f"{os.getpid()}-{time.time_ns()}"
_objects: list[Any] = []  # objects that files refer to, kept for the lifetime of the process


class Missing:
    """Object of another process, of which a settings file has only a description.

    Args:
        table: Table in the file.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = dict(table)

    def __repr__(self) -> str:
        return f"{self.table[OBJECT]} of another process"


def to_plain(value: Any) -> Any:
    """Convert ``value`` to data that TOML can represent. Other objects are kept in memory for ``from_plain``."""
    if value is None:
        return {NONE: True}
    if type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "buif":
        return value.item()
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    if isinstance(value, tuple):
        return {TUPLE: [to_plain(each) for each in value]}
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, PurePath):
        return {PATH: str(value)}
    if isinstance(value, set | frozenset):
        return {SET: [to_plain(each) for each in sorted(value, key=repr)]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif" and value.size <= LARGEST_ARRAY:
        return {ARRAY: value.tolist(), "dtype": value.dtype.str}
    return value.table if isinstance(value, Missing) else _plain_object(value)


def from_plain(value: Any) -> Any:
    """Convert the result of ``to_plain`` back. Objects of another process become ``Missing``."""
    if isinstance(value, list):
        return [from_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"$none": True}:
            return None
        case {"$path": str(path)}:
            return Path(path)
        case {"$tuple": list(items)}:
            return tuple(from_plain(each) for each in items)
        case {"$set": list(items)}:
            return {from_plain(each) for each in items}
        case {"$array": items, "dtype": dtype}:
            return np.array(items, np.dtype(dtype))
        case {"$pairs": pairs}:
            return {_hashable(from_plain(key)): from_plain(each) for key, each in pairs}
        case {"$name": str(name)}:
            return registry.load_object("env", name)
        case {"$object": _, "process": process, "number": number}:
            return _objects[number] if process == _PROCESS else Missing(value)
    return {key: from_plain(each) for key, each in value.items()}


def check_present(env: Mapping[str, Any]) -> None:
    """Raise an error if a keyword argument is an object that this process does not have.

    Raises:
        APIUsageError: An object is missing. The message names the keyword argument.
    """
    for key, value in env.items():
        if isinstance(value, Missing):
            raise APIUsageError(
                f"env.{key} was {value.table[OBJECT]}, an object that no file can hold; pass it again from Python: "
                f"pufferlib.train(resume=..., settings={{'env.{key}': ...}})"
            )


def _plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: to_plain(each) for key, each in value.items()}
    return {PAIRS: [[to_plain(key), to_plain(each)] for key, each in value.items()]}


def _plain_object(value: Any) -> dict[str, Any]:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "<>")
    if isinstance(value, enum.Enum):
        name = f"{type(value).__qualname__}.{value.name}"
    if isinstance(module, str) and module != "__main__" and "<" not in name and _is_at(value, f"{module}:{name}"):
        return {NAME: f"{module}:{name}"}
    number = next((i for i, each in enumerate(_objects) if each is value), len(_objects))
    if number == len(_objects):
        _objects.append(value)
    return {OBJECT: f"{value!r:.80}", "process": _PROCESS, "number": number}


def _is_at(value: Any, name: str) -> bool:
    try:
        return registry.load_object("env", name) is value
    except APIUsageError:
        return False


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
