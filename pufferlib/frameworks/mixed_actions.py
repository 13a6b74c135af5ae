"""Mixed actions in the form of the environment's own space, for frameworks with actions of several parts."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, OneOf, Text, Tuple

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.spaces import MixedBox, Space

__all__ = ["action_parts", "actions_of"]


def actions_of(where: str, vecenv: Any, name_tuples: bool = False) -> tuple[Space, Callable[[Any], Array] | None]:
    """Return the space of one action, and a function that converts actions of all rows for ``vecenv.step``.

    A Dict or Tuple with Discrete parts beside Boxes of floats is the environment's own space. Any other space is that
    of the vector environment, and the function is None. The function takes a dict or tuple of arrays, which have a row
    for each agent, or a list of actions.

    Args:
        where: Name of the calling function, for error messages.
        vecenv: Vector environment.
        name_tuples: Whether a Tuple becomes a Dict with the keys "0", "1" and so on.

    Raises:
        APIUsageError: The space has a OneOf or Text beside Boxes of floats.
    """
    flat = vecenv.single_action_space
    if not (vecenv.emulated and isinstance(flat, MixedBox)):
        return flat, None
    (space,) = vecenv.get_attr("action_space", env_ids=0)
    _check_parts(where, space)
    if name_tuples:
        space = _named(space)

    def flatten(actions: Any) -> Array:
        rows = len(actions) if isinstance(actions, list) else int(vecenv.num_agents)
        given = _stacked(space, actions) if isinstance(actions, list) else actions
        try:
            columns = [np.asarray(part).reshape(rows, -1) for part in action_parts(space, given)]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise APIUsageError(
                f"{where}: actions must be a dict or tuple of arrays with {rows} rows, as in {space}, got "
                f"{actions!r:.200} ({type(error).__name__}: {error})"
            ) from None
        return np.concatenate(columns, 1, dtype=flat.dtype)

    return space, flatten


def action_parts(space: Space, actions: Any) -> Iterator[Any]:
    """Yield the parts of nested actions in the order of the flat action."""
    if not isinstance(space, Dict | Tuple):
        yield actions
        return
    children = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
    for key, child in children:
        yield from action_parts(child, actions[key])


def _named(space: Space) -> Space:
    if not isinstance(space, Dict | Tuple):
        return space
    children = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
    return Dict({str(key): _named(child) for key, child in children})


def _check_parts(where: str, space: Space) -> None:
    if isinstance(space, OneOf | Text):
        raise APIUsageError(
            f"{where}: an action with Boxes of floats must be a Dict or Tuple of Box, Discrete, MultiDiscrete and "
            f"MultiBinary, got {space}"
        )
    if isinstance(space, Dict | Tuple):
        for child in space.spaces.values() if isinstance(space, Dict) else space.spaces:
            _check_parts(where, child)


def _stacked(space: Space, actions: list[Any]) -> Any:
    """Convert a list of actions to one action of arrays."""
    if isinstance(space, Dict):
        return {key: _stacked(child, [action[key] for action in actions]) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_stacked(child, [action[i] for action in actions]) for i, child in enumerate(space.spaces))
    return np.stack([np.asarray(action) for action in actions])
