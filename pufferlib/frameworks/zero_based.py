"""Space conversions for Stable-Baselines3 and RLlib, whose integers start at 0 and have one axis."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["zero_based_actions", "zero_based_observations"]

Conversion = Callable[[Any], Any]

EXACT = 2**53  # Integers up to here are exact in float64.


def zero_based_actions(where: str, space: Space) -> tuple[Space, Conversion | None]:
    """Return the action space that a framework sees, and the conversion of its actions to ``space``.

    Integers start at 0, and a MultiDiscrete has one axis. This also applies to the parts of a Dict or Tuple, in which a
    MultiBinary or a Box of integers becomes a MultiDiscrete. A Box of integers alone becomes a Box of float32, and its
    actions are rounded to the nearest integer.

    Args:
        where: Name of the calling function, for error messages.
        space: Action space of one agent.

    Returns:
        The space, and a function that converts one action or a batch of actions. The function is None if both spaces
        are equal.
    """
    if isinstance(space, Box) and space.dtype.kind in "iu":
        low, high = (np.clip(bound.astype(np.float64), -EXACT, EXACT) for bound in (space.low, space.high))
        shown = Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        return shown, lambda actions: _rounded(where, actions, low, high).astype(space.dtype)
    plain = _with_plain_parts(space)
    if plain == space and _is_zero_based(space):
        return space, None
    return _zero_based(plain), lambda actions: _from_zero_based(plain, actions)


def zero_based_observations(space: Space) -> tuple[Space, Conversion | None]:
    """Return the observation space that a framework sees, and the conversion of observations of ``space`` to it.

    Integers start at 0, and a MultiDiscrete has one axis. This also applies to the parts of a Dict or Tuple.

    Args:
        space: Observation space of one agent.

    Returns:
        The space, and a function that converts one observation or a batch of observations. The function is None if
        both spaces are equal.
    """
    if _is_zero_based(space):
        return space, None
    return _zero_based(space), lambda observations: _to_zero_based(space, observations)


def _is_zero_based(space: Space) -> bool:
    if isinstance(space, Discrete):
        return bool(space.start == 0)
    if isinstance(space, MultiDiscrete):
        return space.nvec.ndim == 1 and not space.start.any()
    return all(map(_is_zero_based, _children(space).values()))


def _children(space: Space) -> dict[Any, Space]:
    if isinstance(space, Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, Tuple) else {}


def _zero_based(space: Space) -> Space:
    if isinstance(space, Discrete):
        return Discrete(space.n)
    if isinstance(space, MultiDiscrete):
        return MultiDiscrete(space.nvec.ravel(), dtype=np.dtype(space.dtype).type)
    if isinstance(space, Dict):
        return Dict({key: _zero_based(child) for key, child in space.spaces.items()})
    return Tuple([_zero_based(child) for child in space.spaces]) if isinstance(space, Tuple) else space


def _to_zero_based(space: Space, values: Any) -> Any:
    """Convert ``values`` of ``space`` to ``_zero_based(space)``."""
    if isinstance(space, Dict):
        return {key: _to_zero_based(child, values[key]) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_to_zero_based(child, value) for child, value in zip(space.spaces, values, strict=True))
    if isinstance(space, Discrete):
        return values - space.start
    if isinstance(space, MultiDiscrete):
        return (values - space.start).reshape(*np.shape(values)[: np.ndim(values) - space.nvec.ndim], -1)
    return values


def _with_plain_parts(space: Space) -> Space:
    """Return ``space`` with a MultiDiscrete for each MultiBinary and Box of integers in a Dict or Tuple."""

    def plain(part: Space) -> Space:
        if isinstance(part, MultiBinary):
            return MultiDiscrete(np.full(part.shape, 2))
        if isinstance(part, Box) and part.dtype.kind in "iu":
            return MultiDiscrete(part.high.astype(np.int64) - part.low + 1, start=part.low.astype(np.int64))
        return _with_plain_parts(part)

    if isinstance(space, Dict):
        return Dict({key: plain(child) for key, child in space.spaces.items()})
    return Tuple([plain(child) for child in space.spaces]) if isinstance(space, Tuple) else space


def _from_zero_based(space: Space, values: Any) -> Any:
    """Convert ``values`` of ``_zero_based(space)`` to ``space``. A list holds one value for each row."""
    if isinstance(space, Dict | Tuple) and isinstance(values, list):
        return [_from_zero_based(space, value) for value in values]
    if isinstance(space, Dict):
        return {key: _from_zero_based(child, values[key]) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_from_zero_based(child, value) for child, value in zip(space.spaces, values, strict=True))
    if isinstance(space, Discrete | MultiDiscrete):
        return _with_axes(np.asarray(values), space) + space.start
    return values


def _with_axes(actions: Array, space: Discrete[Any] | MultiDiscrete[Any]) -> Array:
    """Reshape the last axis of actions to the axes of ``space``."""
    return actions if isinstance(space, Discrete) else actions.reshape(*actions.shape[:-1], *space.shape)


def _rounded(where: str, actions: Any, low: Array, high: Array) -> Array:
    array = np.asarray(actions, np.float64)
    if np.isnan(array).any():
        raise APIUsageError(
            f"{where}: actions must be numbers, got NaN in row {np.argwhere(np.isnan(array))[0][0]}; look at the policy"
        )
    return np.clip(np.rint(array), low, high)
