"""Resolution of names of environments that are not in this repository.

=============================== ==========================================================================
Name                            Environment
=============================== ==========================================================================
``myname``                      registered with ``pufferlib.register``, also by an installed package
``path/to/my_env.py:Forage``    class or function in a file, or its only environment without ``:Forage``
``mypkg.envs:make_forage``      class or function in a module, installed or in the current folder
``CartPole-v1``, ``ALE/Pong-v5`` Gymnasium id
``mypkg:Forage-v0``             id that a module registers with Gymnasium when it is imported
``path/to/corridor.c``          C file, compiled again after each change
=============================== ==========================================================================
"""

import contextlib
import functools
import importlib
import inspect
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError, PufferError, UnknownNameError
from pufferlib.registry.inside import binding_facts, is_inside, names
from pufferlib.registry.objects import (
    class_names,
    full_name,
    global_names,
    has_module,
    import_module,
    is_object_name,
    load_object,
    source_file,
    split_name,
)

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

__all__ = [
    "GROUP",
    "REGISTERED",
    "Registration",
    "c_file",
    "gymnasium_spec",
    "is_there",
    "likely_names",
    "load_packages",
    "name_in_file",
    "name_of",
    "names_of_file",
    "outside_creator",
    "register",
    "registrations",
]

#: Entry point group. Each entry is a module that registers environments when imported, or a function that does.
GROUP = "pufferlib.envs"

Settings = Mapping[str, Mapping[str, Any]] | Path | str
Creator = Callable[..., Any]

_OWN_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")
_GYMNASIUM_ID = re.compile(r"([\w.-]+/)?[\w.-]+-v\d+")
# Gymnasium ids that only exist after the module has been imported.
_REGISTERED_BY = {"ale_py": re.compile(r"ALE/.+|\w+(-ram)?(NoFrameskip|Deterministic)?-v[045]")}


@dataclass(frozen=True)
class Registration:
    """Arguments of one call of ``register``.

    Attributes:
        creator: Class or function that makes the environment, or its name.
        settings: Training settings, as sections of a ``train.toml`` or the path of one. None means the defaults.
        about: Description in one sentence, for ``puffer list``.
    """

    creator: Creator | str
    settings: Settings | None
    about: str


#: Registrations in this process, by name.
REGISTERED: dict[str, Registration] = {}


def register(name: str, creator: Creator | str, settings: Settings | None = None, about: str = "") -> None:
    """Register your environment under a name for ``pufferlib.make``, ``puffer train`` and all other verbs.

    Registering a name again replaces the earlier registration. An installed package can register its environments
    with an entry point in the group ``pufferlib.envs``: a module or a function that calls ``register``.

    Args:
        name: Name of the environment, with letters, digits, ``_``, ``.``, ``-`` and slashes: "forage", "mypkg/forage".
        creator: Class or function that makes a Gymnasium or PettingZoo environment or a ``PufferEnv``. It may be given
            by name, "mypkg.envs:Forage", and is then imported on first use.
        settings: Training settings, ``{"train": {"gamma": 0.9}}``, or the path of a ``train.toml``.
        about: Description in one sentence, for ``puffer list``.

    Raises:
        APIUsageError: ``name`` is invalid or belongs to an environment of this repository, ``creator`` is neither
            callable nor a string, or ``settings`` is neither a mapping nor a path.
    """
    where = "pufferlib.register"
    if not isinstance(name, str) or not _OWN_NAME.fullmatch(name) or name.endswith((".py", ".c")):
        raise APIUsageError(f"{where}: name must be letters, digits, _, . and -, as in 'mypkg/forage', got {name!r}")
    if is_inside(name):
        raise APIUsageError(f"{where}: {name!r} is an environment of this repository; choose another name")
    if not callable(creator) and not isinstance(creator, str):
        raise APIUsageError(
            f"{where}: creator must be a class or function, or its name as in 'mypkg.envs:Forage', got {creator!r}"
        )
    if settings is not None and not isinstance(settings, Mapping | Path | str):
        raise APIUsageError(f"{where}: settings must be a mapping or the path of a TOML file, got {settings!r}")
    REGISTERED[name] = Registration(full_name(creator) if isinstance(creator, str) else creator, settings, about)


def name_of(env: Creator, where: str) -> str:
    """Return the ``module:name`` of a class or function. Register one from a script or notebook under its own name.

    The name gets a numeric suffix if another environment is registered under it. Settings from an earlier registration
    of the same class or function stay.

    Raises:
        APIUsageError: ``env`` is neither a class nor a function. The message starts with ``where``.
    """
    module, own = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "")
    if not callable(env) or not own:
        raise APIUsageError(
            f"{where}: env must be a name, a class or a function, got {env!r}; "
            "any other callable needs a name: pufferlib.register(name, env)"
        )
    if module != "__main__" and own.isidentifier() and inspect.getmodule(env) is not None:
        return f"{module}:{own}"
    title = own.rpartition(".")[2].strip("<>")
    name = next(each for each in _numbered(title) if _is_free_for(each, env))
    earlier = REGISTERED.get(name)
    register(name, env, *((earlier.settings, earlier.about) if earlier else ()))
    return name


def _numbered(name: str) -> Iterator[str]:
    """Yield ``name``, then "name-2", "name-3" and so on."""
    return itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))


def _is_free_for(name: str, env: Creator) -> bool:
    """Return True if ``name`` is not registered, or registered for ``env`` or an earlier definition of it."""
    if name not in REGISTERED or REGISTERED[name].creator is env:
        return True
    known, places = REGISTERED[name].creator, ("__module__", "__qualname__")
    is_local = "<" in env.__qualname__  # two local functions may differ although they have one definition
    return not is_local and all(getattr(known, place, None) == getattr(env, place, None) for place in places)


def registrations() -> Mapping[str, Registration]:
    """Return all registrations by name, including those of installed packages."""
    load_packages()
    return REGISTERED


@functools.cache
def load_packages() -> None:
    """Load the entry points of installed packages. Warn about each one that fails and continue with the others."""
    from importlib.metadata import entry_points  # takes 15 ms, which environments of this repository do not need

    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
            if callable(loaded):
                loaded()
        except Exception as error:
            warnings.warn(
                f"pufferlib: the entry point {entry.name} = {entry.value!r} of group {GROUP} failed: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def outside_creator(where: str, name: str) -> Creator | None:
    """Return a creator for an environment that is not in this repository, or None if ``name`` matches no form.

    Args:
        where: Prefix of error messages.
        name: Name in one of the forms that the docstring of this module lists.

    Raises:
        UnknownNameError: A module, or the attribute of a module or file, does not exist.
        APIUsageError: The file does not exist or cannot be imported.
    """
    found = (resolve(where, name) for resolve in _RESOLVERS)
    return next((creator for creator in found if creator is not None), None)


def _resolve_registered(where: str, name: str) -> Creator | None:
    if name not in REGISTERED and name not in registrations():
        return None
    from pufferlib.registry.creators import creator_of

    creator = _latest(name, REGISTERED[name].creator)
    names = [name]
    while isinstance(creator, str) and creator in REGISTERED:  # a name of a name
        names.append(creator)
        if creator in names[:-1]:
            raise APIUsageError(f"{where}: a name must not be registered as itself, got {' as '.join(names)}")
        creator = _latest(creator, REGISTERED[creator].creator)
    if isinstance(creator, str):
        found = outside_creator(where, creator)
        if found is None:
            raise APIUsageError(
                f"{where}: {name} is registered as {creator!r}, which is not an environment; expected "
                "mypkg.envs:Forage, path/to/file.py:Forage, or a Gymnasium id"
            )
        return found
    return creator_of(names[-1], creator)


def _latest(name: str, creator: Creator | str) -> Creator | str:
    """Return the newest definition of ``creator`` in the script or notebook, since a cell may have run again."""
    if getattr(creator, "__module__", "") != "__main__" or getattr(creator, "__qualname__", "") != name:
        return creator
    latest = getattr(sys.modules["__main__"], name, creator)
    return latest if callable(latest) else creator


def _resolve_object(where: str, name: str) -> Creator | None:
    if not is_object_name(name):
        return None
    place, attribute = split_name(name)
    if not place.endswith(".py") and not has_module(place):
        return None
    if place in binding_facts() and attribute in names(place):
        return None  # "procgen:bigfish" is a typo for "procgen/bigfish", not an object of that package
    from pufferlib.registry.creators import creator_of

    name = full_name(name)
    maker = inner = _load_env_object(where, name)
    while isinstance(inner, functools.partial):
        inner = inner.func
    if (getattr(inner, "__module__", None) or "").partition(".")[0] in sys.stdlib_module_names:
        # A policy file of a stranger can name the environment and its arguments, such as os:system.
        raise APIUsageError(f"{name}: must make an environment, got {inner!r} of Python's standard library")
    return creator_of(name, maker)


def _load_env_object(where: str, name: str) -> Any:
    from gymnasium import Env, Wrapper
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

    from pufferlib.env import PufferEnv

    kinds = (Env, ParallelEnv, AECEnv, PufferEnv)
    return load_object(where, name, kinds, (Wrapper, BaseWrapper, BaseParallelWrapper))


def name_in_file(name: str) -> str:
    """Return the attribute of a name such as "my_env.py:Forage". For "my_env.py", return its only environment.

    The result is "" if the name has no attribute, and its file does not define exactly one environment.
    """
    place, attribute = split_name(name)
    if attribute or not place.endswith(".py"):
        return attribute
    try:
        return str(_load_env_object("pufferlib", name).__name__)
    except PufferError:  # reported where the environment is made
        return ""


def names_of_file(name: str) -> list[str]:
    """Return all names of an environment: "my_env.py" and "my_env.py:Forage" are the same if the file has no other."""
    place, attribute = split_name(name)
    only = name_in_file(place) if place.endswith(".py") else ""
    return [place, f"{place}:{only}"] if only and attribute in ("", only) else [name]


def gymnasium_spec(name: str) -> "EnvSpec | None":
    """Return the ``EnvSpec`` of a Gymnasium id, which can begin with its module, or None if it is not registered."""
    import gymnasium

    env_id = name.rpartition(":")[2]
    return gymnasium.registry.get(env_id) if env_id == name or _GYMNASIUM_ID.fullmatch(env_id) else None


def _resolve_gymnasium_id(where: str, name: str) -> Creator | None:
    module, _, env_id = name.rpartition(":")
    if not _GYMNASIUM_ID.fullmatch(env_id):
        return None
    import gymnasium

    from pufferlib.registry.creators import gymnasium_creator

    if module:
        import_module(where, module)
    elif env_id not in gymnasium.registry:
        for package in (package for package, ids in _REGISTERED_BY.items() if ids.fullmatch(name)):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(package)
    spec = gymnasium.registry.get(env_id)
    if module and spec is None:
        raise UnknownNameError.of(f"{where}: {module}", "Gymnasium id", env_id, gymnasium.registry)
    return None if spec is None or spec.entry_point is None else gymnasium_creator(spec)


def likely_names(name: str) -> list[str]:
    """Return corrections of an unknown name that refer to existing files or installed modules.

    The corrections are "my_env.py" for "my_env", "mypkg.envs:Forage" for "mypkg.envs" or "mypkg.envs.Forage", and
    "mypkg:mypkg/Forage-v0" for an id "mypkg/Forage-v0" that is not registered yet.
    """
    if "." in name and is_object_name(f"{name}:x") and has_module(name):
        return [f"{name}:{found}" for found in class_names(name)[:3]]
    module, _, attribute = name.rpartition(".")
    package = name.partition("/")[0]
    likely = {
        f"{name}.py": Path(f"{name}.py").is_file(),
        f"{module}:{attribute}": is_object_name(f"{module}:{attribute}") and has_module(module),
        f"{package}:{name}": package.isidentifier() and _GYMNASIUM_ID.fullmatch(name) and has_module(package),
    }
    return [other for other, is_there in likely.items() if is_there]


def is_there(name: str) -> bool:
    """Return True if ``name`` is an environment of a file that exists, of an installed module or of Gymnasium.

    Only Gymnasium's ids import something, and only the package that registers them.
    """
    place, attribute = split_name(name)
    if place.endswith(".c"):
        return Path(place).expanduser().is_file()
    if place.endswith(".py"):
        file = source_file(place)
        with contextlib.suppress(SyntaxError, ValueError):
            return file is not None and (not attribute or attribute in global_names(file))
        return False
    if attribute:
        return is_object_name(f"{place}:x") and has_module(place)
    return _resolve_gymnasium_id("pufferlib", name) is not None


def c_file(name: str) -> str | None:
    """Return the path of the C file that ``name`` is or is registered for, or None if it is no C environment."""
    known = name if name.endswith(".c") or name not in registrations() else registrations()[name].creator
    return known if isinstance(known, str) and known.endswith(".c") else None


def _resolve_c_file(where: str, name: str) -> Creator | None:
    from pufferlib import ocean

    return ocean.env_creator_of_file(name, where) if name.endswith(".c") else None


# Each takes the prefix of error messages and a name, and returns a creator, or None if the name has another form.
_RESOLVERS: tuple[Callable[[str, str], Creator | None], ...] = (
    _resolve_registered,
    _resolve_object,
    _resolve_gymnasium_id,
    _resolve_c_file,
)
