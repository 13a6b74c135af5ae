"""Environments written in C: ``pufferlib.ocean.Breakout(num_envs=1024)``.

Every environment has a class here (``Breakout``, ``Pong``, ...), made on first use from what its C
file declares. To add one, see docs/add-an-environment.md.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pufferlib.ocean.env import OceanEnv, type_of
from pufferlib.ocean.types import EnvType, env_types

__all__ = ["OceanEnv", "env_creator", "names"]


def names() -> tuple[str, ...]:
    """The names of all C environments, sorted."""
    return tuple(sorted(env_types()))


def env_creator(name: str) -> Callable[..., OceanEnv]:
    """The function that makes environment ``name`` ("breakout" or "puffer_breakout"); picklable.

    Raises:
        UnknownNameError: There is no such environment; the nearest ones are suggested.
    """
    name = name.removeprefix("puffer_")
    type_of(name)
    return functools.partial(OceanEnv, name)


def __getattr__(class_name: str) -> Any:
    for env_type in env_types().values():
        if env_type.class_name == class_name:
            globals()[class_name] = _make_class(env_type)
            return globals()[class_name]
    raise AttributeError(f"module 'pufferlib.ocean' has no attribute {class_name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(env_type.class_name for env_type in env_types().values())})


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
    """OceanEnv's, without the name and with the keywords of the environment spelled out."""
    _, *common, _ = inspect.signature(OceanEnv).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(p.name, keyword, default=p.default, annotation=p.kind) for p in env_type.parameters]
    return inspect.Signature([*common, *own])
