"""Batches of Atari games as contestants of engine.py: ours, ale-py's AtariVectorEnv and EnvPool.

All show the last 4 of 84 x 84 grey pictures, shrunk by area, of the brighter of the last two of 4 frames; actions never
stick, games begin with at most one frame without an action and no FIRE, lives end nothing, and rewards are points. One
thread steps all games: more cost CPU, and make no library faster by it.
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
    """Microseconds of CPU, of all threads together, that a step of one of ``num_envs`` games takes."""
    env = _begun(library, game, num_envs)
    actions = np.random.default_rng(0).integers(0, int(env.single_action_space.n), (64, num_envs)).astype(np.int32)
    rows = itertools.cycle(actions)
    return sides.us_per_call(lambda: env.step(next(rows)), seconds, time.process_time) / num_envs


@functools.cache  # 64 games take seconds to load, and nothing while they wait
def _begun(library: str, game: str, num_envs: int) -> Any:
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
