"""Normalization in training with wrappers of the vector environment.

The moments of the observations are buffers of the policy, because the policy cannot act without them. Other statistics,
and the state of the running episodes, are saved with the run.
"""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from pufferlib.errors import APIUsageError
from pufferlib.legal_actions import FIELD as MASK_FIELD
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import NormalizeObservation, NormalizeReward, VectorWrapper

__all__ = [
    "ObservationMoments",
    "attach_moments",
    "has_moments",
    "load_wrappers",
    "normalized",
    "save_wrappers",
    "store_moments",
    "take_moments",
    "warn_of_normalizing_wrappers",
    "with_moments",
    "with_normalization",
]

MOMENTS = "observation_moments"  # name of the policy's module with the moments
WRAPPER = NormalizeObservation.__name__
# Effects of Gymnasium's wrappers around a single environment, by class.
EFFECTS = {
    "NormalizeObservation": (
        "its moments differ between environments and are not saved, so evaluations and loaded agents see other "
        "observations than training; remove it and set train.normalize_observations to true, which saves them with the "
        "policy"
    ),
    "NormalizeReward": (
        "scores then count its changed rewards, and its moments differ between environments; remove it, because "
        "train.normalize_rewards does the same and leaves scores as they are"
    ),
}


def normalized(vecenv: AnyVectorEnv, config: TrainConfig) -> Any:
    """Return ``vecenv`` with observations and rewards normalized as the settings ask.

    Args:
        vecenv: Vector environment, as ``pufferlib.vector.make`` returns it.
        config: Settings, of which ``normalize_observations``, ``normalize_rewards`` and ``gamma`` are read.

    Raises:
        APIUsageError: Observations contain no floating-point numbers.
    """
    config = with_normalization(vecenv, config)
    if config.normalize_observations:
        vecenv = NormalizeObservation(vecenv)
    return NormalizeReward(vecenv, gamma=config.gamma) if config.normalize_rewards else vecenv


def with_normalization(vecenv: AnyVectorEnv, config: TrainConfig) -> TrainConfig:
    """Return ``config`` with unset settings of normalization chosen for ``vecenv``.

    Environments in Python come with any scale of observations and rewards. Native ones have settings of their own.
    What a wrapper of ``vecenv`` normalizes already is left alone.
    """
    observations, rewards = config.normalize_observations, config.normalize_rewards
    is_open = bool(vecenv.emulated) and not config.restart_share  # which allows no wrappers
    wrappers = {type(wrapper) for wrapper in _wrappers(vecenv)}
    if observations is None:
        observations = is_open and NormalizeObservation not in wrappers and _has_large_numbers(vecenv.emulated)
    if rewards is None:
        has_scale = bool(config.reward_scale or config.reward_clip) or NormalizeReward in wrappers
        rewards = is_open and not has_scale
    return dataclasses.replace(config, normalize_observations=observations, normalize_rewards=rewards)


def warn_of_normalizing_wrappers(vecenv: Any) -> None:
    """Warn of each of Gymnasium's normalizing wrappers inside the environments. Its moments are lost after training."""
    if not vecenv.emulated:
        return
    try:
        (names,) = vecenv.wrapper_names(env_ids=0)
    except (AttributeError, APIUsageError):  # an environment without a backend, or a step is running
        return
    for wrapper, effect in EFFECTS.items():
        if any(name.startswith("gymnasium.wrappers.") and name.endswith(f".{wrapper}") for name in names):
            warnings.warn(f"the environment is wrapped in gymnasium.wrappers.{wrapper}: {effect}", stacklevel=3)


def _has_large_numbers(emulated: Mapping[str, Any]) -> bool:
    """Return whether an observation has floats beyond -1 and 1, or without bounds."""

    def is_large(dtype: "np.dtype[Any]", bounds: Any) -> bool:
        if dtype.names is not None:
            fields = (name for name in dtype.names if name != MASK_FIELD)
            return any(is_large(dtype[name], bounds and bounds[name]) for name in fields)
        return dtype.base.kind == "f" and (bounds is None or max(map(abs, bounds)) > 1)

    return is_large(emulated["emulated_observation_dtype"], emulated["observation_bounds"])


class ObservationMoments(nn.Module):
    """Moments and settings of a ``NormalizeObservation`` as buffers, so that they are saved with the weights.

    Args:
        wrapper: Wrapper with the names, shapes and values.
    """

    def __init__(self, wrapper: NormalizeObservation) -> None:
        super().__init__()
        for name, value in _own_state(wrapper).items():
            self.register_buffer(_buffer(name), torch.from_numpy(value))

    def store(self, wrapper: NormalizeObservation) -> None:
        """Copy the current moments of ``wrapper`` into the buffers."""
        for name, value in _own_state(wrapper).items():
            self.get_buffer(_buffer(name)).copy_(torch.from_numpy(value))

    def wrap(self, vecenv: AnyVectorEnv) -> NormalizeObservation:
        """Return ``vecenv`` normalized by these moments, which stay constant.

        Raises:
            APIUsageError: The moments belong to other observations.
        """
        settings = {name: float(self.get_buffer(name)) for name in ("clip", "epsilon")}
        wrapper = NormalizeObservation(vecenv, **settings)
        wrapper.training = False
        self.load_into(wrapper)
        return wrapper

    def load_into(self, wrapper: NormalizeObservation) -> None:
        """Load these moments into ``wrapper``.

        Raises:
            APIUsageError: The moments belong to other observations.
        """
        names = {key: _buffer(key.split(".", 2)[2]) for key in wrapper.state_dict() if f".{WRAPPER}." in key}
        kept = {key: self.get_buffer(name).numpy(force=True) for key, name in names.items()}
        wrapper.load_state_dict({**wrapper.state_dict(), **kept})


def attach_moments(policy: Policy, vecenv: AnyVectorEnv) -> None:
    """Add the moments of ``vecenv`` to ``policy`` if its observations are normalized."""
    wrapper = _observation_wrapper(vecenv)
    if wrapper is not None:
        policy.add_module(MOMENTS, ObservationMoments(wrapper).to(next(policy.parameters()).device))


def has_moments(policy: Policy) -> bool:
    """Return whether ``policy`` has the moments of normalized observations."""
    return _moments_of(policy) is not None


def store_moments(policy: Policy, vecenv: AnyVectorEnv) -> None:
    """Copy the current moments of ``vecenv`` into ``policy``."""
    wrapper, moments = _observation_wrapper(vecenv), _moments_of(policy)
    if wrapper is not None and moments is not None:
        moments.store(wrapper)


def take_moments(vecenv: AnyVectorEnv, policy: Policy) -> None:
    """Load the moments of ``policy`` into ``vecenv``, if the policy has any."""
    wrapper, moments = _observation_wrapper(vecenv), _moments_of(policy)
    if wrapper is not None and moments is not None:
        moments.load_into(wrapper)


def with_moments(vecenv: AnyVectorEnv, policy: Policy | None) -> Any:
    """Return ``vecenv`` with observations normalized by the moments of ``policy``, or unchanged if it has none."""
    moments = None if policy is None else _moments_of(policy)
    return vecenv if moments is None else moments.wrap(vecenv)


def save_wrappers(vecenv: Any) -> dict[str, Any]:
    """Return the state of the wrappers for the checkpoint of a run. The dict is empty without wrappers."""
    if not _is_wrapper(vecenv):
        return {}
    return {"statistics": vecenv.state_dict(), "wrapped_episodes": vecenv.episode_arrays() or {}}


def load_wrappers(vecenv: Any, saved: Mapping[str, Any], with_episodes: bool) -> None:
    """Restore the state that ``save_wrappers`` returned.

    Args:
        vecenv: Vector environment in the same wrappers.
        saved: Saved state, which may contain other keys.
        with_episodes: Whether the environments continue the saved episodes. False if they start new ones.

    Raises:
        APIUsageError: The state belongs to other wrappers.
    """
    if not _is_wrapper(vecenv) or "statistics" not in saved:
        return
    vecenv.load_state_dict(saved["statistics"])
    if with_episodes:
        for name, array in (vecenv.episode_arrays() or {}).items():
            np.copyto(array, saved["wrapped_episodes"][name])


def _is_wrapper(vecenv: Any) -> bool:
    return isinstance(vecenv, VectorWrapper)


def _observation_wrapper(vecenv: Any) -> NormalizeObservation | None:
    """Return the outermost wrapper that normalizes observations, or None."""
    return next((wrapper for wrapper in _wrappers(vecenv) if isinstance(wrapper, NormalizeObservation)), None)


def _wrappers(vecenv: Any) -> Iterator[VectorWrapper]:
    """Yield the wrappers of a vector environment, outermost first."""
    while isinstance(vecenv, VectorWrapper):
        yield vecenv
        vecenv = vecenv.vecenv


def _moments_of(policy: Policy) -> ObservationMoments | None:
    found = getattr(policy, MOMENTS, None)
    return found if isinstance(found, ObservationMoments) else None


def _own_state(wrapper: NormalizeObservation) -> dict[str, Any]:
    """Return the arrays of this wrapper by name, without the arrays of wrappers inside it."""
    keys = [key.split(".", 2) for key in wrapper.state_dict()]
    place = str(max(int(key[0]) for key in keys))
    return {name: wrapper.state_dict()[f"{place}.{WRAPPER}.{name}"] for at, _, name in keys if at == place}


def _buffer(name: str) -> str:
    """Return the name of a buffer. Torch allows no dots in it."""
    return name.replace(".", "/")
