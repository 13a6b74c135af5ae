"""Names to environments: Ocean by plain name, bindings as ``binding/name``; each loaded on first use."""

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pufferlib.errors import UnknownNameError
from pufferlib.machine.commands import as_typed
from pufferlib.registry.facts import Facts, all_facts

__all__ = ["binding_facts", "env_creator", "folder", "list_envs", "make", "names", "policies", "unknown_env"]


def list_envs() -> list[str]:
    """Return every name that ``make`` knows, sorted: Ocean's, then ``binding/name`` of each binding."""
    from pufferlib import ocean

    bound = [f"{binding}/{name}" for binding in _bindings() for name in _binding(binding).names()]
    return sorted([*ocean.names(), *ocean.python_names()]) + sorted(bound)


def env_creator(name: str) -> Callable[..., Any]:
    """Return the function that makes environment ``name``, for ``vector.make``; it can be pickled.

    It takes ``buf``, ``seed`` and the keywords of the environment, and returns a ``PufferEnv``, or
    a wrapper of ``pufferlib.emulation`` around an environment that is written in Python.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        BindingMissing: The package behind the binding is not installed.
    """
    from pufferlib import ocean

    if name.endswith(".c"):
        return ocean.env_creator_of_file(name)
    binding, _, game = name.partition("/")
    if game and binding in _bindings():
        try:
            creator: Callable[..., Any] = _binding(binding).env_creator(game)
        except UnknownNameError:
            raise unknown_env("pufferlib.env_creator", name) from None
        return creator
    if name.removeprefix("puffer_") in (*ocean.names(), *ocean.python_names()):
        return ocean.env_creator(name)
    raise unknown_env("pufferlib.env_creator", name)


def unknown_env(where: str, name: str) -> UnknownNameError:
    """Return the error for a name that no environment has.

    Suggests those that bear it elsewhere (``PongNoFrameskip-v4``), or the nearest, of its binding if it names one.
    """
    from pufferlib.ocean.files import unknown_file

    if name.endswith(".c"):
        return unknown_file(where, name)
    everything = list_envs()
    binding, _, game = name.partition("/")
    inside = [known for known in everything if known.startswith(f"{binding}/")]
    if inside and not game:
        example = f"{binding}/{binding_facts()[binding].example}"
        return UnknownNameError(
            f"{where}: unknown environment {name!r}; {binding} has {len(inside)} of them, for example {example}; "
            f"{as_typed(f'puffer list {binding}')} shows all"
        )
    known = inside or everything
    same = [other for other in known if _title(other) == _title(name)] if _title(name) else []
    return UnknownNameError.of(where, "environment", name, known, sorted(same, key=lambda other: "/" not in other)[:2])


def _title(name: str) -> str:
    """Reduce a name to its game: "ALE/SpaceInvaders-v5" and "atari/space_invaders" are "spaceinvaders"."""
    game = re.split("[/:]", name)[-1].removeprefix("puffer_").lower()
    return re.sub(r"(-ram)?(noframeskip|deterministic)?-v\d+$|[^a-z0-9]", "", re.sub(r"[_ ]", "", game))


def make(name: str, **kwargs: Any) -> Any:
    """Make environment ``name``: ``make("breakout", num_envs=1024)``, ``make("atari/pong")``, ``make("./corridor.c")``.

    Returns what ``env_creator(name)`` makes.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        APIUsageError: A keyword that the environment does not take, or a value out of its range.
        BindingMissing: The package behind the binding is not installed.
    """
    return env_creator(name)(**kwargs)


def policies(env_name: str) -> ModuleType | None:
    """Import the module of policies that the environment or its binding brings, if it does; loading it loads torch."""
    from pufferlib import ocean

    binding, _, game = env_name.partition("/")
    name = env_name.removeprefix("puffer_")
    if env_name.endswith(".c"):
        return None
    if game and binding in _bindings():
        module = f"pufferlib.bindings.{binding}.policy"
    elif name in (*ocean.names(), *ocean.python_names()):
        module = f"pufferlib.ocean.{name}.policy"
    else:
        return None
    return importlib.import_module(module) if find_spec(module) else None


def binding_facts() -> dict[str, Facts]:
    """Return the ``binding.toml`` of every binding (``pufferlib.registry.facts.Facts``), by name."""
    return all_facts()


def names(binding: str) -> tuple[str, ...]:
    """Return the environments of a binding, without its own name before them."""
    found: tuple[str, ...] = _binding(binding).names()
    return found


def folder(binding: str) -> Path:
    """Return the folder of a binding."""
    file = _binding(binding).__file__
    assert file is not None, binding
    return Path(file).parent


@functools.cache
def _bindings() -> tuple[str, ...]:
    package = importlib.import_module("pufferlib.bindings")
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(name for name in names if not name.startswith("_"))


def _binding(name: str) -> ModuleType:
    return importlib.import_module(f"pufferlib.bindings.{name}")
