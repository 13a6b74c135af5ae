"""Normalization and clipping of observations, rewards and actions."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.legal_actions import FIELD as MASK_FIELD
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector._kernels import Moments, add_rewards, add_squares, clear_episodes, scale_rewards
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import (
    as_rows,
    emulation_of,
    field_names,
    flat_box,
    joined_names,
    real_bounds,
    real_dtype,
    real_space,
    view_fields,
)
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["ClipAction", "ClipObservation", "ClipReward", "NormalizeObservation", "NormalizeReward"]


class NormalizeObservation(VectorWrapper):
    """Observations with mean 0 and variance 1 in each element, as float32, by the moments of all observations so far.

    Absent agents are not counted, and neither are the numbers of an element in a batch where one is infinite or NaN.
    Elements of an action mask are not normalized. In a Dict or Tuple, each float array is normalized separately,
    including the padding of arrays of variable length. Integers and the field ``action_mask`` in it are unchanged.
    Integers outside a Dict or Tuple are normalized. Final observations are normalized, but not counted.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``.
        clip: Largest absolute value of a normalized element.
        epsilon: Constant added to variances.

    Attributes:
        mean: Mean of each element, float64, shape of an observation. For a Dict or Tuple, a dict from the field names,
            joined by dots, to arrays.
        var: Variance of each element, in the format of ``mean``.

    Raises:
        APIUsageError: ``clip`` or ``epsilon`` is not above 0, or a Dict or Tuple has no floats.
    """

    def __init__(self, vecenv: AnyVectorEnv, clip: float = 10.0, epsilon: float = 1e-8) -> None:
        super().__init__(vecenv)
        _check_positive("NormalizeObservation", clip=clip, epsilon=epsilon)
        self._limit, self._epsilon = float(clip), float(epsilon)
        space, emulated = vecenv.single_observation_space, vecenv.emulated
        self._shape = space.shape
        self._dtype = emulated["emulated_observation_dtype"] if emulated else np.dtype(space.dtype)
        if self._dtype.names is None:
            self._init_box(space, emulated)
        else:
            self._init_fields(emulated)

    def _init_box(self, space: Box, emulated: Any) -> None:
        plain = None if emulated else self.vecenv.driver_env.action_mask
        self._moments: dict[tuple[str, ...], Moments] = {(): Moments(int(np.prod(space.shape)), self._epsilon, plain)}
        self._others: list[tuple[str, ...]] = []
        if emulated:
            shape = np.dtype((np.float32, space.shape))
            emulated = emulation_of(shape, np.dtype(np.float32), (-self._limit, self._limit))
        self._set_observation_space(Box(-self._limit, self._limit, space.shape, np.float32), emulated)

    def _init_fields(self, emulated: Mapping[str, Any]) -> None:
        old, new = self._dtype, real_dtype(self._dtype)
        self._new_dtype = new
        row = np.zeros((1, old.itemsize), np.uint8)
        leaves = {names: view_fields(row, old, names) for names in field_names(old)}
        self._moments = {
            names: Moments(leaf.shape[1], self._epsilon)
            for names, leaf in leaves.items()
            if leaf.dtype.kind == "f" and names != (MASK_FIELD,)
        }
        self._others = [names for names in leaves if names not in self._moments]
        if not self._moments:
            raise APIUsageError(
                f"NormalizeObservation: observations must have real numbers, got integers only, {old}; leave it out: "
                "networks take integers as labels, or scale them by their bounds"
            )
        bounds = real_bounds(emulated["observation_bounds"], old, self._limit)
        flat = flat_box(new, self._limit)
        self._set_observation_space(flat, emulation_of(new, np.dtype(flat.dtype), bounds))

    def transform(self, transitions: Transitions) -> None:
        """Update the statistics, and normalize the observations."""
        shown, rows = transitions.observations, transitions.reset_rows
        if self._is_training:
            masks = transitions.masks if rows is None else transitions.masks & rows
            present = None if masks.all() else masks
            for names, moments in self._moments.items():
                moments.update(self._rows(shown, self._dtype, names), present)
        if rows is None:
            self._write(shown, self.observations)
        else:
            self.observations[rows] = self.normalize(shown[rows])
        if transitions.any_ended and self.autoreset == AutoresetMode.SAME_STEP:
            ended = transitions.ended_rows
            self.final_observations[ended] = self.normalize(self.vecenv.final_observations[ended])
        transitions.observations = self.observations

    def normalize(self, observations: Array) -> Array:
        """Return normalized copies of observations ``(rows, ...)``, by the current statistics."""
        found = np.zeros((len(observations), *self.observations.shape[1:]), self.observations.dtype)
        self._write(observations, found)
        return found

    def _write(self, observations: Array, out: Array) -> None:
        for names, moments in self._moments.items():
            new = self._rows(out, self._new_dtype if names else self._dtype, names)
            moments.normalize(self._rows(observations, self._dtype, names), new, self._limit)
        for names in self._others:
            view_fields(out, self._new_dtype, names)[...] = view_fields(observations, self._dtype, names)

    def _rows(self, observations: Array, dtype: "np.dtype[Any]", names: tuple[str, ...]) -> Array:
        """Return the elements of each row that share one ``Moments``, ``(rows, elements)``."""
        return view_fields(observations, dtype, names) if names else as_rows(observations)

    def _converted_space(self, space: Any) -> Any:
        if () in self._moments:  # all numbers are normalized, also those of a Discrete
            return Box(-self._limit, self._limit, self._shape, np.float32)
        return real_space(space, self._limit)

    @property
    def mean(self) -> Any:
        """Current means."""
        return self._by_field("mean")

    @property
    def var(self) -> Any:
        """Current variances."""
        return self._by_field("var")

    def _by_field(self, name: str) -> Any:
        if () in self._moments:
            return getattr(self._moments[()], name).reshape(self._shape)
        names = joined_names(self._moments)
        return {names[array]: getattr(moments, name) for array, moments in self._moments.items()}

    def _settings(self) -> dict[str, Any]:
        return {"clip": self._limit, "epsilon": self._epsilon}

    def _state(self) -> dict[str, Any]:
        return {
            key: getattr(self._moments[array], part)
            for array, keys in self._keys().items()
            for part, key in keys.items()
        }

    def _keys(self) -> dict[tuple[str, ...], dict[str, str]]:
        """Return the state keys of each array's moments."""
        return {
            array: {part: f"{name}.{part}" if array else part for part in ("mean", "var", "count")}
            for array, name in joined_names(self._moments).items()
        }

    def _episode_arrays(self) -> dict[str, Array]:
        return {"observations": self.observations}

    def _load(self, state: Mapping[str, Array]) -> None:
        for array, keys in self._keys().items():
            self._moments[array].load(state[keys["mean"]], state[keys["var"]], float(state[keys["count"]]))


class NormalizeReward(VectorWrapper):
    """Rewards divided by the standard deviation of the discounted return, so that returns have a scale near 1.

    The return of an agent restarts with each episode. Rewards are not centered, because their sign has a meaning. Rare
    rewards, such as one at the end of an episode, would be far above ``clip`` and then all alike. So the root mean
    square of the normalized rewards that are not 0 is at most ``clip``.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``.
        gamma: Discount factor of the learner.
        clip: Largest absolute value of a normalized reward.
        epsilon: Constant added to the variance.

    Attributes:
        var: Variance of the returns so far.
        rms: Root mean square of the rewards so far that are not 0. 0 before the first one.

    Raises:
        APIUsageError: ``clip`` or ``epsilon`` is not above 0, or ``gamma`` is not within 0 and 1.
    """

    def __init__(self, vecenv: AnyVectorEnv, gamma: float = 0.99, clip: float = 10.0, epsilon: float = 1e-8) -> None:
        super().__init__(vecenv)
        _check_positive("NormalizeReward", clip=clip, epsilon=epsilon)
        if not 0 <= gamma <= 1:
            raise APIUsageError(f"NormalizeReward: gamma must be within 0 and 1, got {gamma}")
        self._gamma, self._limit, self._epsilon = float(gamma), float(clip), float(epsilon)
        self._returns = np.zeros(vecenv.num_agents)
        self._moments = Moments(1, self._epsilon)
        self._seen = np.zeros(2)  # sum of the squares of rewards that are not 0, and their number
        self.rewards = np.zeros(vecenv.agents_per_batch, np.float32)

    def transform(self, transitions: Transitions) -> None:
        """Update the returns and statistics, and scale the rewards."""
        agents, acted = transitions.agents, transitions.acted
        returns = self._returns[agents]  # a view, or a copy if the rows are not adjacent
        add_rewards(returns, transitions.rewards, self._gamma, acted)
        if self._is_training:
            self._moments.update(returns[:, None], acted)
            add_squares(self._seen, transitions.rewards, acted)
        if transitions.any_ended or transitions.any_begins:
            clear_episodes(returns, transitions.ended, transitions.begins)
        if not isinstance(agents, slice):
            self._returns[agents] = returns
        if transitions.reset_rows is None:
            scale_rewards(transitions.rewards, self.rewards, self._scale(), self._limit, acted)
        else:
            self.rewards[transitions.reset_rows] = 0
        transitions.rewards = self.rewards

    @property
    def var(self) -> float:
        """Current variance."""
        return float(self._moments.var[0])

    @property
    def rms(self) -> float:
        """Current root mean square."""
        squares, count = self._seen.tolist()
        return math.sqrt(squares / count) if count else 0.0

    def _scale(self) -> float:
        rms = self.rms
        return min(self._moments.scale, self._limit / rms) if rms else self._moments.scale

    def _settings(self) -> dict[str, Any]:
        return {"gamma": self._gamma, "clip": self._limit, "epsilon": self._epsilon}

    def _state(self) -> dict[str, Any]:
        return {
            "mean": self._moments.mean,
            "var": self._moments.var,
            "count": self._moments.count,
            "seen": self._seen,
        }

    def _episode_arrays(self) -> dict[str, Array]:
        return {"returns": self._returns}

    def _load(self, state: Mapping[str, Array]) -> None:
        self._moments.load(state["mean"], state["var"], float(state["count"]))
        self._seen[:] = state["seen"]


def _check_positive(where: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise APIUsageError(f"{where}: {name} must be above 0, got {number}")


class ClipObservation(VectorWrapper):
    """Clipping of observations. The bounds also apply to the observation space.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with a Box observation space.
        low: Lower bound, a number or an array with one value for each element.
        high: Upper bound, a number or an array with one value for each element.

    Raises:
        APIUsageError: Observations are a Dict or Tuple, a bound has the wrong shape, or ``low`` exceeds ``high``.
    """

    def __init__(self, vecenv: AnyVectorEnv, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
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

    def _converted_space(self, space: Any) -> Any:
        return self.single_observation_space

    def _settings(self) -> dict[str, Any]:
        return {"low": self._low, "high": self._high}


class ClipReward(VectorWrapper):
    """Clipping of rewards.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``.
        low: Lower bound.
        high: Upper bound.

    Raises:
        APIUsageError: ``low`` exceeds ``high``.
    """

    def __init__(self, vecenv: AnyVectorEnv, low: float = -1.0, high: float = 1.0) -> None:
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

    def __init__(self, vecenv: AnyVectorEnv) -> None:
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
