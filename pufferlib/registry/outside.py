"""Names for environments that are not in this repository; the one place that knows their forms.

=============================== ==========================================================================
Name                            Environment
=============================== ==========================================================================
``myname``                      registered with ``pufferlib.register``, also by an installed package
``path/to/my_env.py:Forage``    a class or function of a file; without ``:Forage`` its only environment
``mypkg.envs:make_forage``      a class or function of a module that is installed, or in this folder
``CartPole-v1``, ``ALE/Pong-v5`` an id of Gymnasium's
``mypkg:Forage-v0``             an id that a module registers with Gymnasium when it is imported
``path/to/corridor.c``          a file in C, which is compiled when it has changed
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
from typing import Any

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.registry.objects import full_name, has_module, import_module, is_object_name, load_object

__all__ = [
    "GROUP",
    "REGISTERED",
    "Registration",
    "c_file",
    "likely_names",
    "load_packages",
    "name_of",
    "outside_creator",
    "register",
    "registrations",
]

#: Entry points of packages: each is a module that registers its environments when imported, or a function that does.
GROUP = "pufferlib.envs"

Settings = Mapping[str, Mapping[str, Any]] | Path | str
Creator = Callable[..., Any]

_OWN_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")
_GYMNASIUM_ID = re.compile(r"([\w.-]+/)?[\w.-]+-v\d+")
# Ids of Gymnasium's that are registered when a module is imported, not before.
_REGISTERED_BY = {"ale_py": re.compile(r"ALE/.+|\w+(-ram)?(NoFrameskip|Deterministic)?-v[045]")}


@dataclass(frozen=True)
class Registration:
    """One call of ``register``.

    Attributes:
        creator: A class or function, or the name of one.
        settings: Of training, as the sections of a ``train.toml`` or as the path of one; None: the defaults.
        about: One sentence for ``puffer list``.
    """

    creator: Creator | str
    settings: Settings | None
    about: str


#: Registrations of this process so far, by name.
REGISTERED: dict[str, Registration] = {}


def register(name: str, creator: Creator | str, settings: Settings | None = None, about: str = "") -> None:
    """Give an environment of your own a name for ``pufferlib.make``, ``puffer train`` and all other verbs.

    Registering a name again replaces what it meant. A package whose entry point of the group ``pufferlib.envs`` is a
    module, or a function, that calls this is found wherever it is installed.

    Args:
        name: Letters, digits, ``_``, ``.`` and ``-``, in parts between slashes: "forage", "mypkg/forage".
        creator: A class or function that makes an environment of Gymnasium or PettingZoo, or a ``PufferEnv``; or its
            name, "mypkg.envs:Forage", so that it is imported only when it is made.
        settings: Of training, like a ``train.toml``: ``{"train": {"gamma": 0.9}}``, or the path of such a file.
        about: One sentence for ``puffer list``.

    Raises:
        APIUsageError: The name cannot be used, or ``creator`` is neither callable nor a name.
    """
    where = "pufferlib.register"
    if not isinstance(name, str) or not _OWN_NAME.fullmatch(name) or name.endswith((".py", ".c")):
        raise APIUsageError(f"{where}: name must be letters, digits, _, . and -, as in 'mypkg/forage', got {name!r}")
    from pufferlib import registry

    if registry.is_inside(name):
        raise APIUsageError(f"{where}: {name!r} is an environment of this repository; choose another name")
    if not callable(creator) and not isinstance(creator, str):
        raise APIUsageError(
            f"{where}: creator must be a class or function, or its name as in 'mypkg.envs:Forage', got {creator!r}"
        )
    if settings is not None and not isinstance(settings, Mapping | Path | str):
        raise APIUsageError(f"{where}: settings must be a mapping or the path of a TOML file, got {settings!r}")
    REGISTERED[name] = Registration(full_name(creator) if isinstance(creator, str) else creator, settings, about)


def name_of(env: Creator, where: str) -> str:
    """Return the name of a class or function in its module; register one of a script or notebook by its own.

    A function made in another function, and a lambda, has a number too where several have its name: they are others.

    Raises:
        APIUsageError: It is neither; the message begins with ``where``.
    """
    module, own = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "")
    if not callable(env) or not own:
        raise APIUsageError(
            f"{where}: env must be a name, a class or a function, got {env!r}; "
            "anything else that makes one gets a name by pufferlib.register(name, env)"
        )
    if module != "__main__" and own.isidentifier() and inspect.getmodule(env) is not None:
        return f"{module}:{own}"
    name = own.rpartition(".")[2].strip("<>")
    if "<" in own:
        name = next(each for each in _numbered(name) if _may_be(each, env))
    register(name, env)
    return name


def _numbered(name: str) -> Iterator[str]:
    """``name``, then "name-2" and so on."""
    return itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))


def _may_be(name: str, env: Creator) -> bool:
    return name not in REGISTERED or REGISTERED[name].creator is env


def registrations() -> Mapping[str, Registration]:
    """Return every registration by name, also those of installed packages."""
    load_packages()
    return REGISTERED


@functools.cache
def load_packages() -> None:
    """Let the packages register their environments; one that cannot is told in a warning, and no other suffers."""
    from importlib.metadata import entry_points  # takes 15 ms, which names of this repository need not pay

    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
            if callable(loaded):
                loaded()
        except Exception as error:
            warnings.warn(
                f"pufferlib: the entry point {entry.name} = {entry.value!r} of group {GROUP} registers nothing: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def outside_creator(where: str, name: str) -> Creator | None:
    """Return the creator of an environment that is not in this repository; None if ``name`` is none of one.

    Args:
        where: Begins the message of an error.
        name: See the table above.

    Raises:
        UnknownNameError: A module, or the attribute of a module or file, does not exist.
        APIUsageError: There is no such file, or it cannot be imported.
    """
    found = (resolve(where, name) for resolve in _RESOLVERS)
    return next((creator for creator in found if creator is not None), None)


def _of_registration(where: str, name: str) -> Creator | None:
    if name not in REGISTERED and name not in registrations():
        return None
    from pufferlib.registry.creators import creator_of

    creator = _latest(name, REGISTERED[name].creator)
    if isinstance(creator, str):
        found = outside_creator(where, creator)
        if found is None:
            raise APIUsageError(
                f"{where}: {name} is registered as {creator!r}, which is no environment; expected mypkg.envs:Forage, "
                "path/to/file.py:Forage, or an id of Gymnasium's"
            )
        return found
    return creator_of(name, creator)


def _latest(name: str, creator: Creator | str) -> Creator | str:
    """``creator``, or what has taken its name in the script or notebook since, as when a cell ran again."""
    if getattr(creator, "__module__", "") != "__main__" or getattr(creator, "__qualname__", "") != name:
        return creator
    latest = getattr(sys.modules["__main__"], name, creator)
    return latest if callable(latest) else creator


def _of_object(where: str, name: str) -> Creator | None:
    if not is_object_name(name):
        return None
    place, _, attribute = name.partition(":")
    if not place.endswith(".py") and not has_module(place):
        return None
    from pufferlib import registry

    if place in registry.binding_facts() and attribute in registry.names(place):
        return None  # "procgen:bigfish" is not the package behind the binding, but a slip
    from gymnasium import Env
    from pettingzoo import AECEnv, ParallelEnv

    from pufferlib.env import PufferEnv
    from pufferlib.registry.creators import creator_of

    name = full_name(name)
    return creator_of(name, load_object(where, name, (Env, ParallelEnv, AECEnv, PufferEnv)))


def _of_gymnasium(where: str, name: str) -> Creator | None:
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
        raise UnknownNameError.of(f"{where}: {module}", "id of Gymnasium's", env_id, gymnasium.registry)
    return None if spec is None or spec.entry_point is None else gymnasium_creator(spec)


def likely_names(name: str) -> list[str]:
    """Names of what is in this folder, or installed, that were probably meant by one that leads nowhere.

    "my_env" is "my_env.py", "mypkg.envs.Forage" is "mypkg.envs:Forage", and "mypkg/Forage-v0", an id that nothing has
    registered yet, is "mypkg:mypkg/Forage-v0".
    """
    module, _, attribute = name.rpartition(".")
    package = name.partition("/")[0]
    likely = {
        f"{name}.py": Path(f"{name}.py").is_file(),
        f"{module}:{attribute}": is_object_name(f"{module}:{attribute}") and has_module(module),
        f"{package}:{name}": package.isidentifier() and _GYMNASIUM_ID.fullmatch(name) and has_module(package),
    }
    return [other for other, is_there in likely.items() if is_there]


def c_file(name: str) -> str | None:
    """Return the C file that ``name`` stands for, as its path or by a registration; None if it stands for no such."""
    known = name if name.endswith(".c") or name not in registrations() else registrations()[name].creator
    return known if isinstance(known, str) and known.endswith(".c") else None


def _of_c_file(where: str, name: str) -> Creator | None:
    from pufferlib import ocean

    return ocean.env_creator_of_file(name, where) if name.endswith(".c") else None


# Each takes the beginning of an error's message and a name, and returns its creator, or None if that has another form.
_RESOLVERS: tuple[Callable[[str, str], Creator | None], ...] = (_of_registration, _of_object, _of_gymnasium, _of_c_file)
