"""Conversion of dm_env environments to Gymnasium. They are recognized by their attributes, without importing dm_env.

Source: Muldal et al., "dm_env: A Python interface for reinforcement learning environments" (2019).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from pufferlib.buffers import Array
from pufferlib.emulation.construct import made_env
from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["DMEnvPufferEnv", "DMEnvToGymnasium", "is_dm_env"]

Info = dict[str, Any]
Reseed = Callable[[Any, int], object]
METHODS = ("reset", "step", "observation_spec", "action_spec")


class DMEnvToGymnasium(gymnasium.Env[Any, Any]):
    """Gymnasium environment around a dm_env environment, with the spaces that its specs describe.

    An episode whose last step has discount 0 is terminated. Any other episode end is a truncation. A discount that this
    does not represent (between 0 and 1, or 0 in the middle of an episode) is in the info, under ``discount``.

    Attributes:
        dm_env: Wrapped environment.

    Args:
        env: Environment to wrap.
        reseed: Function that seeds the environment, ``reseed(env, seed)``. None uses its method ``seed``, or the
            generator of its task as in dm_control.

    Raises:
        APIUsageError: A spec is not an array of numbers.
    """

    def __init__(self, env: Any, reseed: Reseed | None = None) -> None:
        self.dm_env = env
        self._reseed = reseed or _reseed_of(env)
        self.observation_space = space_of("observation", env.observation_spec())
        self.action_space = space_of("action", env.action_spec())

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start an episode. If the environment cannot be seeded, the seed is ignored with a warning."""
        super().reset(seed=seed)
        if seed is not None and self._reseed is not None:
            self._reseed(self.dm_env, seed)
        elif seed is not None:
            name = type(self.dm_env).__name__  # not the address, so that many environments give one warning
            warnings.warn(
                f"{name} cannot be seeded: it has no seed(); add a method seed(seed), or pass reseed=function to "
                f"{type(self).__name__}",
                stacklevel=2,
            )
        return self.dm_env.reset().observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Take one step."""
        timestep = self.dm_env.step(action)
        is_last, discount = timestep.last(), timestep.discount
        terminated = bool(is_last and discount == 0)
        is_implied = terminated or discount is None or discount == 1
        info = {} if is_implied else {"discount": discount}
        return timestep.observation, _number(timestep.reward), terminated, is_last and not terminated, info

    def close(self) -> None:
        """Close the wrapped environment."""
        self.dm_env.close()


class DMEnvPufferEnv(GymnasiumPufferEnv):
    """``GymnasiumPufferEnv`` around a dm_env environment, for example of dm_control or bsuite.

    It wraps a ``DMEnvToGymnasium``, so ``env.unwrapped.dm_env`` is the original environment.

    Args:
        env: Environment to wrap. Pass either this or ``env_creator``.
        env_creator: Function that creates the environment.
        env_args: Positional arguments of ``env_creator``.
        env_kwargs: Keyword arguments of ``env_creator``.
        buf: Arrays to write into, with one row. None allocates new ones.
        seed: Seed of the first ``reset``, if that is called without a seed.
        reseed: Function that seeds the environment, as for ``DMEnvToGymnasium``.

    Raises:
        APIUsageError: Not exactly one of ``env`` and ``env_creator`` is given, the environment is not a dm_env
            environment, or a spec cannot be emulated.
    """

    def __init__(
        self,
        env: Any = None,
        env_creator: Callable[..., Any] | None = None,
        env_args: Sequence[Any] = (),
        env_kwargs: Mapping[str, Any] | None = None,
        buf: Mapping[str, Array] | None = None,
        seed: int | None = None,
        reseed: Reseed | None = None,
    ) -> None:
        where = type(self).__name__
        inner = made_env(where, env, env_creator, env_args, env_kwargs)
        if not is_dm_env(inner):
            raise APIUsageError(
                f"{where}: env must be a dm_env.Environment, got {inner!r}; pass an instance, or a class as env_creator"
            )
        super().__init__(DMEnvToGymnasium(inner, reseed), buf=buf, seed=seed)


def is_dm_env(env: Any) -> bool:
    """Return whether an object has the methods of a ``dm_env.Environment``."""
    return not isinstance(env, type) and all(callable(getattr(env, name, None)) for name in METHODS)


def _reseed_of(env: Any) -> Reseed | None:
    """Return the function that seeds ``env``, or None if it cannot be seeded."""
    if callable(getattr(env, "seed", None)):
        return _seed_itself
    return _seed_task if hasattr(getattr(getattr(env, "task", None), "random", None), "seed") else None


def _seed_itself(env: Any, seed: int) -> None:
    env.seed(seed)


def _seed_task(env: Any, seed: int) -> None:
    env.task.random.seed(seed % 2**32)  # upper limit of numpy's RandomState


def space_of(name: str, spec: Any) -> Space:
    """Return the Gymnasium space for a spec of dm_env.

    Args:
        name: Name of the spec, for messages.
        spec: Spec of dm_env, or a dict, list or tuple of specs.

    Raises:
        APIUsageError: The spec describes strings, or is not a spec.
    """
    if isinstance(spec, Mapping):
        return Dict({key: space_of(f"{name}[{key!r}]", part) for key, part in spec.items()})
    if isinstance(spec, list | tuple):
        return Tuple([space_of(f"{name}[{place}]", part) for place, part in enumerate(spec)])
    if hasattr(spec, "num_values"):
        return Discrete(int(spec.num_values))
    dtype = np.dtype(getattr(spec, "dtype", object))
    if not hasattr(spec, "shape") or dtype.kind not in "biuf":
        raise APIUsageError(
            f"emulation: {name} spec must describe arrays of numbers, got {spec!r}; "
            "leave it out in a wrapper of the environment"
        )
    low, high = _limits(dtype)
    low, high = getattr(spec, "minimum", low), getattr(spec, "maximum", high)
    low, high = (np.broadcast_to(bound, spec.shape).astype(dtype) for bound in (low, high))
    return Box(low, high, dtype=dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind == "b":
        return False, True
    return (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _number(reward: Any) -> float:
    """Convert ``reward`` to a float. None, as in the first step of an episode, becomes 0."""
    if reward is None:
        return 0.0
    if np.size(reward) != 1:
        raise APIUsageError(
            f"emulation: the reward of a dm_env environment must be one number, got {reward!r}; "
            "add its parts together in a wrapper of the environment"
        )
    return float(np.asarray(reward).item())
