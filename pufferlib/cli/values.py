"""Values on the command line: texts as the types that are expected."""

import ast
import contextlib
import datetime
import json
import tomllib
from collections.abc import Set
from typing import Any

__all__ = ["keyword_value", "literal", "whole_number"]

NOTHING = ("None", "null")


def keyword_value(text: str, kinds: Set[Any]) -> Any:
    """Return ``text`` as one of ``kinds``: types, None for ``None``, and values of a Literal; empty allows any type.

    What is none of them is returned as ``literal`` reads it, so that the environment can refuse it.
    """
    if text in NOTHING:
        return text if kinds and not kinds & {None, type(None)} else None
    for value in kinds:
        if not isinstance(value, type) and str(value) == text:
            return value
    if kinds and not (kinds - {str, type(None), None}):
        return text
    value = literal(text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = _number(text, value, kinds)
    return text if str in kinds and type(value) not in kinds else value


def _number(text: str, value: float, kinds: Set[Any]) -> float:
    if int in kinds and float not in kinds:
        with contextlib.suppress(ValueError):
            return whole_number(text)
    return float(value) if float in kinds and int not in kinds else value


def literal(text: str) -> Any:
    """Return ``text`` as TOML, JSON or Python reads it: number, true, false, None, list or dict. Else it is a string.

    A date is a string too.
    """
    if text in ("True", "False"):
        return text == "True"
    if text in NOTHING:
        return None
    if "#" not in text or text[:1] in tuple("[{'\""):  # else TOML takes what follows for a comment
        with contextlib.suppress(tomllib.TOMLDecodeError):
            table = tomllib.loads(f"value = {text}")
            if table.keys() == {"value"} and not isinstance(table["value"], datetime.date | datetime.time):
                return table["value"]
    if text[:1] in tuple("[{("):
        with contextlib.suppress(ValueError):
            return json.loads(text)
        with contextlib.suppress(ValueError, SyntaxError):
            return ast.literal_eval(text)
    return text


def whole_number(text: str) -> int:
    """Return ``7``, ``10_000`` and ``1e6`` as an int.

    Raises:
        ValueError: It is anything else.
    """
    with contextlib.suppress(ValueError, OverflowError):
        if float(text).is_integer() and "e" in text.lower():
            return int(float(text))
    return int(text)
