"""Conversion of actions, observations and infos between environments and the arrays of a batch."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Tuple

from pufferlib.actions import action_array, action_bounds
from pufferlib.buffers import Array
from pufferlib.emulation.dtypes import children_of, is_variable
from pufferlib.envpool.workers.options import INFO, PLAYERS
from pufferlib.errors import APIUsageError
from pufferlib.native._actions import ActionRows
from pufferlib.spaces import MixedBox, Space, action_spec

__all__ = [
    "ActionReader",
    "FinalInfo",
    "InfoWriter",
    "array_space",
    "channels_first",
    "final_info_arrays",
    "masked_arrays",
    "merge_infos",
    "unflatten",
]


class ActionReader:
    """Conversion of actions to arrays with the dtype of their space.

    As in EnvPool, real numbers outside the bounds of a Box are passed to the environment, which clips them.

    Args:
        where: Prefix of error messages.
        space: Action space of one agent.
        batch_rows: Number of agents per batch. Actions of a whole batch take a fast path.
    """

    def __init__(self, where: str, space: Space, batch_rows: int) -> None:
        self._where, self._space = f"{where}.send", space
        self._shape, dtype = action_spec(space)
        self._dtype = np.dtype(dtype)
        self._is_real = self._dtype.kind == "f"
        self._low, self._high = action_bounds(space)
        is_simple = not isinstance(space, MixedBox)
        self._batch_rows, self._read_batch = (
            batch_rows,
            _BatchReader(self._read, batch_rows, *self._limits(), is_simple),
        )

    def _limits(self) -> tuple[Array, Array]:
        """Return the smallest and largest numbers of one agent's action that the fast path accepts."""
        limits = np.finfo(self._dtype) if self._is_real else np.iinfo(self._dtype)
        bounds = (limits.min, limits.max) if self._is_real else np.clip((self._low, self._high), limits.min, limits.max)
        low, high = (np.broadcast_to(bound, self._shape).astype(self._dtype) for bound in bounds)
        return low, high

    def read(self, actions: Any, rows: int) -> Array:
        """Return ``actions`` as a C-contiguous array ``(rows, *action_shape)``. The array may be reused.

        Raises:
            APIUsageError: The shape is different, or the actions are not finite numbers, or not integers in range in a
                space of integers.
        """
        return self._read_batch(actions) if rows == self._batch_rows else self._read(actions, rows)

    def _read(self, actions: Any, rows: int) -> Array:
        array = action_array(self._where, actions)
        if array.shape != (rows, *self._shape):
            raise APIUsageError(
                f"{self._where}: actions must have shape {(rows, *self._shape)}, one row for each environment and "
                f"player, got {array.shape}"
            )
        if array.dtype.kind not in "biuf":
            raise APIUsageError(f"{self._where}: actions must be numbers, got dtype {array.dtype}; convert them")
        fits = np.isfinite(array) if self._is_real else (array >= self._low) & (array <= self._high)
        if not self._is_real and array.dtype.kind == "f":
            fits &= array == np.floor(array)
        if isinstance(self._space, MixedBox):
            is_whole = (array == np.floor(array)) & (array >= self._low) & (array <= self._high)
            fits &= is_whole | ~self._space.is_integer
        if not fits.all():
            row = int(np.argwhere(~fits)[0][0])
            numbers = "finite numbers" if self._is_real else "whole numbers"
            raise APIUsageError(
                f"{self._where}: actions must be {numbers} of the action space {self._space}, got "
                f"{array[row].tolist()} in row {row}; look at the policy"
            )
        return np.ascontiguousarray(array, self._dtype)


class _BatchReader(ActionRows):
    """Fast path for the actions of a batch. Other types of actions are passed to ``read(actions, rows)``.

    Args:
        read: Function that reads actions of any type.
        rows: Number of agents.
        low: Smallest numbers of one agent's action.
        high: Largest numbers of one agent's action.
        is_simple: Whether there is a fast path.
    """

    def __init__(self, read: Callable[[Any, int], Array], rows: int, low: Array, high: Array, is_simple: bool) -> None:
        self._read, self._rows = read, rows
        low, high = (np.array(np.broadcast_to(bound, (rows, *bound.shape)), order="C") for bound in (low, high))
        super().__init__(low, high, is_simple)

    def _convert(self, actions: Any) -> Array:
        return self._read(actions, self._rows)


def array_space(space: Space, dtype: np.dtype[Any]) -> Space:
    """Return ``space`` with each part that is not an array (Text, Sequence, Graph, OneOf) as a Dict of arrays.

    Args:
        space: Space of one observation.
        dtype: Dtype of one observation row, with a field for each part.
    """
    children = children_of(space)
    if children is not None:
        parts: dict[Any, Space] = {key: array_space(child, dtype[field]) for key, field, child in children}
        return Tuple(list(parts.values())) if isinstance(space, Tuple) else Dict(OrderedDict(parts))
    return _array_space_of(dtype) if is_variable(space) else space


def _array_space_of(dtype: np.dtype[Any]) -> Space:
    if dtype.names is not None:
        return Dict(OrderedDict((name, _array_space_of(dtype[name])) for name in dtype.names))
    base: Any = dtype.base.type
    is_real = dtype.base.kind == "f"
    low, high = (-np.inf, np.inf) if is_real else (np.iinfo(base).min, np.iinfo(base).max)
    return Box(low, high, dtype.shape, base)


def channels_first(space: Space) -> Box:
    """Return the Box of images ``(channels, height, width)`` for a Box of images ``(height, width, channels)``."""
    assert isinstance(space, Box)
    low, high = space.low.transpose(2, 0, 1), space.high.transpose(2, 0, 1)
    return Box(low, high, low.shape, np.dtype(space.dtype).type)


def unflatten(rows: Array, space: Space, dtype: np.dtype[Any]) -> Any:
    """Return views of ``rows``, in dicts and tuples like ``space``.

    Args:
        rows: Array ``(count, *flat_shape)``, C-contiguous.
        space: Return value of ``array_space``.
        dtype: Dtype of one row.

    Returns:
        Array ``(count, *shape)`` for each part.
    """
    if dtype.names is None:
        return rows.reshape(len(rows), *(space.shape or ()))
    return _unflatten_parts(rows.reshape(len(rows), -1).view(dtype)[:, 0], space)


def _unflatten_parts(rows: Array, space: Space) -> Any:
    names = rows.dtype.names or ()
    if isinstance(space, Tuple):
        return tuple(_unflatten_parts(rows[name], child) for name, child in zip(names, space.spaces, strict=True))
    if isinstance(space, Dict):
        # Fields have the order of the space. Their names are the keys as text.
        return {
            key: _unflatten_parts(rows[name], child)
            for (key, child), name in zip(space.spaces.items(), names, strict=True)
        }
    return rows


Info = Mapping[str, Any]

_POOL_INFOS = {"env_id", "players", "elapsed_step", "final_obs", "_final_obs", "final_info", "_final_info"}


class FinalInfo(NamedTuple):
    """Infos of the step that ended an episode.

    Attributes:
        elapsed_step: Number of steps in the episode.
        declared: Infos with an array, as arrays with one row for the environment or one for each agent.
        other: All other infos.
    """

    elapsed_step: int
    declared: Mapping[str, Array]
    other: Info


def merge_infos(infos: Sequence[Info]) -> Info:
    """Return all ``infos`` as one. If a name is repeated, the last value is used."""
    if len(infos) == 1:
        return infos[0]
    return {name: value for info in infos for name, value in info.items()}


class InfoWriter:
    """Writer of infos that have an array.

    Args:
        arrays: Arrays by name, with the prefix ``INFO``. They have a row for each environment of a worker, or for each
            agent.
        sources: Names that environments use for some infos, where they differ from the names of the arrays.
        agents: Names of the agents of each environment, as keys of their infos. Empty if there is a single agent.

    Attributes:
        has_arrays: Whether there are any arrays.
    """

    def __init__(
        self, arrays: Mapping[str, Array], sources: Mapping[str, str], agents: Sequence[Sequence[Any]]
    ) -> None:
        self._agents = agents
        self._names = {name.removeprefix(INFO) for name in arrays}
        named = [(name.removeprefix(INFO), array) for name, array in arrays.items()]
        self._env_arrays = [(name, sources.get(name), array) for name, array in named if not name.startswith(PLAYERS)]
        self._agent_arrays = [
            (name, name.removeprefix(PLAYERS), array) for name, array in named if name.startswith(PLAYERS)
        ]
        self.has_arrays = bool(arrays)

    def write(self, position: int, info: Info) -> Info:
        """Write the infos of one environment into the arrays, 0 for missing ones. Return the infos without an array.

        Raises:
            APIUsageError: A value does not fit its array.
        """
        for name, source, array in self._env_arrays:
            _write_env_info(name, source, array, position, info)
        for name, key, array in self._agent_arrays:
            agents = self._agents[position]
            _write_agent_infos(name, key, array, position * len(agents), agents, info)
        return self._other(info)

    def read(self, position: int, info: Info) -> tuple[dict[str, Array], Info]:
        """Return the infos that have arrays, as new arrays, and the infos without an array.

        Raises:
            APIUsageError: A value does not fit its array.
        """
        agents = self._agents[position]
        found = {name: np.zeros((1, *array.shape[1:]), array.dtype) for name, _, array in self._env_arrays}
        for name, source, _ in self._env_arrays:
            _write_env_info(name, source, found[name], 0, info)
        for name, key, array in self._agent_arrays:
            found[name] = np.zeros((len(agents), *array.shape[1:]), array.dtype)
            _write_agent_infos(name, key, found[name], 0, agents, info)
        return found, self._other(info)

    def _other(self, info: Info) -> Info:
        if info.keys() <= self._names:
            return {}
        return {name: value for name, value in info.items() if name not in self._names}


def _write_env_info(name: str, source: str | None, array: Array, row: int, info: Info) -> None:
    value = info.get(name)
    if value is None and source is not None:
        value = info.get(source)
    _write(name, array, row, value)


def _write_agent_infos(name: str, key: str, array: Array, first: int, agents: Sequence[Any], info: Info) -> None:
    for place, agent in enumerate(agents):
        _write(name, array, first + place, (info.get(agent) or {}).get(key))


def _write(name: str, array: Array, row: int, value: Any) -> None:
    try:
        array[row] = 0 if value is None else value
    except (TypeError, ValueError) as error:
        raise APIUsageError(
            f"envpool: info {name!r} must be {array.dtype} of shape {array.shape[1:]}, got {value!r:.80}; declare "
            "another space for it, or none"
        ) from error


def masked_arrays(count: int, infos: Mapping[int, Info]) -> dict[str, Array]:
    """Return infos without a declared array in the format of Gymnasium's vector environments.

    Args:
        count: Number of environments in the batch.
        infos: Infos by position in the batch.

    Returns:
        Arrays by name, with a row for each environment. They are numeric if all values are numbers or arrays of one
        shape, otherwise of dtype object. The name after "_" is the bool mask of the environments that reported the
        info. If a name equals one of the pool's own infos, it gets the prefix "env.".
    """
    values: dict[str, dict[int, Any]] = {}
    for place, info in infos.items():
        for key, value in info.items():
            name = str(key)
            is_taken = name in _POOL_INFOS or name.startswith(PLAYERS)
            values.setdefault(f"env.{name}" if is_taken else name, {})[place] = value
    arrays: dict[str, Array] = {}
    for name, given in values.items():
        places = list(given)
        arrays[name] = _stack_values(count, places, list(given.values()))
        arrays[f"_{name}"] = np.zeros(count, bool)
        arrays[f"_{name}"][places] = True
    return arrays


def _stack_values(count: int, places: list[int], values: list[Any]) -> Array:
    try:
        rows = np.array(values)
    except ValueError:  # ragged values
        rows = np.array(None)
    if rows.dtype.kind in "biufc" and rows.shape[:1] == (len(values),):
        found = np.zeros((count, *rows.shape[1:]), rows.dtype)
        found[places] = rows
        return found
    found = np.full(count, None, object)
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found


def final_info_arrays(count: int, infos: Mapping[int, FinalInfo]) -> dict[str, Array]:
    """Return the last infos of the episodes that ended in a batch, in the format of ``masked_arrays``.

    ``elapsed_step`` is the length of the episodes. Rows of other environments are 0.
    """
    arrays = {"elapsed_step": np.zeros(count, np.int32)}
    for place, info in infos.items():
        arrays["elapsed_step"][place] = info.elapsed_step
        for name, rows in info.declared.items():
            if name not in arrays:
                arrays[name] = np.zeros((count * len(rows), *rows.shape[1:]), rows.dtype)
            arrays[name][place * len(rows) :][: len(rows)] = rows
    mask = np.zeros(count, bool)
    mask[list(infos)] = True
    masks = {f"_{name}": mask.copy() for name in arrays if not name.startswith(PLAYERS)}
    return arrays | masks | masked_arrays(count, {place: info.other for place, info in infos.items()})
