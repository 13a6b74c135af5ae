"""Environments of the interface dm_env as Gymnasium environments. Imports neither."""

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

__all__ = ["FromDmEnv", "row_of"]

Observation = npt.NDArray[np.float32]
Info = dict[str, Any]


class FromDmEnv(gymnasium.Env[Observation, Any]):
    """``env`` of the interface dm_env, seen as one array of float32.

    An episode that ends with discount 0 is terminated, any other end truncates it.

    Args:
        env: Its action is one array or one integer.
        reseed: What makes its chance follow from a seed.
    """

    def __init__(self, env: Any, reseed: Callable[[int], None]) -> None:
        self.dm_env = env
        self._reseed = reseed
        self.observation_space: Box = _observation_space(env.observation_spec())  # type: ignore[assignment]  # wider
        self.action_space = _action_space(env.action_spec())
        self._read = row_of if isinstance(env.observation_spec(), dict) else _as_float32

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._reseed(seed)
        return self._read(self.dm_env.reset().observation), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Act once."""
        moment = self.dm_env.step(action)
        over = moment.last()
        terminated = over and moment.discount == 0
        return self._read(moment.observation), float(moment.reward), terminated, over and not terminated, {}

    def close(self) -> None:
        """Close the environment inside."""
        self.dm_env.close()


def row_of(parts: Any) -> Observation:
    """The arrays of a dict, one after the other."""
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
