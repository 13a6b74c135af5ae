"""Actions given as a dict, which EnvPool accepts as well as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pufferlib.actions import action_array
from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError, UnknownNameError

__all__ = ["KEYS", "read_dict"]

KEYS = ("action", "env_id", "players", "players.env_id")


def read_dict(where: str, action: Mapping[str, Any], env_id: Any, num_players: int) -> tuple[Any, Any]:
    """Return the actions and ids of ``{"action": ..., "env_id": ..., "players.env_id": ...}``. Ids may be None.

    Args:
        where: Name of the calling method, for error messages.
        action: Dict of actions. "players.env_id", or ``{"players": {"env_id": ...}}``, contains the environment of each
            row. Rows may have any order. The rows of one environment are its players in order.
        env_id: Ids given to the calling method.
        num_players: Number of rows per environment.

    Returns:
        Actions with the rows of each environment next to each other, in the order of the ids. Their values are not
        checked.

    Raises:
        UnknownNameError: There is another key.
        APIUsageError: The action is missing, ids are given twice, or the players do not match the environments.
    """
    for key in action:
        if key not in KEYS:
            raise UnknownNameError.of(where, "key of an action", key, KEYS)
    if "action" not in action:
        raise APIUsageError(f'{where}: a dict of actions must have the key "action", got {list(action)}')
    if "env_id" in action and env_id is not None:
        raise APIUsageError(f"{where}: env_id must be given once, got it as an argument and in the dict")
    players = action.get("players", {})
    if not isinstance(players, Mapping) or players.keys() - {"env_id"}:
        raise APIUsageError(f'{where}: "players" must be {{"env_id": array}}, got {players!r:.80}')
    ids = action.get("env_id", env_id)
    rows = action.get("players.env_id", players.get("env_id"))
    if rows is None:
        return action["action"], ids
    order, ids = _by_env(where, _ints(where, "players.env_id", rows), ids, num_players)
    values = action_array(where, action["action"])
    if values.ndim < 1 or len(values) != len(order):
        raise APIUsageError(
            f"{where}: actions must have a row for each of players.env_id, {len(order)}, got {values!r:.80}"
        )
    return values[order], ids


def _ints(where: str, name: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:  # ragged rows
        array = np.array(None)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
        raise APIUsageError(f"{where}: {name} must be a row of integers, got {values!r:.80}")
    return array


def _by_env(where: str, rows: Array, ids: Any, num_players: int) -> tuple[Array, Array]:
    """Return the row order that groups rows by environment, and the ids: ``ids``, or ids in order of appearance."""
    found, first, place, counts = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    if (counts != num_players).any():
        wrong = found[counts != num_players][:8].tolist()
        raise APIUsageError(
            f"{where}: players.env_id must name each environment {num_players} times, once for each of its players, "
            f"which is not so for {wrong}"
        )
    ids = found[np.argsort(first)] if ids is None else _ints(where, "env_id", ids)
    ranks = np.argsort(ids, kind="stable")
    if not np.array_equal(ids[ranks], found):
        raise APIUsageError(
            f"{where}: players.env_id must name the environments of env_id, {ids[:8].tolist()}, each once, got "
            f"{found[:8].tolist()}"
        )
    return np.argsort(ranks[place], kind="stable"), ids
