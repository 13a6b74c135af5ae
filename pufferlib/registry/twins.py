"""Lookup of environments in C that have the results of a Python environment, for the same seeds and actions.

Those of Gymnasium are in ``toy_text``, ``pufferlib.robots`` and ``pufferlib.box2d``. A binding has a function
``twin(name, keywords)`` for its own.
"""

import functools
from collections.abc import Mapping
from typing import Any

from gymnasium.envs.registration import EnvSpec

from pufferlib.box2d.table import has_box2d
from pufferlib.box2d.twin import find_box2d
from pufferlib.errors import APIUsageError
from pufferlib.registry.creators import gymnasium_creator
from pufferlib.registry.in_c import Twin
from pufferlib.registry.inside import binding_module, bindings
from pufferlib.registry.outside import gymnasium_spec, registrations
from pufferlib.registry.toy_text import has_toy_text, toy_text_twin
from pufferlib.robots.find import find_robot
from pufferlib.robots.table import has_robot

__all__ = ["may_run_in_c", "twin_of"]


def may_run_in_c(env_name: str) -> bool:
    """Return True if some keyword arguments of an environment select one in C.

    Args:
        env_name: As in ``twin_of``.
    """
    binding, _, game = env_name.partition("/")
    if game and binding in bindings():
        return hasattr(binding_module(binding), "twin")
    spec = None if env_name in registrations() else gymnasium_spec(env_name)
    return spec is not None and (has_toy_text(spec) or has_robot(spec) or has_box2d(spec))


def twin_of(env_name: str, keywords: Mapping[str, Any]) -> Twin | None:
    """Return the environment in C that equals an environment, or None if there is none with these keyword arguments.

    Args:
        env_name: Full name of the environment, such as "minigrid/MiniGrid-Empty-5x5-v0", or a Gymnasium id.
        keywords: Keyword arguments of the environment. With ``native=False`` the result is None.

    Raises:
        APIUsageError: There is one, and ``native`` is not a bool.
    """
    if keywords.get("native") is False:
        return None
    binding, _, game = env_name.partition("/")
    own = {key: value for key, value in keywords.items() if key != "native"}
    found: Twin | None = None
    if game and binding in bindings():
        module = binding_module(binding)
        found = module.twin(game, own) if hasattr(module, "twin") else None
    elif env_name not in registrations() and (spec := gymnasium_spec(env_name)):
        found = _gymnasium_twin(spec, own)
    if found is None:
        return None
    if keywords.get("native", True) is not True:
        raise APIUsageError(f"{env_name}: native must be True or False, got {keywords['native']!r:.80}")
    return found


def _gymnasium_twin(spec: EnvSpec, keywords: Mapping[str, Any]) -> Twin | None:
    """Return the environment in C for an id of Gymnasium, or None."""
    if has_toy_text(spec):
        limit = keywords.get("max_episode_steps")
        own = {key: value for key, value in keywords.items() if key != "max_episode_steps"}
        return toy_text_twin(spec.id, own, spec.max_episode_steps if limit is None else limit)
    create = functools.partial(gymnasium_creator(spec), **keywords)
    if has_robot(spec):
        return find_robot(spec.id, keywords, create)
    return find_box2d(spec.id, keywords, create) if has_box2d(spec) else None
