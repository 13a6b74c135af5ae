"""Wrappers that clip observations, rewards and actions."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import emulation_of
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["ClipAction", "ClipObservation", "ClipReward"]


class ClipObservation(VectorWrapper):
    """Clipping of observations. The bounds also apply to the observation space.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with a Box observation space.
        low: Lower bound, a number or an array with one value for each element.
        high: Upper bound, a number or an array with one value for each element.
    """

    def __init__(self, vecenv: Any, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        super().__init__(vecenv)
        space, emulated = vecenv.single_observation_space, vecenv.emulated
        if emulated and emulated["emulated_observation_dtype"].names is not None:
            raise APIUsageError(
                "ClipObservation: observations must be a Box, got a Dict or Tuple; NormalizeObservation(vecenv, "
                "clip=...) takes them, or clip before the emulation, in gymnasium.wrappers.TransformObservation"
            )
        self._low, self._high = _bounds("ClipObservation", low, high, space)
        box = Box(np.maximum(self._low, space.low), np.minimum(self._high, space.high), dtype=space.dtype)
        if emulated:
            bounds = (box.low.min().item(), box.high.max().item()) if box.low.size else None
            emulated = emulation_of(emulated["emulated_observation_dtype"], np.dtype(box.dtype), bounds)
        self._set_observation_space(box, emulated)

    def transform(self, transitions: Transitions) -> None:
        """Clip the observations and the last observations of ended episodes."""
        shown, rows = transitions.observations, transitions.reset_rows
        if rows is None:
            np.clip(shown, self._low, self._high, out=self.observations)
        else:
            self.observations[rows] = np.clip(shown[rows], self._low, self._high)
        if transitions.any_ended and self.autoreset == AutoresetMode.SAME_STEP:
            ended = transitions.ended_rows
            self.final_observations[ended] = np.clip(self.vecenv.final_observations[ended], self._low, self._high)
        transitions.observations = self.observations

    def _settings(self) -> dict[str, Any]:
        return {"low": self._low, "high": self._high}


class ClipReward(VectorWrapper):
    """Clipping of rewards.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``.
        low: Lower bound.
        high: Upper bound.
    """

    def __init__(self, vecenv: Any, low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(vecenv)
        if not low <= high:
            raise APIUsageError(f"ClipReward: low must be at most high, got low={low}, high={high}")
        self._low, self._high = float(low), float(high)
        self.rewards = np.zeros(vecenv.agents_per_batch, np.float32)

    def transform(self, transitions: Transitions) -> None:
        """Clip the rewards."""
        np.clip(transitions.rewards, self._low, self._high, out=self.rewards)
        transitions.rewards = self.rewards

    def _settings(self) -> dict[str, Any]:
        return {"low": self._low, "high": self._high}


class ClipAction(VectorWrapper):
    """Clipping of actions to the Box of the environments. Any float action is accepted.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with a Box of floats as action space.

    Raises:
        APIUsageError: The action space is not a Box of floats.
    """

    def __init__(self, vecenv: Any) -> None:
        super().__init__(vecenv)
        space = vecenv.single_action_space
        if not isinstance(space, Box) or np.dtype(space.dtype).kind != "f":
            raise APIUsageError(f"ClipAction: expected a Box of floats as action space, got {space}; leave it out")
        self._low, self._high, self._dtype = space.low, space.high, np.dtype(space.dtype)
        self._set_action_space(Box(-np.inf, np.inf, space.shape, self._dtype.type))

    def transform_actions(self, actions: Any) -> Any:
        """Clip the actions."""
        array = np.asarray(actions, self._dtype)
        return (
            np.clip(array, self._low, self._high) if array.shape[1:] == self._low.shape else array
        )  # a wrong shape is rejected by send

    def _settings(self) -> dict[str, Any]:
        return {"low": self._low, "high": self._high}


def _bounds(where: str, low: Any, high: Any, space: Box) -> tuple[Any, Any]:
    """Return the bounds as arrays in the dtype of ``space``.

    Raises:
        APIUsageError: A bound does not fit the shape of ``space``, or ``low`` exceeds ``high``.
    """
    try:
        found = [np.broadcast_to(np.asarray(bound), space.shape) for bound in (low, high)]
    except ValueError:
        raise APIUsageError(
            f"{where}: low and high must be numbers or arrays {space.shape}, got {np.shape(low)} and {np.shape(high)}"
        ) from None
    if not (found[0] <= found[1]).all():
        raise APIUsageError(f"{where}: low must be at most high, got low={low!r:.40}, high={high!r:.40}")
    low, high = (np.array(np.clip(bound, space.low, space.high), space.dtype) for bound in found)
    return low, high
