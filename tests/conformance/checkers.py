"""Checkers of other libraries, for emulated environments."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env

__all__ = ["run_peer_checkers"]

# Emulation is a wrapper, has a row for every possible agent, and does not change bounds.
EXPECTED = "is different from the unwrapped|but was dead last turn|Box .* space .* value is|For Box action spaces"
CYCLES = 20


def run_peer_checkers(env: Any, creator: Callable[[], Any]) -> None:
    """Run the checkers of Gymnasium and SB3, or those of PettingZoo, on ``env``. They raise if they find a fault.

    Checkers that cannot be imported are skipped, because scripts/lock tests bindings without torch and pygame.
    (PettingZoo's checkers import a game that needs pygame.)

    Args:
        env: Emulated environment that belongs to no batch.
        creator: Function that makes another such environment.
    """
    check = _check_gymnasium if isinstance(env, gymnasium.Env) else _check_pettingzoo
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*({EXPECTED})", UserWarning)
        check(env, creator)


def _check_gymnasium(env: Any, creator: Callable[[], Any]) -> None:
    check_env(env, skip_render_check=True, skip_close_check=True)
    if env.observation_space.shape and find_spec(
        "stable_baselines3"
    ):  # SB3's checker fails on observations without axes
        from stable_baselines3.common.env_checker import check_env as check_by_sb3

        check_by_sb3(env, warn=False)
    if env.spec is not None:
        copy = gymnasium.make(env.spec)
        assert (str(copy), copy.observation_space) == (str(env), env.observation_space), (
            "the spec must recreate the environment"
        )
        copy.close()


def _check_pettingzoo(env: Any, creator: Callable[[], Any]) -> None:
    if not find_spec("pygame"):
        return
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo imports that game in a deprecated way
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    parallel_api_test(env, CYCLES)
    parallel_seed_test(iter((env, creator())).__next__, CYCLES)
