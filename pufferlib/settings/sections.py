"""Sections of a settings file for some of its environments: ``["Hopper-v5".train]``, ``["*-ram".policy]``."""

from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any

from pufferlib.errors import PufferError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.registry.inside import binding_module, bindings, inside_names, is_inside, names
from pufferlib.registry.objects import full_name, global_names, is_object_name, short_name, source_file, split_name
from pufferlib.registry.outside import is_there, name_in_file, names_of_file, registrations

__all__ = ["Source", "all_names", "names_beside", "own_names", "split_by_env"]


Source = tuple[str, dict[str, Any]]


def split_by_env(
    source: Source,
    env_name: str,
    sections: Collection[str],
    known: Callable[[str], list[str]],
    elsewhere: bool = False,
) -> list[Source]:
    """Return the parts of a settings file that apply to an environment, in the order in which they apply.

    These are the general sections, then the tables of matching patterns in the order of the file, then the table of the
    environment's own name.

    Args:
        source: Name in messages and tables of the file.
        env_name: Name of the environment.
        sections: Names of general sections.
        known: Function that returns the names that the file may contain, called only for other names than the own.
        elsewhere: Whether the file may also name environments of other files and packages, which have no list.

    Raises:
        UnknownNameError: The name of a table matches no environment. The message suggests the nearest names.
    """
    where, data = source
    tables = {key: table for key, table in data.items() if key not in sections and isinstance(table, dict)}
    if not tables:
        return [source]
    own = own_names(env_name)
    general = {key: values for key, values in data.items() if key not in tables}
    patterns: list[Source] = []
    exact: list[Source] = []
    for name, table in tables.items():
        if name in own or _is_path_of(name, env_name):
            exact.append((f'{where}, ["{name}"]', table))
        elif _matches(name, own):
            patterns.append((f'{where}, ["{name}"]', table))
        elif not (_matches(name, known(env_name)) or (elsewhere and is_there(name))):
            if not all(isinstance(values, dict) for values in table.values()):
                general[name] = table  # probably a misspelled section, which is reported with the other sections
                continue
            raise _unknown(where, name, [*own, *known(env_name), *sections])
    return [(where, general), *patterns, *exact]


def own_names(env_name: str) -> list[str]:
    """Return the names of an environment in settings files, such as "Hopper-v5" and "mujoco/Hopper-v5".

    An environment of a binding has its name in ``puffer list``, even if ``env_name`` is a short form of it. A class or
    function has its own name, and its name with its file or module: "Forage" and "my_env.py:Forage". "my_env.py" stands
    for the only environment of the file.
    """
    binding, _, task = env_name.partition("/")
    if not (task and binding in bindings()):
        name, attribute = short_name(env_name), name_in_file(env_name)
        if not attribute:
            return [name]
        whole = name if name.endswith(f":{attribute}") else f"{name}:{attribute}"
        return list(dict.fromkeys([name, whole, attribute]))
    listed = names(binding)
    if task not in listed:
        made = _made(binding, task)
        task = next((other for other in listed if made is not None and _made(binding, other) == made), task)
    return [task, f"{binding}/{task}"]


def names_beside(env_name: str) -> list[str]:
    """Return the names of the environments that share a settings file with ``env_name``, itself included.

    These are the environments of its binding, or the classes and functions of its file and all registered environments.
    """
    own = own_names(env_name)
    binding, _, task = env_name.partition("/")
    if task and binding in bindings():
        return [*own, *(form for other in names(binding) for form in (other, f"{binding}/{other}"))]
    if is_inside(env_name):
        return own
    file = source_file(env_name) if is_object_name(env_name) else None
    if file is None:
        return [*own, *registrations()]
    place, _ = split_name(own[0])
    defined = global_names(file)
    return [*own, *defined, *(f"{place}:{name}" for name in defined), *registrations()]


def all_names(env_name: str) -> list[str]:
    """Return ``names_beside(env_name)`` and the full names of all environments, including Gymnasium's ids."""
    import gymnasium

    return [*names_beside(env_name), *inside_names(), *registrations(), *gymnasium.registry]


def _is_path_of(name: str, env_name: str) -> bool:
    """Return True if ``name`` is an environment by the path of its file, such as "./my_env.py:Forage"."""
    is_path = "/" in name and split_name(name)[0].endswith((".py", ".c"))
    return is_path and full_name(name) in names_of_file(full_name(env_name))


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def _unknown(where: str, name: str, known: Iterable[str]) -> UnknownNameError:
    close = nearest(name, dict.fromkeys(known))
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"{as_typed('puffer list')} lists the names"
    return UnknownNameError(f"{where}: no environment matches {name!r}; {hint}")


def _made(binding: str, task: str) -> object:
    """Return a value that is equal for all names of one environment of a binding, or None if there is no such name."""
    try:
        creator = binding_module(binding).env_creator(task)
    except PufferError:
        return None
    return getattr(creator, "func", None), getattr(creator, "args", None), getattr(creator, "keywords", creator)
