"""Box2D games as Gymnasium makes them, with bounds that hold."""

import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from .._shared.gymnasium import ChannelsFirst, control_task, quiet_pygame
from .._shared.options import check_switches

# The classes that SWIG made for Box2D have no __module__, of which Python warns as it loads them.
# (As an error, that warning would crash the interpreter.)
with warnings.catch_warnings(), quiet_pygame():
    warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
    import Box2D
    import pygame  # noqa: F401

__all__ = ["FreshWorld", "make_env"]

Env = gymnasium.Env[Any, Any]


def make_env(name: str, *, channels_first: bool = False, **options: Any) -> Env:
    """The game ``name``; ``options`` are those of ``control_task`` and of its class in Gymnasium.

    Raises:
        UnknownNameError: It has no such option.
        APIUsageError: A value is of the wrong type or out of its range.
    """
    where = f"box2d/{name}"
    check_switches(where, channels_first=channels_first)
    env: Env = FreshWorld(control_task(where, name, **options))
    return ChannelsFirst(env) if channels_first and len(env.observation_space.shape or ()) == 3 else env


MEANINGS = {
    "LunarLander": ["noop", "left engine", "main engine", "right engine"],
    "CarRacing": ["noop", "steer right", "steer left", "gas", "brake"],
}


class FreshWorld(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Gives each episode a Box2D world of its own, and numbers bounds that hold: none.

    A world keeps the order of its contacts and the numbers that its solver begins with, so that bodies
    which are put into a used one move a little differently, and a seed would not decide everything.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        space = env.observation_space
        if space.dtype == np.float32:
            self.observation_space = Box(-np.inf, np.inf, space.shape, np.float32)

    def get_action_meanings(self) -> list[str]:
        """The name of each discrete action."""
        return MEANINGS.get(type(self.unwrapped).__name__, [])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        game: Any = self.env.unwrapped
        game._destroy()
        game.world = Box2D.b2World(gravity=game.world.gravity)
        return self.env.reset(seed=seed, options=options)
