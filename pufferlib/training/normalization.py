"""Normalization in training: wrappers of the batch, whose moments are kept with the policy and with the run.

The moments of the observations belong to the policy: whoever plays it needs them, so its file has them, as buffers.
All else, and where the episodes are, belongs to the run.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from pufferlib.models import Policy
from pufferlib.training.config import TrainConfig
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
    "with_moments",
]

MOMENTS = "observation_moments"  # the module of a policy that has them
WRAPPER = NormalizeObservation.__name__


def normalized(vecenv: Any, config: TrainConfig) -> Any:
    """``vecenv`` with observations and rewards normalized as the settings say.

    Args:
        vecenv: Of ``pufferlib.vector.make``.
        config: ``normalize_observations``, ``normalize_rewards`` and ``gamma`` are read.

    Raises:
        APIUsageError: Observations have no real numbers.
    """
    if config.normalize_observations:
        vecenv = NormalizeObservation(vecenv)
    return NormalizeReward(vecenv, gamma=config.gamma) if config.normalize_rewards else vecenv


class ObservationMoments(nn.Module):
    """The moments and settings of a ``NormalizeObservation`` as buffers, so that they are saved with the weights.

    Args:
        wrapper: Gives their names, shapes and values.
    """

    def __init__(self, wrapper: NormalizeObservation) -> None:
        super().__init__()
        for name, value in _own_state(wrapper).items():
            self.register_buffer(_buffer(name), torch.from_numpy(value))

    def store(self, wrapper: NormalizeObservation) -> None:
        """Take the moments of ``wrapper`` as they are now."""
        for name, value in _own_state(wrapper).items():
            self.get_buffer(_buffer(name)).copy_(torch.from_numpy(value))

    def wrap(self, vecenv: Any) -> NormalizeObservation:
        """``vecenv`` normalized by these moments, which stay as they are.

        Raises:
            APIUsageError: They are of other observations.
        """
        settings = {name: float(self.get_buffer(name)) for name in ("clip", "epsilon")}
        wrapper = NormalizeObservation(vecenv, **settings)
        wrapper.training = False
        self.load_into(wrapper)
        return wrapper

    def load_into(self, wrapper: NormalizeObservation) -> None:
        """Let ``wrapper`` go on from these moments.

        Raises:
            APIUsageError: They are of other observations.
        """
        names = {key: _buffer(key.split(".", 2)[2]) for key in wrapper.state_dict() if f".{WRAPPER}." in key}
        kept = {key: self.get_buffer(name).numpy(force=True) for key, name in names.items()}
        wrapper.load_state_dict({**wrapper.state_dict(), **kept})


def attach_moments(policy: Policy, vecenv: Any) -> None:
    """Give ``policy`` the moments of ``vecenv``, if its observations are normalized."""
    wrapper = _observation_wrapper(vecenv)
    if wrapper is not None:
        policy.add_module(MOMENTS, ObservationMoments(wrapper).to(next(policy.parameters()).device))


def has_moments(policy: Policy) -> bool:
    """Return whether ``policy`` has the moments of normalized observations."""
    return _moments_of(policy) is not None


def store_moments(policy: Policy, vecenv: Any) -> None:
    """Bring the moments of ``policy`` up to those of ``vecenv``."""
    wrapper, moments = _observation_wrapper(vecenv), _moments_of(policy)
    if wrapper is not None and moments is not None:
        moments.store(wrapper)


def take_moments(vecenv: Any, policy: Policy) -> None:
    """Let ``vecenv`` go on from the moments of ``policy``, if it has any."""
    wrapper, moments = _observation_wrapper(vecenv), _moments_of(policy)
    if wrapper is not None and moments is not None:
        moments.load_into(wrapper)


def with_moments(vecenv: Any, policy: Policy | None) -> Any:
    """``vecenv`` with the observations that ``policy`` learned from: normalized by its moments, if it has any."""
    moments = None if policy is None else _moments_of(policy)
    return vecenv if moments is None else moments.wrap(vecenv)


def save_wrappers(vecenv: Any) -> dict[str, Any]:
    """State of the wrappers around environments, for the checkpoint of a run; empty without wrappers."""
    if not _is_wrapper(vecenv):
        return {}
    return {"statistics": vecenv.state_dict(), "wrapped_episodes": vecenv.episode_arrays() or {}}


def load_wrappers(vecenv: Any, saved: Mapping[str, Any], with_episodes: bool) -> None:
    """Let the wrappers go on from ``save_wrappers``.

    Args:
        vecenv: Wrapped in the same way.
        saved: What was saved, among other things.
        with_episodes: The environments have been given the games they were in; else they begin new ones.

    Raises:
        APIUsageError: It is of other wrappers.
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
    """The outermost wrapper that normalizes observations."""
    while _is_wrapper(vecenv):
        if isinstance(vecenv, NormalizeObservation):
            return vecenv
        vecenv = vecenv.vecenv
    return None


def _moments_of(policy: Policy) -> ObservationMoments | None:
    found = getattr(policy, MOMENTS, None)
    return found if isinstance(found, ObservationMoments) else None


def _own_state(wrapper: NormalizeObservation) -> dict[str, Any]:
    """The arrays of this wrapper, without those of wrappers inside, by their names."""
    keys = [key.split(".", 2) for key in wrapper.state_dict()]
    place = str(max(int(key[0]) for key in keys))
    return {name: wrapper.state_dict()[f"{place}.{WRAPPER}.{name}"] for at, _, name in keys if at == place}


def _buffer(name: str) -> str:
    """The name of a buffer, in which torch allows no dots."""
    return name.replace(".", "/")
