"""MAgent2's games with the same spaces for all agents."""

import importlib
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from pufferlib.errors import UnknownKeywordError, UnknownNameError
from pufferlib.wrappers import PadAgents

from .._shared.options import check_counts, check_numbers, check_render_mode, check_switches

__all__ = ["make_env"]


def make_env(
    name: str,
    *,
    map_size: int | None = None,
    max_cycles: int | None = None,
    minimap_mode: bool = False,
    extra_features: bool = False,
    rewards: Mapping[str, float] | None = None,
    render_mode: str | None = None,
) -> ParallelEnv[str, Any, Any]:
    """Make the game ``name``. Options that are None use the game's own default.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: The game has no such reward, or no ``map_size``.
    """
    where = f"magent2/{name}"
    module = importlib.import_module(f"magent2.environments.{name.rpartition('_')[0]}")
    module = importlib.import_module(f"{module.__name__}.{name.rpartition('_')[0]}")
    check_render_mode(where, render_mode)
    check_switches(where, minimap_mode=minimap_mode, extra_features=extra_features)
    options: dict[str, Any] = {"minimap_mode": bool(minimap_mode), "extra_features": bool(extra_features)}
    for option, value, least in (("map_size", map_size, 12), ("max_cycles", max_cycles, 1)):
        if value is None:
            continue
        if option not in inspect.signature(module.parallel_env).parameters:
            known = ["max_cycles", *options, "rewards", "render_mode"]
            raise UnknownKeywordError.of(where, "keyword argument", option, known)
        check_counts(where, least, **{option: value})
        options[option] = int(value)
    return _Battle(module.parallel_env(render_mode=render_mode, **options, **_rewards(where, module, rewards or {})))


class _Battle(PadAgents):
    def render(self) -> Any:
        """Return the battlefield, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        with warnings.catch_warnings():
            # pygame looks for system fonts, and uses its own if there are none.
            warnings.filterwarnings("ignore", "'fc-list' is missing", UserWarning)
            return super().render()


def _rewards(where: str, module: Any, rewards: Mapping[str, float]) -> dict[str, float]:
    """Return ``rewards`` as a dict after checking their names and values."""
    known: Mapping[str, float] = getattr(module, "default_reward_args", None) or module.default_env_args
    for name, value in rewards.items():
        if name not in known:
            raise UnknownNameError.of(where, "reward", name, known)
        check_numbers(where, **{f"rewards[{name!r}]": value})
    return dict(rewards)
