"""The checkers that other libraries bring, over environments behind emulation."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env

__all__ = ["check_by_others"]

# Emulation is a wrapper, gives every possible agent a row, and leaves bounds as the environment has them.
EXPECTED = "is different from the unwrapped|but was dead last turn|Box .* space .* value is|For Box action spaces"
CYCLES = 20


def check_by_others(env: Any, creator: Callable[[], Any]) -> None:
    """Raise what Gymnasium's and SB3's checkers, or PettingZoo's two, find wrong with ``env``.

    SB3's, and PettingZoo's, which import a game, are left out where they cannot be imported: scripts/lock tries
    bindings in environments without torch and pygame.

    Args:
        env: Behind emulation, in no batch.
        creator: Makes another such environment.
    """
    check = _check_gymnasium if isinstance(env, gymnasium.Env) else _check_pettingzoo
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*({EXPECTED})", UserWarning)
        check(env, creator)


def _check_gymnasium(env: Any, creator: Callable[[], Any]) -> None:
    check_env(env, skip_render_check=True, skip_close_check=True)
    if env.observation_space.shape and find_spec("stable_baselines3"):  # it indexes what has no axes
        from stable_baselines3.common.env_checker import check_env as check_by_sb3

        check_by_sb3(env, warn=False)
    if env.spec is not None:
        again = gymnasium.make(env.spec)
        assert (str(again), again.observation_space) == (str(env), env.observation_space), "its spec must make it again"
        again.close()


def _check_pettingzoo(env: Any, creator: Callable[[], Any]) -> None:
    if not find_spec("pygame"):
        return
    warnings.simplefilter("ignore", DeprecationWarning)  # it imports that game the way that it calls old itself
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    parallel_api_test(env, CYCLES)
    parallel_seed_test(iter((env, creator())).__next__, CYCLES)
