"""The checkers that other libraries bring, over environments behind emulation."""

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env as check_by_gymnasium
from stable_baselines3.common.env_checker import check_env as check_by_sb3

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it imports a game the way that it calls old itself
    from pettingzoo.test import parallel_api_test, parallel_seed_test

__all__ = ["check_by_others"]

# Emulation is a wrapper, gives every possible agent a row, and leaves bounds as the environment has them.
EXPECTED = "is different from the unwrapped|but was dead last turn|Box .* space .* value is|For Box action spaces"
CYCLES = 20


def check_by_others(env: Any, creator: Callable[[], Any]) -> None:
    """Raise what Gymnasium's and SB3's checkers, or PettingZoo's two, find wrong with ``env``.

    Args:
        env: Behind emulation, in no batch.
        creator: Makes another such environment.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*({EXPECTED})", UserWarning)
        if not isinstance(env, gymnasium.Env):
            parallel_api_test(env, CYCLES)
            parallel_seed_test(iter((env, creator())).__next__, CYCLES)
            return
        check_by_gymnasium(env, skip_render_check=True, skip_close_check=True)
        if env.observation_space.shape:  # SB3's indexes what has no axes
            check_by_sb3(env, warn=False)
    if env.spec is not None:
        gymnasium.make(env.spec).close()
