"""Conversion of command line values to Python types."""

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
    """Convert ``text`` to one of ``kinds``, which contains types, None, and values of a ``Literal``.

    An empty set allows any type. If no kind matches, the result of ``literal`` is returned, so that the environment can
    report the error.
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
    """Parse ``text`` as TOML, JSON or Python: a number, boolean, None, list or dict. Anything else is a string.

    Dates are also returned as strings.
    """
    if text in ("True", "False"):
        return text == "True"
    if text in NOTHING:
        return None
    if "#" not in text or text[:1] in tuple("[{'\""):  # otherwise TOML would treat the rest as a comment
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
    """Convert ``7``, ``10_000`` or ``1e6`` to an int.

    Raises:
        ValueError: ``text`` is not a whole number.
    """
    with contextlib.suppress(ValueError, OverflowError):
        if float(text).is_integer() and "e" in text.lower():
            return int(float(text))
    return int(text)
