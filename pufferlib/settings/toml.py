"""Reading and writing of TOML files, with the file name in every error."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path

__all__ = ["parse_toml", "read_toml", "to_toml"]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a settings file.

    Raises:
        APIUsageError: The file is missing or not valid TOML.
    """
    try:
        text = user_path(path).read_text("utf-8-sig")  # editors on Windows start files with a byte order mark
    except OSError as error:
        raise APIUsageError(
            f"{path}: cannot be read: {error.strerror}; expected a run's config.toml, or a file of settings like it"
        ) from error
    except UnicodeDecodeError as error:
        raise APIUsageError(f"{path}: is not valid TOML: {error}; save it as UTF-8") from error
    return parse_toml(str(path), text)


def parse_toml(where: str, text: str) -> dict[str, Any]:
    """Parse ``text``. Error messages start with ``where``."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise APIUsageError(f"{where}: is not valid TOML: {error}") from error


def to_toml(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return lines of TOML: plain values first, then one table per nested dict. None is left out.

    Raises:
        APIUsageError: TOML cannot represent a value.
    """
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    lines = [
        f"{_key(key)} = {_value(prefix + key, value)}"
        for key, value in data.items()
        if key not in tables and value is not None
    ]
    for key, values in tables.items():
        name = prefix + _key(key)
        lines += ["", f"[{name}]", *to_toml(values, f"{name}.")]
    return lines


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _value(key, key)


def _value(name: str, value: Any) -> str:
    """Return a value as TOML. It equals JSON, except for the character DEL in strings and for infinity and NaN."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(name, item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_value(name, item)}' for key, item in value.items())}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, str | bool | int | float):
        raise APIUsageError(
            f"config: {name} must be a string, a number, True or False, or lists and dicts of them, got {value!r}; "
            "a run's config.toml could not hold it"
        )
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise APIUsageError(
            f"config: {name} must be text that UTF-8 can hold, got {value!r}; rename its files and folders, or use a "
            "locale with UTF-8"
        )
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
