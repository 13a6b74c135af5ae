"""Infos of environments: those that have an array, and any others as arrays with masks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.envpool.workers.options import INFO, PLAYERS
from pufferlib.errors import APIUsageError

__all__ = ["InfoWriter", "merged", "other_arrays"]

Info = Mapping[str, Any]

_OF_POOLS = {"env_id", "players", "elapsed_step", "final_obs", "_final_obs"}


def merged(infos: Sequence[Info]) -> Info:
    """All of ``infos`` as one; the last of the same name counts."""
    if len(infos) == 1:
        return infos[0]
    return {name: value for info in infos for name, value in info.items()}


class InfoWriter:
    """Writes the infos that have an array into it.

    Args:
        arrays: By name, ``INFO`` before each: a row for each environment of a worker, or for each agent.
        sources: Names that environments have for some of them, where they do not know the name of the array.
        agents: For each environment their names, as infos of single agents have them; () where there is one.

    Attributes:
        has_arrays: Whether there is any to write.
    """

    def __init__(
        self, arrays: Mapping[str, Array], sources: Mapping[str, str], agents: Sequence[Sequence[Any]]
    ) -> None:
        self._agents = agents
        self._names = {name.removeprefix(INFO) for name in arrays}
        named = [(name.removeprefix(INFO), array) for name, array in arrays.items()]
        self._of_envs = [(name, sources.get(name), array) for name, array in named if not name.startswith(PLAYERS)]
        self._of_agents = [
            (name, name.removeprefix(PLAYERS), array) for name, array in named if name.startswith(PLAYERS)
        ]
        self.has_arrays = bool(arrays)

    def write(self, position: int, info: Info) -> Info:
        """Write ``info`` of one environment, 0 for what it lacks. Returns what has no array.

        Raises:
            APIUsageError: A value does not fit its array.
        """
        for name, source, array in self._of_envs:
            value = info.get(name)
            if value is None and source is not None:
                value = info.get(source)
            _write(name, array, position, value)
        for name, key, array in self._of_agents:
            agents = self._agents[position]
            first = position * len(agents)
            for place, agent in enumerate(agents):
                _write(name, array, first + place, (info.get(agent) or {}).get(key))
        if info.keys() <= self._names:
            return {}
        return {name: value for name, value in info.items() if name not in self._names}


def _write(name: str, array: Array, row: int, value: Any) -> None:
    try:
        array[row] = 0 if value is None else value
    except (TypeError, ValueError) as error:
        raise APIUsageError(
            f"envpool: info {name!r} must be {array.dtype} of shape {array.shape[1:]}, got {value!r:.80}; declare "
            "another space for it, or none"
        ) from error


def other_arrays(count: int, infos: Mapping[int, Info]) -> dict[str, Array]:
    """Infos of some environments of a batch, as Gymnasium's vector environments have them.

    Args:
        count: Environments in the batch.
        infos: By the place in it.

    Returns:
        By name an array with a row for each environment: of numbers where all are numbers or arrays of one shape, else
        of objects; and bool, under the name after "_", which of them gave one. Where a name is one of the pool's own
        infos, "env." is before it.
    """
    values: dict[str, dict[int, Any]] = {}
    for place, info in infos.items():
        for key, value in info.items():
            name = str(key)
            is_taken = name in _OF_POOLS or name.startswith(PLAYERS)
            values.setdefault(f"env.{name}" if is_taken else name, {})[place] = value
    arrays: dict[str, Array] = {}
    for name, given in values.items():
        places = list(given)
        arrays[name] = _stacked(count, places, list(given.values()))
        arrays[f"_{name}"] = np.zeros(count, bool)
        arrays[f"_{name}"][places] = True
    return arrays


def _stacked(count: int, places: list[int], values: list[Any]) -> Array:
    try:
        rows = np.array(values)
    except ValueError:  # of several shapes
        rows = np.array(None)
    if rows.dtype.kind in "biufc" and rows.shape[:1] == (len(values),):
        found = np.zeros((count, *rows.shape[1:]), rows.dtype)
        found[places] = rows
        return found
    found = np.full(count, None, object)
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found
