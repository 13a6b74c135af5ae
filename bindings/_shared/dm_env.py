"""Conversion of dm_env environments to float32 observations. Does not import dm_env."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from pufferlib.emulation import DMEnvToGymnasium

__all__ = ["FromDmEnv", "row_of"]

Observation = npt.NDArray[np.float32]
Info = dict[str, Any]


class FromDmEnv(DMEnvToGymnasium):
    """A dm_env environment as a Gymnasium environment with one float32 array as observation.

    Continuous actions become one float32 array too.

    Args:
        env: Environment whose action is one array or one integer.
        reseed: Function ``reseed(env, seed)`` that seeds the environment. None if the task does not need it.
    """

    def __init__(self, env: Any, reseed: Callable[[Any, int], object] | None = None) -> None:
        super().__init__(env, reseed)
        self.observation_space: Box = _observation_space(env.observation_spec())
        self.action_space = _action_space(env.action_spec())
        self._read = row_of if isinstance(env.observation_spec(), dict) else _as_float32

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start an episode."""
        observation, info = super().reset(seed=seed, options=options)
        return self._read(observation), info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Run one step."""
        observation, reward, terminated, truncated, info = super().step(action)
        return self._read(observation), reward, terminated, truncated, info


def row_of(parts: Any) -> Observation:
    """Concatenate the arrays of a dict."""
    return np.concatenate([np.ravel(part) for part in parts.values()], dtype=np.float32, casting="same_kind")


def _as_float32(observation: Any) -> Observation:
    return np.asarray(observation, np.float32)


def _observation_space(spec: Any) -> Box:
    if isinstance(spec, dict):
        return Box(-np.inf, np.inf, (_count(spec.values()),), np.float32)
    low, high = getattr(spec, "minimum", -np.inf), getattr(spec, "maximum", np.inf)
    return Box(float(np.min(low)), float(np.max(high)), spec.shape, np.float32)


def _count(specs: Iterable[Any]) -> int:
    return int(sum(np.prod(spec.shape, dtype=np.int64) for spec in specs))


def _action_space(spec: Any) -> Box | Discrete:
    if hasattr(spec, "num_values"):
        return Discrete(spec.num_values)
    return Box(
        np.broadcast_to(spec.minimum, spec.shape).astype(np.float32),
        np.broadcast_to(spec.maximum, spec.shape).astype(np.float32),
        dtype=np.float32,
    )
