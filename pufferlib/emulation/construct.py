"""Construction and checks of the environment that an emulation wraps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from pettingzoo import AECEnv, ParallelEnv

from pufferlib.emulation.dtypes import SEVERAL_AGENTS
from pufferlib.emulation.legacy_api import converted
from pufferlib.errors import APIUsageError

__all__ = ["check_kind", "made_env", "space_of", "two_values", "wrapped_env"]


def made_env(
    where: str,
    env: object,
    env_creator: Callable[..., Any] | None,
    env_args: Sequence[Any],
    env_kwargs: Mapping[str, Any] | None,
) -> Any:
    """Return ``env``, or the result of ``env_creator(*env_args, **env_kwargs)``.

    Raises:
        APIUsageError: Both or none were given, or the creator is not callable.
    """
    if (env is None) == (env_creator is None):
        given = "none" if env is None else "both"
        raise APIUsageError(f"{where}: expected either env or env_creator, got {given}; pass exactly one of them")
    if env_creator is not None:
        if not callable(env_creator):
            raise APIUsageError(
                f"{where}: env_creator must be callable, got {env_creator!r}; "
                "pass the class or a function, and a finished environment as env"
            )
        return env_creator(*env_args, **(env_kwargs or {}))
    return env


def wrapped_env(
    where: str,
    kinds: tuple[type, ...],
    env: object,
    env_creator: Callable[..., Any] | None,
    env_args: Sequence[Any],
    env_kwargs: Mapping[str, Any] | None,
) -> Any:
    """Return the environment to wrap. See ``made_env`` for the arguments.

    Environments of the old gym or PettingZoo API are converted.

    Raises:
        APIUsageError: The environment cannot be created, or is not an instance of ``kinds``.
    """
    env = converted(made_env(where, env, env_creator, env_args, env_kwargs))
    check_kind(where, kinds, env)
    return env


def check_kind(where: str, kinds: tuple[type, ...], env: object) -> None:
    """Raise APIUsageError, with advice, if ``env`` is not an instance of ``kinds``."""
    if not isinstance(env, kinds):
        expected = " or ".join(f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds)
        raise APIUsageError(f"{where}: env must be a {expected}, got {env!r}; {_advice(env)}")


def space_of(where: str, env: Any, name: str) -> Any:
    """Return attribute ``name`` of ``env``, its observation or action space.

    Raises:
        APIUsageError: The environment does not define it.
    """
    try:
        return getattr(env, name)
    except AttributeError as error:
        raise APIUsageError(f"{where}: {env} has no {name} ({error}); set it in the class or in __init__") from error


def _advice(env: Any) -> str:
    """Return advice on an environment that this emulation does not support."""
    if isinstance(env, ParallelEnv | AECEnv):
        return "wrap it with PettingZooPufferEnv"
    if isinstance(env, gymnasium.Env):
        return "wrap it with GymnasiumPufferEnv"
    if hasattr(env, "num_envs"):
        return (
            "it is a vector environment; make a single one, of which vector.make(num_envs=...), or vec.num_envs in "
            "training, makes several, or write a PufferEnv around it"
        )
    several = isinstance(getattr(env, "observation_space", None), list | tuple | dict)
    return "pass an instance, or a class as env_creator" + (f"; {SEVERAL_AGENTS}" if several else "")


def two_values(env: object, outcome: Any) -> tuple[Any, Any]:
    """Return the observation and the info from the return value of ``reset``.

    Raises:
        APIUsageError: ``outcome`` is not a pair, as with environments of the old gym API, or the info is no dict.
    """
    # Only tuples are accepted, because an observation may itself be a list or array of two numbers.
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        got = f"{len(outcome)} values" if isinstance(outcome, tuple) else type(outcome).__name__
        raise APIUsageError(
            f"emulation: reset must return a tuple of observation and info, got {got} from {env}; "
            "convert one of an older API with pufferlib.GymToGymnasium or PettingZooTruncatedWrapper"
        )
    if not isinstance(outcome[1], Mapping | None):
        raise APIUsageError(
            f"emulation: reset must return a tuple of observation and info, where info is a dict, got "
            f"{type(outcome[1]).__name__} as info from {env}; return observation, {{}}"
        )
    return outcome
