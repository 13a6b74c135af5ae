"""Sections of a settings file for some of its environments: ``["Hopper-v5".train]``, ``["*-ram".policy]``."""

from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any

from pufferlib import registry
from pufferlib.errors import UnknownNameError, nearest
from pufferlib.machine.commands import as_typed

__all__ = ["split_by_env"]

Source = tuple[str, dict[str, Any]]


def split_by_env(
    source: Source, env_name: str, sections: Collection[str], known: Callable[[str], list[str]]
) -> list[Source]:
    """Return the parts of a settings file that apply to an environment, in the order in which they apply.

    These are the general sections, then the tables of matching patterns in the order of the file, then the table of the
    environment's own name.

    Args:
        source: Name in messages and tables of the file.
        env_name: Name of the environment.
        sections: Names of general sections.
        known: Function that returns all names that the file may contain, called only for other names than the own.

    Raises:
        UnknownNameError: The name of a table matches no environment. The message suggests the nearest names.
    """
    where, data = source
    tables = {key: table for key, table in data.items() if key not in sections and isinstance(table, dict)}
    if not tables:
        return [source]
    own = registry.own_names(env_name)
    general = {key: values for key, values in data.items() if key not in tables}
    patterns: list[Source] = []
    exact: list[Source] = []
    for name, table in tables.items():
        if name in own:
            exact.append((f'{where}, ["{name}"]', table))
        elif _matches(name, own):
            patterns.append((f'{where}, ["{name}"]', table))
        elif not _matches(name, known(env_name)):
            if not all(isinstance(values, dict) for values in table.values()):
                general[name] = table  # probably a misspelled section, which is reported with the other sections
                continue
            raise _unknown(where, name, [*own, *known(env_name), *sections])
    return [(where, general), *patterns, *exact]


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def _unknown(where: str, name: str, known: Iterable[str]) -> UnknownNameError:
    close = nearest(name, dict.fromkeys(known))
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"{as_typed('puffer list')} lists the names"
    return UnknownNameError(f"{where}: no environment matches {name!r}; {hint}")
