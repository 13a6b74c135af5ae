"""Environments of this repository: Ocean by plain name, and bindings as ``binding/name``."""

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from pufferlib.registry.facts import Facts, all_facts

__all__ = [
    "agent_file",
    "binding_facts",
    "binding_module",
    "bindings",
    "folder",
    "inside_names",
    "is_inside",
    "names",
    "policies",
    "same_title",
]


def inside_names() -> list[str]:
    """Return the sorted names of Ocean's environments, then those of all bindings as ``binding/name``."""
    from pufferlib import ocean

    bound = [f"{binding}/{name}" for binding in bindings() for name in binding_module(binding).names()]
    return sorted([*ocean.names(), *ocean.python_names()]) + sorted(bound)


def is_inside(name: str) -> bool:
    """Return True if ``name`` has the form of an Ocean or binding environment."""
    from pufferlib import ocean

    binding, _, game = name.partition("/")
    is_bound = bool(game) and binding in bindings()
    return is_bound or name.removeprefix("puffer_") in (*ocean.names(), *ocean.python_names())


def same_title(name: str, known: Iterable[str]) -> list[str]:
    """Return those of the names ``known`` that have the same title as ``name``, bindings first."""
    title = _title(name)
    same = [other for other in known if _title(other) == title] if title else []
    return sorted(same, key=lambda other: "/" not in other)


@functools.cache  # an unknown name is compared with the thousands that exist
def _title(name: str) -> str:
    """Reduce a name to the game: "ALE/SpaceInvaders-v5" and "atari/space_invaders" become "spaceinvaders"."""
    game = re.split("[/:]", name)[-1].removeprefix("puffer_").lower()
    return re.sub(r"(-ram)?(noframeskip|deterministic)?-v\d+$|[^a-z0-9]", "", re.sub(r"[_ ]", "", game))


def policies(env_name: str) -> ModuleType | None:
    """Import the policy module of an environment or its binding, or return None if it has none.

    This imports torch.
    """
    from pufferlib import ocean

    binding, _, game = env_name.partition("/")
    name = env_name.removeprefix("puffer_")
    if game and binding in bindings():
        module = f"pufferlib.bindings.{binding}.policy"
    elif name in (*ocean.names(), *ocean.python_names()):
        module = f"pufferlib.ocean.{name}.policy"
    else:
        return None
    return importlib.import_module(module) if find_spec(module) else None


def agent_file(env_name: str) -> Path:
    """Return the path of the trained agent that ships with an environment. The file may not exist.

    Args:
        env_name: Full name of the environment, such as "breakout" or "classic/CartPole-v1".
    """
    from pufferlib import ocean

    binding, _, task = env_name.partition("/")
    if task and binding in bindings():
        return folder(binding) / "agents" / f"{task.replace('/', '-')}.safetensors"
    return Path(*ocean.__path__) / env_name / "agent.safetensors"


@functools.cache
def binding_facts() -> Mapping[str, Facts]:
    """Return the parsed ``binding.toml`` of every binding, by name. The files are read once in a process."""
    return all_facts()


def names(binding: str) -> tuple[str, ...]:
    """Return the environment names of a binding, without the ``binding/`` prefix."""
    found: tuple[str, ...] = binding_module(binding).names()
    return found


def folder(binding: str) -> Path:
    """Return the folder of a binding."""
    file = binding_module(binding).__file__
    assert file is not None, binding
    return Path(file).parent


@functools.cache
def bindings() -> tuple[str, ...]:
    """Return the names of all bindings."""
    package = importlib.import_module("pufferlib.bindings")
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(name for name in names if not name.startswith("_"))


def binding_module(name: str) -> ModuleType:
    """Import and return the package of a binding."""
    return importlib.import_module(f"pufferlib.bindings.{name}")
