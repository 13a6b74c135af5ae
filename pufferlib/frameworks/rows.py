"""Functions of the adapters that show each row of a batch as an environment of its own."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space
from pufferlib.vector.vector_env import VectorEnv

__all__ = [
    "check_rows",
    "columns_of",
    "frames_of",
    "observations_of",
    "resets_some",
    "row_of",
    "rows_per_game",
    "whole_envs",
]

_LEAVES = (Discrete, MultiDiscrete, MultiBinary, Box)


def resets_some(vecenv: Any) -> bool:
    """Return whether single environments, or games of a native environment, can be reset and seeded."""
    # Wrappers such as VectorProxy report the class of the wrapped environment.
    return "env_ids" in inspect.signature(vecenv.__class__.reset).parameters


def rows_per_game(vecenv: Any) -> int:
    """Return the number of agents of each environment, or of each game of a native environment."""
    return int(vecenv.num_agents) // int(vecenv.num_envs)


def check_rows(where: str, vecenv: Any) -> None:
    """Check that each row of a batch can be treated as an environment of its own.

    Raises:
        APIUsageError: ``vecenv`` is not a vector environment, batches hold only some of the agents, or environments
            have agents that come and go.
    """
    if not hasattr(vecenv, "agents_per_batch"):
        raise APIUsageError(
            f"{where}: must be a vector environment of pufferlib.make with num_envs, or of pufferlib.vector.make, got "
            f"{type(vecenv).__name__}; call pufferlib.make(NAME, num_envs=..., autoreset=...)"
        )
    if vecenv.agents_per_batch != vecenv.num_agents:
        raise APIUsageError(
            f"{where}: a batch must have all {vecenv.num_agents} agents, got batches of {vecenv.agents_per_batch}; "
            "make it without batch_size"
        )
    if vecenv.emulated and vecenv.num_agents != vecenv.num_envs:
        raise APIUsageError(
            f"{where}: an environment must have one agent, got {rows_per_game(vecenv)} that come and "
            "go in a PettingZoo environment, which Gymnasium's interface does not support; use the vector environment "
            "without it"
        )


def whole_envs(where: str, name: str, rows: npt.NDArray[np.bool_], rows_per_env: int) -> npt.NDArray[np.bool_]:
    """Convert a mask of rows, bool ``(num_envs,)``, to a mask of environments.

    Raises:
        APIUsageError: The mask holds some rows of an environment, but not all of them.
    """
    by_env = rows.reshape(-1, rows_per_env)
    if (by_env.any(1) != by_env.all(1)).any():
        raise APIUsageError(
            f"{where}: {name} must have all {rows_per_env} rows of an environment or none, since it "
            f"resets them together, got {rows!r:.80}; give one game to each environment"
        )
    return np.asarray(by_env.any(1))


def observations_of(where: str, vecenv: Any) -> tuple[Space, Callable[[Array], Any] | None]:
    """Return the space of one observation, and a function that converts rows to observations of this space.

    The function is None if no conversion is needed.

    Raises:
        APIUsageError: The space has a part without a fixed shape.
    """
    flat: Space = vecenv.single_observation_space
    if not vecenv.emulated:
        return flat, None
    (space,) = vecenv.get_attr("observation_space", env_ids=0)
    if isinstance(space, Box):
        return flat, None
    _check_leaves(where, space, "observation")
    dtype = vecenv.driver_env.obs_dtype
    return space, lambda rows: _restored(space, rows.view(dtype)[:, 0] if dtype.names else rows)


def _check_leaves(where: str, space: Space, name: str) -> None:
    if isinstance(space, Dict | Tuple):
        for key, child in space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces):
            _check_leaves(where, child, f"{name}[{key!r}]")
    elif not isinstance(space, _LEAVES):
        raise APIUsageError(
            f"{where}: observations must be made of Box, Discrete, MultiDiscrete and MultiBinary, got {space} as "
            f"{name}; wrap the environment so that it returns arrays of a fixed shape"
        )


def _restored(space: Space, rows: Any) -> Any:
    """Convert structured ``rows`` of an emulated environment to dicts and tuples of arrays, as ``space`` defines."""
    if isinstance(space, Dict):
        return {key: _restored(child, rows[str(key)]) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        names = rows.dtype.names
        return tuple(_restored(child, rows[name]) for name, child in zip(names, space.spaces, strict=True))
    return rows.reshape(len(rows), *(space.shape or ())).astype(space.dtype, copy=False)


def frames_of(vecenv: Any) -> list[Any]:
    """Return what ``render`` returns for each row of a vector environment.

    A native environment renders the game of the row. If the game has several agents, the agent of the row is marked. If
    its ``render`` has no ``env_index``, one frame is used for all rows.
    """
    if isinstance(vecenv, VectorEnv):
        return [frame for frame in vecenv.call("render") for _ in range(rows_per_game(vecenv))]
    num_rows = int(vecenv.num_agents)
    if "env_index" not in inspect.signature(vecenv.render).parameters:
        return list(vecenv.call("render")) * num_rows
    agents = rows_per_game(vecenv)
    return [vecenv.render(row // agents, row % agents if agents > 1 else None) for row in range(num_rows)]


def columns_of(num_rows: int, infos: Iterable[tuple[int, Mapping[Any, Any]]]) -> dict[str, Any]:
    """Group infos of some rows by key, with masks, as ``gymnasium.vector.VectorEnv`` does.

    If the values of a key have several types, they are kept. Gymnasium would convert them to the type of the first.
    """
    by_key: dict[Any, dict[int, Any]] = {}
    for row, info in infos:
        for key, value in info.items():
            by_key.setdefault(key, {})[row] = value
    found: dict[str, Any] = {}
    for key, values in by_key.items():
        mask = np.zeros(num_rows, bool)
        mask[list(values)] = True
        are_dicts = all(isinstance(value, dict) for value in values.values())
        found[key] = columns_of(num_rows, values.items()) if are_dicts else _column(num_rows, values)
        found[f"_{key}"] = mask
    return found


def _column(num_rows: int, values: Mapping[int, Any]) -> Array:
    """Return the values by row as one array, of numbers, of arrays with one shape, or of objects."""
    kinds = {type(value) for value in values.values()}
    if len(kinds) > 1 and np.ndarray in kinds:  # 0-d arrays are treated as numbers
        values = {row: value[()] if isinstance(value, np.ndarray) else value for row, value in values.items()}
        kinds = {type(value) for value in values.values()}
    if kinds == {np.ndarray}:
        shapes = {value.shape for value in values.values()}
        dtype, shape = _common_dtype({value.dtype for value in values.values()}), shapes.pop()
        is_object = bool(shapes) or dtype.hasobject
    else:
        are_numbers = all(kind in (bool, int, float) or issubclass(kind, np.number) for kind in kinds)
        dtype, shape = _common_dtype(kinds) if are_numbers else np.dtype(object), ()
        is_object = dtype.hasobject
    if not is_object:
        column = np.zeros((num_rows, *shape), dtype)
        try:
            for row, value in values.items():
                column[row] = value
        except OverflowError:  # a Python int that fits no dtype
            pass
        else:
            return column
    column = np.full(num_rows, None, object)
    for row, value in values.items():
        column[row] = value
    return column


def _common_dtype(kinds: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype that holds all numbers of these types or dtypes exactly, or object if there is none."""
    dtypes = {np.dtype(kind) for kind in kinds}
    try:
        dtype: np.dtype[Any] = np.result_type(*dtypes)
    except TypeError:
        return np.dtype(object)
    is_exact = dtype.kind != "f" or any(each.kind == "f" for each in dtypes)  # uint64 and int64 become float64
    return dtype if is_exact else np.dtype(object)


def row_of(observations: Any, row: int) -> Any:
    """Return one observation of a batch, whose observations may be dicts or tuples of arrays."""
    if isinstance(observations, dict):
        return {key: row_of(value, row) for key, value in observations.items()}
    if isinstance(observations, tuple):
        return tuple(row_of(value, row) for value in observations)
    return observations[row]
