"""Settings from files and callers: their sources, merged, with every name and type checked."""

import ctypes
import dataclasses
import types
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError
from pufferlib.ocean.files import settings_of_file
from pufferlib.settings.env_values import from_plain
from pufferlib.settings.sections import Source
from pufferlib.settings.suggestions import RENAMED, suggest
from pufferlib.settings.toml import parse_toml, read_toml

__all__ = [
    "CALLER",
    "CONDITIONS",
    "Source",
    "convert",
    "default_settings",
    "env_name_in",
    "for_run",
    "merge_sources",
    "names_in",
    "nest",
    "own_settings",
    "settings_file",
    "without_unknown",
]


CALLER = "overrides"  # settings of a call or a command, whose values are named without their source
CONDITIONS = ("cuda", "perceptron")  # tables of sections that apply to some runs only

# Number of games in a batch for a C file without settings of its own.
_GAMES = 64


def default_settings() -> Source:
    """Return the settings of ``default.toml``, and its name in messages."""
    return _parse_own("default.toml")


def for_run(sources: list[Source]) -> list[Source]:
    """Remove the tables ``cuda`` and ``perceptron`` of each source, or make them sources of their own if they apply.

    A table such as ``[cuda.train]`` applies if training uses a GPU, and ``[perceptron.policy]`` if the policy is
    ``Default``. It then overrides its own source, and later sources override it.
    """
    found = []
    for where, data in sources:
        tables = {name: data[name] for name in CONDITIONS if name in data}
        found.append((where, {name: data[name] for name in data if name not in tables}))
        found += [(f"{where}, [{name}]", tables[name]) for name in tables if _applies(name, sources)]
    return found


def _applies(condition: str, sources: list[Source]) -> bool:
    if condition == "perceptron":
        return bool(_last(sources, "policy", "name", "Default") == "Default")
    device = _last(sources, "train", "device", "auto")
    return has_gpu() if device == "auto" else str(device).startswith("cuda")


def _last(sources: list[Source], section: str, name: str, default: Any) -> Any:
    """Return a setting of the last source that has it."""
    tables = [table for _, data in sources if isinstance(table := data.get(section), dict) and name in table]
    return tables[-1][name] if tables else default


def has_gpu() -> bool:
    """Return True if ``train.device`` "auto" is a GPU. Imports torch only if there is a driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    import torch

    return torch.cuda.is_available()


def settings_file(file: Path) -> Source:
    """Return the settings of a TOML file, and its name in messages.

    Raises:
        APIUsageError: The file cannot be read.
    """
    settings = {key: value for key, value in read_toml(file).items() if key != "env_name"}
    if isinstance(env := settings.get("env"), dict):  # of a run, it has values that TOML cannot represent
        settings["env"] = from_plain(env)
    return str(file), settings


def env_name_in(file: Path) -> str | None:
    """Return the ``env_name`` of a settings file such as a run's ``config.toml``, or None."""
    name = read_toml(file).get("env_name")
    return name if isinstance(name, str) else None


def own_settings(env_name: str) -> list[Source]:
    """Return the settings that come with an environment.

    Raises:
        APIUsageError: A file cannot be read.
    """
    if not registry.is_inside(env_name):
        return _sources_outside(env_name)
    binding, _, game = env_name.partition("/")
    home = resources.files("pufferlib.bindings") / binding if game else resources.files("pufferlib.ocean") / env_name
    file = home / "train.toml"
    where = f"{home.name}/train.toml"
    own = [(where, parse_toml(where, file.read_text("utf-8")))] if file.is_file() else []
    return [_parse_own("third_party.toml"), *own] if game else own


def _sources_outside(env_name: str) -> list[Source]:
    try:
        names = ["third_party.toml"] if registry.batches_itself(env_name) else ["third_party.toml", "outside.toml"]
    except UnknownNameError:  # the name of a run whose environments are passed as objects
        return []
    sources = [_parse_own(name) for name in names]
    source = registry.c_file(env_name)
    if source:
        sources.append(("games of a C file", {"env": {"num_envs": _GAMES}}))
    registration = registry.registrations().get(env_name)
    if registration is None or registration.settings is None:
        beside = settings_of_file(source) if source else _settings_beside(env_name)
        return [*sources, settings_file(beside)] if beside else sources
    if isinstance(registration.settings, Mapping):
        own = {section: dict(values) for section, values in registration.settings.items()}
        return [*sources, (f"settings of {env_name}", own)]
    return [*sources, settings_file(Path(registration.settings))]


def _settings_beside(env_name: str) -> Path | None:
    """Return the path of ``my_env.toml`` for an environment in ``my_env.py``, or None if there is no such file."""
    file = registry.source_file(env_name) if Path(registry.split_name(env_name)[0]).suffix == ".py" else None
    beside = file.with_suffix(".toml") if file else None
    return beside if beside and beside.is_file() else None


def _parse_own(name: str) -> Source:
    """Return the settings of a file in this folder."""
    return name, parse_toml(name, (resources.files("pufferlib.settings") / name).read_text("utf-8"))


def merge_sources(kind: type, sources: Iterable[Source]) -> dict[str, Any]:
    """Merge the sections of all sources. Later sources override earlier ones.

    Args:
        kind: Dataclass with a field per section. Sections are dataclasses, except ``env_name`` and ``env``.
        sources: Name in messages and tables of each source.

    Returns:
        Dataclass for each section, and a dict for ``env``.

    Raises:
        UnknownNameError: A section or setting does not exist. The message suggests the nearest ones.
        APIUsageError: A value has the wrong type.
    """
    hints = get_type_hints(kind)
    names = names_in(kind)
    merged: dict[str, dict[str, Any]] = {name: {} for name in hints if name != "env_name"}
    for where, data in sources:
        for section, values in data.items():
            if section == "sweep":  # pufferlib.sweep checks it
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
        kind: Dataclass with a field per setting or table of settings.
        values: Tables of settings.
        section: Prefix of the names, such as "train.".

    Returns:
        Settings that exist, and names of the others.
    """
    hints = get_type_hints(kind)
    known: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in values.items():
        if key not in hints and section + key not in RENAMED:  # _checked names the new setting
            unknown.append(section + key)
        elif dataclasses.is_dataclass(hints.get(key)) and isinstance(value, dict):
            known[key], others = without_unknown(hints[key], value, f"{section}{key}.")
            unknown += others
        else:
            known[key] = value
    return known, unknown


def _over(values: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Return ``values`` updated with ``later``. Nested tables are merged."""
    inner = {key: _over(values.get(key, {}), value) for key, value in later.items() if isinstance(value, dict)}
    return {**values, **later, **inner}


def _section(kind: type, values: dict[str, Any]) -> Any:
    """Return the dataclass of a section, with the dataclasses inside it."""
    hints = get_type_hints(kind)
    return kind(
        **{key: _section(hints[key], value) if isinstance(value, dict) else value for key, value in values.items()}
    )


def _checked(where: str, section: str, kind: type, values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the values of a section as the types that its dataclass declares."""
    hints = get_type_hints(kind, include_extras=True)
    unknown = [key for key in values if key not in hints]
    if unknown and (renamed := RENAMED.get(f"{section}.{unknown[0]}")):
        raise UnknownNameError(f"{where}, [{section}]: {renamed.in_file(values[unknown[0]])}")
    if unknown:
        meant = suggest(f"{section}.{unknown[0]}", names)
        close = [name.removeprefix(f"{section}.") for name in meant]
        raise UnknownNameError.of(f"{where}, [{section}]", "key", unknown[0], hints, close)
    checked = {}
    for key, value in values.items():
        name, hint = f"{section}.{key}", hints[key]
        named = name if where == CALLER else f"{where}: {name}"
        if not dataclasses.is_dataclass(hint):
            checked[key] = convert(named, hint, value)
        elif isinstance(value, dict):
            checked[key] = _checked(where, name, hint, value, names)  # type: ignore[arg-type]  # a class
        else:
            raise APIUsageError(f"{named} must be a table of settings, got {value!r}")
    return checked


def names_in(kind: type, prefix: str = "") -> list[str]:
    """Return every setting of a dataclass of sections as ``section.name``."""
    names: list[str] = []
    for name, hint in get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            names += names_in(hint, f"{prefix}{name}.")  # type: ignore[arg-type]
        elif prefix:
            names.append(prefix + name)
    return names


def nest(dotted: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return nested tables of dotted settings: ``{"train": {"seed": 1}}`` for ``{"train.seed": 1}``.

    Args:
        dotted: Settings by dotted name.
        names: All settings, for suggestions.

    Raises:
        APIUsageError: ``dotted`` is not a dict, or a key has no section.
    """
    if not isinstance(dotted, Mapping):
        raise APIUsageError(f'overrides: must be a dict, as {{"train.seed": 1}}, got {dotted!r}')
    nested: dict[str, Any] = {}
    for key, value in dotted.items():
        section, dot, name = str(key).partition(".")
        if not dot:
            dotted_keys = [f"{key}.{name}" for name in value] if isinstance(value, Mapping) else []
            meant = dotted_keys or suggest(section, names, count=1) or ["train.seed"]
            raise APIUsageError(f"overrides: a key must be section.name, got {key!r}; for example {meant[0]}")
        table = nested.setdefault(section, {})
        *tables, last = [name] if section == "env" else name.split(".")
        for inner in tables:
            table = table.setdefault(inner, {})
        table[last] = value
    return nested


def convert(where: str, hint: Any, value: Any) -> Any:
    """Return ``value`` as the type that a setting declares.

    Args:
        where: Start of the error message.
        hint: Type of the setting.
        value: Value of a file or a caller. NumPy numbers, and whole floats such as 1e6 for an int, are converted.

    Raises:
        UsageError: The value has another type, or is out of range.
    """
    if get_origin(hint) is Annotated:
        value = convert(where, get_args(hint)[0], value)
        if value is not None:
            hint.__metadata__[0].check(where, value)
        return value
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise UsageError(f"{where} must be {' or '.join(map(repr, get_args(hint)))}, got {value!r}")
        return value
    if get_origin(hint) is tuple:
        return _items(where, get_args(hint)[0], value)
    options = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else (hint,)
    if isinstance(value, np.generic):
        value = value.item()
    if float in options and type(value) is int:
        return float(value)
    if int in options and float not in options and type(value) is float and value.is_integer():
        return int(value)  # 1e6
    if type(value) not in options and not (value is None and types.NoneType in options):
        expected = " or ".join("unset" if option is types.NoneType else option.__name__ for option in options)
        raise UsageError(f"{where} must be {expected}, got {value!r} ({type(value).__name__})")
    return value


def _items(where: str, kind: Any, value: Any) -> tuple[Any, ...]:
    """Return a tuple of strings or ints, from a list or from a string with commas."""
    items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value
    is_number = kind is not str
    if is_number and isinstance(value, str):
        items = [int(item) if item.isdecimal() else item for item in items]
    if not isinstance(items, list | tuple):
        kinds = "ints" if is_number else "strings"
        raise UsageError(f"{where} must be a list of {kinds}, got {value!r} ({type(value).__name__})")
    return tuple(convert(where, kind, item) for item in items)
