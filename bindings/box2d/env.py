"""Gymnasium's Box2D environments with correct bounds."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from pufferlib.box2d.engine import box2d
from pufferlib.box2d.table import MEANINGS

from .._shared.gymnasium import ChannelsFirst, control_task, quiet_pygame
from .._shared.options import check_switches

Box2D = box2d()
with quiet_pygame():
    import pygame  # noqa: F401

__all__ = ["FreshWorld", "make_env"]

Env = gymnasium.Env[Any, Any]


def make_env(name: str, *, channels_first: bool = False, native: bool = True, **options: Any) -> Env:
    """Make the environment ``name``.

    Args:
        name: Id of the environment.
        channels_first: Whether images have their channels first.
        native: Whether batches may run in C. It changes nothing here.
        **options: Arguments of ``control_task`` and of the environment's Gymnasium class.

    Raises:
        UnknownKeywordError: The environment has no such option.
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"box2d/{name}"
    check_switches(where, channels_first=channels_first, native=native)
    env: Env = FreshWorld(control_task(where, name, **options))
    return ChannelsFirst(env) if channels_first and len(env.observation_space.shape or ()) == 3 else env


class FreshWorld(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Gives each episode a new Box2D world, and removes the bounds of float observations.

    A used world keeps the order of its contacts and its solver's starting values. Bodies would then move slightly
    differently, and the same seed would not always give the same episode.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        space = env.observation_space
        if space.dtype == np.float32:
            self.observation_space = Box(-np.inf, np.inf, space.shape, np.float32)

    def get_action_meanings(self) -> list[str]:
        """Return the name of each discrete action."""
        return [*MEANINGS.get(type(self.unwrapped).__name__, ())]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        game: Any = self.env.unwrapped
        game._destroy()
        game.world = Box2D.b2World(gravity=game.world.gravity)
        return self.env.reset(seed=seed, options=options)
