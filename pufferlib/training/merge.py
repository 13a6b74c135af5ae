"""Settings of several sources as one: sections merged, every key and type checked."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.training.kinds import convert
from pufferlib.training.suggestions import RENAMED, suggest

__all__ = ["merge_sources", "names_in", "nest", "without_unknown"]


def merge_sources(kind: type, sources: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Merge the sections of all sources, later ones first, and check every key and type.

    Args:
        kind: The dataclass whose fields are the sections, themselves dataclasses but for ``env_name`` and ``env``.
        sources: Of each its name in messages, and its tables.

    Returns:
        A dataclass for each section, and a dict for ``env``.

    Raises:
        UnknownNameError: A section or key that does not exist; the nearest are suggested.
        APIUsageError: A value of the wrong type.
    """
    hints = get_type_hints(kind)
    names = names_in(kind)
    merged: dict[str, dict[str, Any]] = {name: {} for name in hints if name != "env_name"}
    for where, data in sources:
        for section, values in data.items():
            if section == "sweep":  # of pufferlib.sweep, which checks it when it is used
                continue
            if section not in merged:
                raise UnknownNameError.of(where, "section", section, merged)
            if not isinstance(values, dict):
                raise APIUsageError(f"{where}: {section} must be a table of settings, got {values!r}")
            if section != "env":
                values = _checked(where, section, hints[section], values, names)
            merged[section] = _over(merged[section], values) if section != "env" else {**merged[section], **values}
    return {name: values if name == "env" else _section(hints[name], values) for name, values in merged.items()}


def without_unknown(kind: type, values: dict[str, Any], section: str = "") -> tuple[dict[str, Any], list[str]]:
    """Separate the settings that exist from those that do not, as in a file of another version.

    Args:
        kind: The dataclass whose fields are the settings, some of them dataclasses themselves.
        values: Tables of settings.
        section: Beginning of their names, such as "train.".

    Returns:
        The settings that exist, and the names of the others.
    """
    hints = get_type_hints(kind)
    known: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in values.items():
        if key not in hints and section + key not in RENAMED:  # which has an advice of its own
            unknown.append(section + key)
        elif dataclasses.is_dataclass(hints.get(key)) and isinstance(value, dict):
            known[key], others = without_unknown(hints[key], value, f"{section}{key}.")
            unknown += others
        else:
            known[key] = value
    return known, unknown


def _over(values: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """``values`` with ``later`` laid over them, those of a section inside one by one."""
    inner = {key: _over(values.get(key, {}), value) for key, value in later.items() if isinstance(value, dict)}
    return {**values, **later, **inner}


def _section(kind: type, values: dict[str, Any]) -> Any:
    """A dataclass of settings, and those inside it."""
    hints = get_type_hints(kind)
    return kind(
        **{key: _section(hints[key], value) if isinstance(value, dict) else value for key, value in values.items()}
    )


def _checked(where: str, section: str, kind: type, values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The values of one section as the types that its dataclass declares."""
    hints = get_type_hints(kind)
    unknown = [key for key in values if key not in hints]
    if unknown and (renamed := RENAMED.get(f"{section}.{unknown[0]}")):
        raise UnknownNameError(f"{where}, [{section}]: {renamed.in_file(values[unknown[0]])}")
    if unknown:
        meant = suggest(f"{section}.{unknown[0]}", names)
        close = [name.removeprefix(f"{section}.") for name in meant]
        raise UnknownNameError.of(f"{where}, [{section}]", "key", unknown[0], hints, close)
    return {key: _converted(where, f"{section}.{key}", hints[key], value, names) for key, value in values.items()}


def _converted(where: str, name: str, hint: Any, value: Any, names: list[str]) -> Any:
    if not dataclasses.is_dataclass(hint):
        return convert(f"{where}: {name}", hint, value)
    if not isinstance(value, dict):
        raise APIUsageError(f"{where}: {name} must be a table of settings, got {value!r}")
    return _checked(where, name, hint, value, names)  # type: ignore[arg-type]  # a class, not one of its objects


def names_in(kind: type, prefix: str = "") -> list[str]:
    """Every setting of a dataclass of sections, as ``section.name``."""
    names: list[str] = []
    for name, hint in get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            names += names_in(hint, f"{prefix}{name}.")  # type: ignore[arg-type]
        elif prefix:
            names.append(prefix + name)
    return names


def nest(dotted: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """``{"train.seed": 1}`` as ``{"train": {"seed": 1}}``.

    Args:
        dotted: Settings by their dotted names.
        names: Every setting, to be suggested.

    Raises:
        APIUsageError: It is no dict, or a key names no section.
    """
    if not isinstance(dotted, Mapping):
        raise APIUsageError(f'overrides: must be a dict, as {{"train.seed": 1}}, got {dotted!r}')
    nested: dict[str, Any] = {}
    for key, value in dotted.items():
        section, dot, name = str(key).partition(".")
        if not dot:
            meant = suggest(section, names, count=1) or ["train.seed"]
            raise APIUsageError(f"overrides: a key must be section.name, got {key!r}; for example {meant[0]}")
        table = nested.setdefault(section, {})
        *tables, last = [name] if section == "env" else name.split(".")
        for inner in tables:
            table = table.setdefault(inner, {})
        table[last] = value
    return nested
