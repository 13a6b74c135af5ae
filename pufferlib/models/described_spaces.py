"""Descriptions of spaces that differ if an element of an observation or action means something else."""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from pufferlib.env import HasSpaces
from pufferlib.spaces import MixedBox

__all__ = ["describe_spaces"]


def describe_spaces(env: HasSpaces) -> dict[str, str]:
    """Return descriptions of the "observations" and "actions" of one agent.

    They contain names, shapes and the values of integers in actions. Bounds of other numbers are left out, because an
    agent may also be used in an environment of another size.
    """
    space = env.single_observation_space
    plain: np.dtype[Any] = np.dtype((space.dtype, space.shape))
    seen = env.emulated["emulated_observation_dtype"] if env.emulated else plain
    return {"observations": _fields(seen if seen.names else plain), "actions": _actions(env.single_action_space)}


def _fields(dtype: np.dtype[Any]) -> str:
    if dtype.names and dtype.fields:
        return f"{{{', '.join(f'{name}: {_fields(dtype.fields[name][0])}' for name in dtype.names)}}}"
    return f"{'floats' if dtype.base.kind == 'f' else 'integers'} {dtype.shape}"


def _actions(space: Any) -> str:
    if isinstance(space, Discrete):
        return _values(space.start, space.start + space.n - 1)
    if isinstance(space, MixedBox):
        bounds = zip(space.low.ravel(), space.high.ravel(), space.is_integer.ravel(), strict=True)
        return f"[{', '.join(_values(low, high) if is_int else 'float' for low, high, is_int in bounds)}]"
    if space.dtype.kind == "f":
        return f"floats {space.shape}"
    low, high = (space.start, space.start + space.nvec - 1) if hasattr(space, "nvec") else (space.low, space.high)
    return f"[{', '.join(map(_values, low.ravel(), high.ravel()))}]"


def _values(low: Any, high: Any) -> str:
    return f"{int(low)} to {int(high)}"
