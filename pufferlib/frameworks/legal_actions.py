"""Legal actions read from observations, for the action masks of other frameworks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, MultiDiscrete

from pufferlib.buffers import Array
from pufferlib.spaces import MixedBox, Space

__all__ = ["MASK", "legal_actions", "num_choices"]

MASK = "action_mask"


def legal_actions(vecenv: Any, space: Space) -> Callable[[Array], npt.NDArray[np.bool_]] | None:
    """Return a function that reads the legal actions from rows of observations.

    Native environments define the elements of the mask. Emulated environments have it in the field ``"action_mask"`` of
    a Dict, with one element for each value of each part of an action.

    Args:
        vecenv: Vector environment.
        space: Observation space of one agent before it is flattened.

    Returns:
        Function of rows ``(rows, *shape)`` that returns bool ``(rows, choices)``, or None without a mask.
    """
    if not vecenv.emulated:
        elements = vecenv.driver_env.action_mask
        return None if elements is None else lambda rows: rows.reshape(len(rows), -1)[:, elements] != 0
    field = space.spaces.get(MASK) if isinstance(space, Dict) else None
    if field is None or not field.shape or int(np.prod(field.shape)) != num_choices(vecenv.single_action_space):
        return None
    dtype = vecenv.driver_env.obs_dtype
    if not dtype.names:
        return None
    return lambda rows: rows.view(dtype)[:, 0][MASK].reshape(len(rows), -1) != 0


def num_choices(space: Any) -> int:
    """Return the number of values of all discrete parts of an action."""
    if isinstance(space, MixedBox):
        return int(space.sizes.sum())
    if isinstance(space, Box):
        return 0
    return int(np.sum(space.nvec if isinstance(space, MultiDiscrete) else space.n))
