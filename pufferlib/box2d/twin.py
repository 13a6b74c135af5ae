"""Lookup of Box2D tasks that are stepped in C, with the results of Gymnasium's."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from pufferlib.box2d._box2d import RAYS
from pufferlib.box2d.batch import Box2DBatch
from pufferlib.box2d.engine import VERSION
from pufferlib.box2d.table import CHANNELS_FIRST, FRESH_WORLD, TASKS
from pufferlib.box2d.texts import MAX_STEPS
from pufferlib.ocean._ocean import source_hash
from pufferlib.registry.games import GymnasiumTwin, equal_or_none
from pufferlib.wrappers import ClipAction, EpisodeStats

__all__ = ["Box2DTwin", "box2d_twin"]

CHECKED_STEPS = 150  # in which a random player touches the ground
CHECKED_PICTURES = 60  # in which the camera has come close to the car
MAX_POWER = 1000.0  # of the wind. A hurricane would make Box2D throw exceptions
RAY_LENGTH = 160 / 30.0
LAYERS = (EpisodeStats, ClipAction, TimeLimit, OrderEnforcing)


@dataclass(frozen=True)
class Box2DTwin(GymnasiumTwin):
    """Box2D task that is stepped in C.

    Attributes:
        task: Name of the task in ``box2d.h``.
        options: Value of each field of ``Box2DOptions`` except ``texts``.
    """

    task: str
    options: Mapping[str, Any]

    def games(self, num_games: int, autoreset: str, num_threads: int, affinity: int = 0) -> Box2DBatch:
        """See ``GymnasiumTwin``."""
        options = {**self.options, "max_steps": self.max_steps}
        return Box2DBatch(self.name, self.task, options, num_games, autoreset, num_threads, affinity)

    def draw_action(self, rng: np.random.Generator) -> Any:
        """Return a random action."""
        space: Any = self.action_space
        return rng.uniform(-1, 1, space.shape) if isinstance(space, Box) else rng.integers(space.n)


def box2d_twin(name: str, keywords: Mapping[str, Any], create: Callable[[], Any]) -> Box2DTwin | None:
    """Return the task in C that equals an environment, or None if there is none.

    The first steps are compared with those of Gymnasium. If they differ, or if Box2D's library cannot be used, a
    warning says so.

    Args:
        name: Name of the environment.
        keywords: Its keyword arguments.
        create: Function that makes the emulated environment of Gymnasium with these keyword arguments.
    """
    try:
        env = create()
        found = _options_of(env.env)
    except Exception:  # the original environment reports what is wrong
        return None
    if found is None:
        return None
    task, options, max_steps = found
    twin = Box2DTwin(
        name,
        {key: repr(value) for key, value in keywords.items()},
        f"Gymnasium {gymnasium.__version__}",
        f"Box2D {VERSION}, numpy {np.__version__}, {source_hash}",
        env.single_observation_space,
        env.single_action_space,
        env.metadata["render_fps"],
        max_steps,
        task,
        options,
    )
    steps = CHECKED_PICTURES if task == "CarRacing" else CHECKED_STEPS
    return equal_or_none(twin, env.env.env, steps)  # below EpisodeStats


def _options_of(env: Any) -> tuple[str, dict[str, Any], int] | None:
    """Return the task of an environment, its options and its step limit, or None if C does not have it."""
    limit, wrappers = 0, set()
    while isinstance(env, gymnasium.Wrapper):
        wrappers.add(_name_of(env))
        if _name_of(env) not in (FRESH_WORLD, CHANNELS_FIRST) and not isinstance(env, LAYERS):
            return None
        limit = env._max_episode_steps if isinstance(env, TimeLimit) else limit
        env = env.env
    task = TASKS.get(_name_of(env))
    if task is None or env.render_mode is not None:
        return None
    if task == "CarRacing" and (env.verbose or not 0 < limit <= MAX_STEPS):
        return None
    numbers = {name: getattr(env, name, 0.0) for name in ("wind_power", "turbulence_power")}
    numbers["lap_percent"] = getattr(env, "lap_complete_percent", 0.0)
    numbers["gravity"] = getattr(env, "gravity", env.world.gravity.y)
    if not all(isinstance(value, int | float) and abs(value) <= MAX_POWER for value in numbers.values()):
        return None
    angles = [1.5 * ray / 10.0 for ray in range(RAYS)]
    return (
        task,
        {
            **numbers,
            "is_continuous": bool(getattr(env, "continuous", False)),
            "has_wind": bool(getattr(env, "enable_wind", False)),
            "is_hardcore": bool(getattr(env, "hardcore", False)),
            "keeps_world": task != "LunarLander" and FRESH_WORLD not in wrappers,
            "has_random_colors": bool(getattr(env, "domain_randomize", False)),
            "channels_first": CHANNELS_FIRST in wrappers,
            "ray_x": [math.sin(angle) * RAY_LENGTH for angle in angles],
            "ray_y": [math.cos(angle) * RAY_LENGTH for angle in angles],
        },
        limit,
    )


def _name_of(env: Any) -> str:
    return f"{type(env).__module__}:{type(env).__qualname__}"
