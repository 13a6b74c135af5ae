"""Environments written in C, for example ``pufferlib.ocean.Breakout(num_envs=1024)``.

Every environment has a class in this module (``Breakout``, ``Pong``, ...), created on first use from the
declarations in its C file. Your own environment is named by the path of its C file, which is compiled when
you make it. To add an environment, see docs/add-an-environment.md.

Two environments, ``spaces`` and ``pymultiagent``, are written in Python because they test emulation.
Such an environment is a subpackage with a function ``make(buf=None, seed=0, **keywords)``.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from pufferlib.errors import UnknownKeywordError
from pufferlib.ocean.env import OceanEnv, type_of
from pufferlib.ocean.files import CFile, compile_file, is_c_file
from pufferlib.ocean.types import EnvType, env_types

__all__ = [
    "OceanEnv",
    "OceanName",
    "about",
    "env_creator",
    "env_creator_of_file",
    "names",
    "python_names",
    "source_made_by",
    "type_made_by",
]


# For type checkers, which know by it what pufferlib.make returns, and for the completion of names in editors.
OceanName: TypeAlias = Literal[
    "acrobot", "bandit", "blackjack", "breakout", "cartpole", "cliff_walking", "connect4", "enduro", "frozen_lake",
    "go", "memory", "minigrid", "moba", "mountain_car", "mountain_car_continuous", "multiagent", "nmmo3", "password",
    "pendulum", "pong", "rware", "snake", "squared", "stochastic", "tactical", "taxi", "trash_pickup", "tripletriad",
]  # fmt: skip


def names() -> tuple[str, ...]:
    """Return the names of all C environments, sorted."""
    return tuple(sorted(env_types()))


@functools.cache
def python_names() -> tuple[str, ...]:
    """Return the names of all environments written in Python, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def about(name: str) -> str:
    """Return a one-sentence description of environment ``name``."""
    if name in python_names():
        return (_module(name).__doc__ or "").partition("\n")[0]
    return type_of(name).about


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function that makes environment ``name``.

    The function returns an ``OceanEnv``, or an emulated environment if the environment is written in Python.

    Args:
        name: Name of the environment ("breakout" or "puffer_breakout"), or path of a C file ("corridor.c").

    Raises:
        UnknownNameError: The environment does not exist. The error suggests similar names.
    """
    if is_c_file(name):
        return env_creator_of_file(name)
    name = name.removeprefix("puffer_")
    if name in python_names():
        return functools.partial(_make_python, name)
    type_of(name)
    return functools.partial(OceanEnv, name)


def env_creator_of_file(path: str, where: str = "pufferlib.make") -> Callable[..., OceanEnv]:
    """Return a picklable function that makes the environment of the C file at ``path``.

    The file is compiled immediately, unless neither it nor a header that it includes has changed. Later edits of
    the file do not affect the returned function.

    Args:
        path: Path of the C file.
        where: Prefix of the error message if the file does not exist.

    Raises:
        UnknownNameError: The file does not exist. The error suggests similar names in the same folder.
        APIUsageError: The file does not compile (the error has the compiler's messages), defines no environment, or was
            compiled against headers of another version of this package.
        PufferError: There is no compiler, or the library cannot be stored or loaded.
    """
    file = compile_file(path, where)
    type_of(file)
    return functools.partial(OceanEnv, file)


def type_made_by(creator: Callable[..., Any]) -> EnvType | None:
    """Return the type of the C environment that ``creator`` makes, or None if it makes something else.

    Args:
        creator: Function returned by ``env_creator``.
    """
    if isinstance(creator, functools.partial) and creator.func is OceanEnv and creator.args:
        return type_of(creator.args[0])
    return None


def source_made_by(creator: Callable[..., Any]) -> Path | None:
    """Return the C file of the environment that ``creator`` makes, or None if it makes something else.

    Args:
        creator: Function returned by ``env_creator``.
    """
    if type_made_by(creator) is None:
        return None
    origin = creator.args[0]  # type: ignore[attr-defined]
    return Path(origin.source) if isinstance(origin, CFile) else Path(__file__).parent / origin / f"{origin}.c"


def __getattr__(class_name: str) -> Any:
    for env_type in env_types().values():
        if env_type.class_name == class_name:
            globals()[class_name] = _make_class(env_type)
            return globals()[class_name]
    raise AttributeError(f"module 'pufferlib.ocean' has no attribute {class_name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(env_type.class_name for env_type in env_types().values())})


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def _make_python(name: str, **kwargs: Any) -> Any:
    make = _module(name).make
    known = inspect.signature(make).parameters
    for keyword in kwargs.keys() - known.keys():
        raise UnknownKeywordError.of(f"pufferlib.ocean.{name}", "keyword argument", keyword, known)
    return make(**kwargs)


def _make_class(env_type: EnvType) -> type[OceanEnv]:
    def init(self: OceanEnv, *args: Any, **kwargs: Any) -> None:
        OceanEnv.__init__(self, env_type.name, *args, **kwargs)

    members = {
        "__init__": init,
        "__doc__": env_type.help,
        "__module__": __name__,
        "__signature__": _signature(env_type),
    }
    return type(env_type.class_name, (OceanEnv,), members)


def _signature(env_type: EnvType) -> inspect.Signature:
    """Return the signature of ``OceanEnv`` without ``name`` and with the environment's own keywords."""
    _, *common, _ = inspect.signature(OceanEnv).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(p.name, keyword, default=p.default, annotation=p.kind) for p in env_type.parameters]
    return inspect.Signature([*common, *own])
