"""Contestants of engine.py for batches of Atari games: ours, ale-py's AtariVectorEnv and EnvPool.

All use the same preprocessing. Observations are stacks of the last 4 gray 84 x 84 images. Each is the maximum of the
last two of 4 frames, resized by area averaging. There are no sticky actions. Games start with at most one no-op and
without FIRE. Losing a life does not end an episode, and rewards are not clipped. One thread steps all games, because
figures are CPU time, which more threads would only increase.
"""

import functools
import importlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sides

__all__ = ["atari_games"]


def atari_games(library: str, game: str, num_envs: int, seconds: float) -> float:
    """Return the CPU time of a step of one of ``num_envs`` games in microseconds, summed over all threads."""
    env = _opened(library, game, num_envs)
    actions = np.random.default_rng(0).integers(0, int(env.single_action_space.n), (64, num_envs)).astype(np.int32)
    rows = itertools.cycle(actions)
    return sides.us_per_call(lambda: env.step(next(rows)), seconds, time.process_time) / num_envs


@functools.cache  # 64 games take seconds to load, and cost nothing while they are idle
def _opened(library: str, game: str, num_envs: int) -> Any:
    env = _LIBRARIES[library](game, num_envs)
    env.reset()
    return env


def _ours(game: str, num_envs: int) -> Any:
    import pufferlib
    import pufferlib.vector

    kwargs = {"repeat_action_probability": 0.0, "noop_max": 1}
    creator = pufferlib.env_creator(f"atari/{game}")
    return pufferlib.vector.make(creator, env_kwargs=kwargs, num_envs=num_envs, backend="Serial")


def _ale(game: str, num_envs: int) -> Any:
    from ale_py.vector_env import AtariVectorEnv

    options = {"noop_max": 1, "use_fire_reset": False, "reward_clipping": False, "repeat_action_probability": 0.0}
    return AtariVectorEnv(game, num_envs, num_threads=1, **options)


def _envpool(game: str, num_envs: int) -> Any:
    options = {"noop_max": 1, "use_fire_reset": False, "reward_clip": False, "repeat_action_probability": 0.0}
    name = f"{game.capitalize()}-v5"
    return importlib.import_module("envpool").make(
        name, env_type="gymnasium", num_envs=num_envs, num_threads=1, seed=0, **options
    )


_LIBRARIES: dict[str, Callable[[str, int], Any]] = {"ours": _ours, "ale": _ale, "envpool": _envpool}
