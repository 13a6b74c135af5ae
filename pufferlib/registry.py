"""Names to environments: Ocean by plain name, bindings as ``binding/name``; each loaded on first use."""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pufferlib.errors import UnknownNameError

__all__ = ["env_creator", "list_envs", "make"]


def list_envs() -> list[str]:
    """Every name that ``make`` knows, sorted: Ocean's, then ``binding/name`` of each binding."""
    from pufferlib import ocean

    bound = [f"{binding}/{name}" for binding in _bindings() for name in _binding(binding).names()]
    return sorted([*ocean.names(), *ocean.python_names()]) + sorted(bound)


def env_creator(name: str) -> Callable[..., Any]:
    """The function that makes environment ``name``, for ``vector.make``; it can be pickled.

    It takes ``buf``, ``seed`` and the keywords of the environment, and returns a ``PufferEnv``, or
    a wrapper of ``pufferlib.emulation`` around an environment that is written in Python.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        BindingMissing: The package behind the binding is not installed.
    """
    from pufferlib import ocean

    binding, _, game = name.partition("/")
    if game and binding in _bindings():
        module = _binding(binding)
        if game not in module.names():
            raise UnknownNameError.of("pufferlib.env_creator", "environment", name, list_envs())
        creator: Callable[..., Any] = module.env_creator(game)
        return creator
    if name.removeprefix("puffer_") in (*ocean.names(), *ocean.python_names()):
        return ocean.env_creator(name)
    raise UnknownNameError.of("pufferlib.env_creator", "environment", name, list_envs())


def make(name: str, **kwargs: Any) -> Any:
    """Make environment ``name``: ``make("breakout", num_envs=1024)``, ``make("atari/pong")``.

    Returns what ``env_creator(name)`` makes.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        APIUsageError: A keyword that the environment does not take, or a value out of its range.
        BindingMissing: The package behind the binding is not installed.
    """
    return env_creator(name)(**kwargs)


@functools.cache
def _bindings() -> tuple[str, ...]:
    package = importlib.import_module("pufferlib.bindings")
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


def _binding(name: str) -> ModuleType:
    return importlib.import_module(f"pufferlib.bindings.{name}")
