"""Actions and ids as callers give them: arrays, lists or a dict, checked and made into what a pool takes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from pufferlib.actions import action_array
from pufferlib.buffers import Array
from pufferlib.envpool.pool import Ids, PoolSpec
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.spaces import Space, action_spec

__all__ = ["ActionInput"]

_KEYS = ("action", "env_id", "players", "players.env_id")


class ActionInput:
    """Reads the arguments of ``step``, ``send`` and ``reset``.

    Args:
        where: Begins the messages of errors.
        spec: Of the pool.
        num_envs: Environments of the pool.
    """

    def __init__(self, where: str, spec: PoolSpec, num_envs: int) -> None:
        self._where, self._num_envs, self._players = where, num_envs, spec.num_players
        self._values = _Values(where, spec.action_space)

    def ids(self, env_id: Any, name: str = "env_id") -> Ids:
        """``env_id`` as an array, int32 ``(n,)``.

        Raises:
            APIUsageError: It has no ints, one that is no environment, one twice, or none at all.
        """
        array = self.id_array(env_id, name)
        counts = np.bincount(array, minlength=self._num_envs)
        if counts.max() > 1:
            twice = np.flatnonzero(counts > 1)[:8].tolist()
            raise APIUsageError(f"{self._where}: {name} must name each environment once, got {twice} more than once")
        return array

    def read(self, action: Any, env_id: Any) -> tuple[Array, Ids | None]:
        """Actions and the ids of their environments, None where the caller has not said.

        Args:
            action: An array or list with a row for each environment, or player; or a dict with "action", "env_id" and
                "players.env_id" or "players": {"env_id"}, the last with the environment of each row.
            env_id: Environments, in the order of the rows.

        Raises:
            APIUsageError: Wrong shape, dtype or value; wrong ids; unknown keys.
        """
        player_env_id = None
        if isinstance(action, Mapping):
            action, env_id, player_env_id = self._from_dict(action, env_id)
        ids = None if env_id is None else self.ids(env_id)
        values = self._values(action)
        if player_env_id is not None:
            order, ids = self._by_env(self.id_array(player_env_id, "players.env_id"), ids)
            self._check_rows(values, len(order))
            return values[order], ids
        if ids is not None:
            self._check_rows(values, len(ids) * self._players)
        return values, ids

    def _check_rows(self, values: Array, rows: int) -> None:
        if len(values) != rows:
            raise APIUsageError(
                f"{self._where}: actions must have one row for each environment{' and player' * (self._players > 1)} "
                f"that is sent to, {rows} in all, got {len(values)}"
            )

    def _from_dict(self, action: Mapping[str, Any], env_id: Any) -> tuple[Any, Any, Any]:
        for key in action:
            if key not in _KEYS:
                raise UnknownNameError.of(self._where, "key of an action", key, _KEYS)
        if "action" not in action:
            raise APIUsageError(f'{self._where}: a dict of actions must have the key "action", got {list(action)}')
        players = action.get("players", {})
        if not isinstance(players, Mapping) or players.keys() - {"env_id"}:
            raise APIUsageError(f'{self._where}: "players" must be {{"env_id": array}}, got {players!r:.80}')
        if "env_id" in action and env_id is not None:
            raise APIUsageError(f"{self._where}: env_id must be given once, got it as an argument and in the dict")
        own = action.get("env_id", env_id)
        return action["action"], own, action.get("players.env_id", players.get("env_id"))

    def id_array(self, env_id: Any, name: str) -> Ids:
        """``env_id`` as an array, int32 ``(n,)``, in which some may be more than once.

        Raises:
            APIUsageError: It has no ints, one that is no environment, or none at all.
        """
        try:
            array = np.asarray(env_id) if isinstance(env_id, list | tuple | range | np.ndarray) else None
        except ValueError:  # rows of several lengths
            array = None
        if array is None or array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
            raise APIUsageError(
                f"{self._where}: {name} must be a sequence of ints from 0 to {self._num_envs - 1}, got {env_id!r:.80}"
            )
        wrong = array[(array < 0) | (array >= self._num_envs)]
        if len(wrong):
            raise APIUsageError(
                f"{self._where}: {name} must have ints from 0 to {self._num_envs - 1}, got {wrong[:8].tolist()}"
            )
        return array.astype(np.int32)

    def _by_env(self, player_env_id: Ids, ids: Ids | None) -> tuple[Array, Ids]:
        """Order in which rows stand together by environment, and these, by ``ids`` or else as they appear."""
        found, first, counts = np.unique(player_env_id, return_index=True, return_counts=True)
        if (counts != self._players).any():
            wrong = found[counts != self._players][:8].tolist()
            raise APIUsageError(
                f"{self._where}: players.env_id must name each environment {self._players} times, once for each of its "
                f"players, which is not so for {wrong}"
            )
        if ids is None:
            ids = found[np.argsort(first)]
        if len(ids) != len(found) or (np.sort(ids) != found).any():
            raise APIUsageError(
                f"{self._where}: players.env_id must name the environments of env_id, {ids[:8].tolist()}, got "
                f"{found[:8].tolist()}"
            )
        place = np.zeros(self._num_envs, np.intp)
        place[ids] = np.arange(len(ids))
        return np.argsort(place[player_env_id], kind="stable"), ids


class _Values:
    """Makes actions an array of the dtype of their space, and checks each.

    Args:
        where: Begins the messages of errors.
        space: Of one action.
    """

    def __init__(self, where: str, space: Space) -> None:
        self._where, self._space = where, space
        self._shape, dtype = action_spec(space)
        self._dtype = np.dtype(dtype)
        self._is_box = isinstance(space, Box)
        start: Any = getattr(space, "start", 0)
        count: Any = space.n if isinstance(space, Discrete) else getattr(space, "nvec", 2)
        self._low, self._high = start, start + count - 1

    def __call__(self, actions: Any) -> Array:
        """``actions`` as a new array ``(rows, *shape)``.

        Raises:
            APIUsageError: Another shape or dtype; numbers that are not finite, or for a space of whole numbers none of
                it. What a Box does with numbers beyond its bounds is part of the rules of an environment.
        """
        array = action_array(self._where, actions)
        if array.ndim < 1 or array.shape[1:] != self._shape:
            raise APIUsageError(
                f"{self._where}: actions must have the shape (rows, {', '.join(map(str, self._shape))}), one row for "
                f"each environment or player, got {array.shape}"
            )
        if array.dtype.kind not in "biuf":
            raise APIUsageError(
                f"{self._where}: actions must be numbers that fit {self._dtype}, got dtype {array.dtype}"
            )
        if self._is_box:
            with np.errstate(over="ignore"):  # a number that is too large is what is looked for
                values = array.astype(self._dtype, order="C")
            self._check(array, np.isfinite(values) if self._dtype.kind == "f" else values == array)
            return values
        fits = (array >= self._low) & (array <= self._high)
        self._check(array, fits & (array == np.floor(array)) if array.dtype.kind == "f" else fits)
        return array.astype(self._dtype, order="C")

    def _check(self, array: Array, fits: Any) -> None:
        if not fits.all():
            row = int(np.argwhere(~fits)[0][0])
            allowed = "finite numbers" if self._is_box else f"whole numbers in the action space {self._space}"
            raise APIUsageError(
                f"{self._where}: actions must be {allowed}, got {array[row].tolist()} in row {row}; look at the policy"
            )
