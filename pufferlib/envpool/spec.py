"""Specs of tasks: their spaces, and the specs of their arrays in the formats of EnvPool and dm_env."""

import keyword
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from pufferlib.envpool.config import backend_config, checked_config, pool_seeds
from pufferlib.envpool.pool import PLAYERS, PoolSpec, PoolTask
from pufferlib.envpool.wrappers import pixel_spec, stack_spec
from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.spaces import Space

__all__ = ["DISCOUNT", "ArraySpec", "StateType", "TaskSpec", "array_spec", "dm_spec", "import_dm_env"]


@dataclass(frozen=True, eq=False)
class ArraySpec:
    """Spec of one array of a batch, without the batch dimension.

    Attributes:
        dtype: Dtype of the array.
        shape: Shape of one row. It starts with -1 if there is a row for each player.
        minimum: Smallest value, a number or an array with one number per element.
        maximum: Largest value, a number or an array with one number per element.
        is_discrete: Whether the values are categories, numbered from ``minimum`` to ``maximum``.
    """

    dtype: type
    shape: list[int]
    minimum: Any
    maximum: Any
    is_discrete: bool = False


def array_spec(space: Space, discrete_dtype: Any = None) -> ArraySpec:
    """Return the spec of the array that holds a sample of ``space``.

    Raises:
        APIUsageError: The space is not a Box, Discrete, MultiDiscrete or MultiBinary.
    """
    shape = list(space.shape or ())
    dtype: Any = np.dtype(space.dtype).type
    if isinstance(space, Box):
        return ArraySpec(dtype, shape, _bound(space.low), _bound(space.high))
    if isinstance(space, Discrete):
        last = int(space.start + space.n - 1)
        return ArraySpec(discrete_dtype or dtype, shape, int(space.start), last, is_discrete=True)
    if isinstance(space, MultiDiscrete):
        return ArraySpec(discrete_dtype or dtype, shape, space.start, space.start + space.nvec - 1)
    if isinstance(space, MultiBinary):
        return ArraySpec(dtype, shape, 0, 1)
    raise APIUsageError(
        f"envpool: spaces must be made of Box, Discrete, MultiDiscrete and MultiBinary, got {space!r}; wrap the "
        "environment so that it shows arrays of one length"
    )


def _bound(bounds: Any) -> Any:
    """Return one number if all elements have the same bound, as EnvPool does. Otherwise return ``bounds``."""
    return bounds.flat[0].item() if bounds.size and (bounds == bounds.flat[0]).all() else bounds


DISCOUNT = "discount"  # info that becomes the discount of the time step

_IDS = ("env_id", "players")
MAX_DISCRETE_VALUES = 2**20  # as in EnvPool. An int with more values becomes a BoundedArray.


class StateType:
    """Namedtuple type of dm_env observations: ids, then the observation and the infos.

    A dict observation has a field for each key. Any other observation is the field ``obs``, or ``pixels`` for images.
    Infos of players are in ``players``. An info is left out if its name is not a valid field name or is already taken.

    Args:
        pool_spec: Spec of the pool.
        from_pixels: Whether observations are images.
    """

    def __init__(self, pool_spec: PoolSpec, from_pixels: bool) -> None:
        space = pool_spec.observation_space
        keys = tuple(space.spaces) if isinstance(space, Dict) else ()
        self._keys = keys if all(_is_field(key) and key not in _IDS for key in keys) else ()
        fields = self._keys or ("pixels" if from_pixels else "obs",)
        names = list(pool_spec.info_spaces)
        player_infos = [name.removeprefix(PLAYERS) for name in names if name.startswith(PLAYERS)]
        self._player_infos = [name for name in player_infos if _is_field(name) and name != "env_id"]
        self._infos = [name for name in names if _is_field(name) and name not in (*_IDS, *fields, DISCOUNT)]
        self._players: Any = namedtuple("players", ["env_id", *self._player_infos])  # type: ignore[misc]
        self._state: Any = namedtuple("State", [*_IDS, *fields, *self._infos])  # type: ignore[misc]

    def __call__(self, env_id: Any, player_env_id: Any, observation: Any, infos: Mapping[str, Any]) -> Any:
        """Return a namedtuple of values, or of their specs."""
        players = self._players(player_env_id, *(infos[PLAYERS + name] for name in self._player_infos))
        observed = [observation[key] for key in self._keys] or [observation]
        return self._state(env_id, players, *observed, *(infos[name] for name in self._infos))


def _is_field(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def import_dm_env() -> Any:
    """Import and return dm_env.

    Raises:
        BindingMissing: It is not installed.
    """
    try:
        import dm_env
        import dm_env.specs
    except ImportError as error:
        raise BindingMissing(
            f'envpool: env_type="dm" and specs of dm_env need the package dm_env; {way_to_install("dm")}, or take '
            'env_type="gymnasium"'
        ) from error
    return dm_env


def dm_spec(space: Space, name: str, discrete_dtype: Any = None) -> Any:
    """Return the dm_env spec of ``space``. A Dict or Tuple space gives a dict or tuple of specs."""
    if isinstance(space, Dict):
        return {key: dm_spec(child, key, discrete_dtype) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(dm_spec(child, f"{name}.{i}", discrete_dtype) for i, child in enumerate(space.spaces))
    spec, specs = array_spec(space, discrete_dtype), import_dm_env().specs
    is_one = not spec.shape and np.issubdtype(spec.dtype, np.integer)
    if is_one and spec.minimum == 0 and spec.maximum < MAX_DISCRETE_VALUES:
        return specs.DiscreteArray(spec.maximum + 1, spec.dtype, name)
    return specs.BoundedArray(spec.shape, spec.dtype, spec.minimum, spec.maximum, name)


class TaskSpec:
    """Task with all its settings. ``make_spec`` returns it, and environments have it as ``spec``.

    Attributes:
        id: Id of the task.
        task: Task without settings.
        reward_threshold: Return at which the task counts as solved, or None.
        observation_space: Observation space of one environment, or of one player if there are several.
        action_space: Action space of one environment, or of one player if there are several.
        pool_spec: Spec of the pool, after all wrappers.
        frame_spec: Spec of the pool before observations are stacked.
        backend_spec: Spec of the pool before observations are replaced by images.

    Args:
        where: Prefix of error messages.
        task: Task.
        keywords: Keyword arguments given to ``make``.

    Raises:
        UnknownNameError: There is no such keyword argument.
        APIUsageError: A value has a wrong type or is out of range.
    """

    def __init__(self, where: str, task: PoolTask, keywords: Mapping[str, Any]) -> None:
        where = f"{where}({task.id!r})"
        config = checked_config(where, task, keywords)
        self.id, self.task, self._config = task.id, task, config
        spec = task.backend.describe(backend_config(config, pool_seeds(config)))
        config["max_num_players"] = _num_players(where, config["max_num_players"], spec.num_players)
        if config["reward_threshold"] is None:
            config["reward_threshold"] = spec.reward_threshold
        self.backend_spec = self.frame_spec = spec
        if config["from_pixels"]:
            self.frame_spec = pixel_spec(where, spec, config)
        self.pool_spec = self.frame_spec
        if config["frame_stack"] > 1:
            stack = config["frame_stack"]
            self.pool_spec = stack_spec(where, self.frame_spec, stack, on_channels=config["from_pixels"])
        self.reward_threshold: float | None = config["reward_threshold"]
        self.observation_space, self.action_space = self.pool_spec.observation_space, spec.action_space
        self.gymnasium_observation_space, self.gymnasium_action_space = self.observation_space, self.action_space

    @property
    def config(self) -> Any:
        """All keyword arguments as a namedtuple."""
        return _named("Config", self._config)

    def as_dict(self) -> dict[str, Any]:
        """Return all keyword arguments as a new dict."""
        return dict(self._config)

    @property
    def state_array_spec(self) -> dict[str, ArraySpec]:
        """Specs of the arrays of a batch, by name."""
        spec = self.pool_spec
        several = spec.num_players > 1
        specs = {
            "info:env_id": _INT32,
            "info:players.env_id": _per_player(_INT32),
            "elapsed_step": _INT32,
            "done": _BOOL,
            "reward": ArraySpec(np.float32, [-1], *_float_limits(np.float32)),
            "discount": ArraySpec(np.float32, [-1], 0.0, 1.0),
            "step_type": ArraySpec(np.int32, [], 0, 2, is_discrete=True),
            "trunc": _BOOL,
        }
        for name, space in _leaves(spec.observation_space, "obs"):
            specs[name] = _per_player(array_spec(space)) if several else array_spec(space)
        for name, space in spec.info_spaces.items():
            if name == DISCOUNT:
                continue
            found = array_spec(space)
            has_player_rows = name.startswith(PLAYERS) or not (several or found.shape)  # as in EnvPool
            specs[f"info:{name}"] = _per_player(found) if has_player_rows else found
        return specs

    @property
    def action_array_spec(self) -> dict[str, ArraySpec]:
        """Specs of the arrays in a dict of actions, by name."""
        action = _per_player(array_spec(self.action_space, np.int32))
        return {"env_id": _INT32, "players.env_id": _per_player(_INT32), "action": action}

    def observation_spec(self) -> Any:
        """Return a namedtuple with the dm_env specs of the fields of ``TimeStep.observation``.

        Raises:
            BindingMissing: dm_env is not installed.
        """
        infos = {name: dm_spec(space, name.rpartition(".")[2]) for name, space in self.pool_spec.info_spaces.items()}
        env_id = dm_spec(Box(-(2**31), 2**31 - 1, (), np.int32), "env_id")
        from_pixels = self._config["from_pixels"]
        observation = dm_spec(self.observation_space, "pixels" if from_pixels else "obs")
        return StateType(self.pool_spec, from_pixels)(env_id, env_id, observation, infos)

    def action_spec(self) -> Any:
        """Return the dm_env spec of the action of one environment, or of one player if there are several.

        Raises:
            BindingMissing: dm_env is not installed.
        """
        return dm_spec(self.action_space, "action", discrete_dtype=np.int32)

    @property
    def summary(self) -> str:
        """Id and all keyword arguments as text, for ``repr``."""
        return ", ".join([repr(self.id), *(f"{name}={value!r}" for name, value in self._config.items())])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary})"


def _num_players(where: str, given: int | None, num_players: int) -> int:
    if given is not None and given < num_players:
        raise APIUsageError(
            f"{where}: max_num_players must be at least {num_players}, as many as play in an environment, got {given}; "
            "leave it out"
        )
    return num_players


def _named(name: str, values: Mapping[str, Any]) -> Any:
    """Return a namedtuple of ``values``."""
    return namedtuple(name, values)(**values)


def _leaves(space: Space, name: str) -> Iterator[tuple[str, Space]]:
    """Yield the single-array spaces inside ``space`` with EnvPool's names for them, such as "obs" or "obs:key"."""
    if isinstance(space, Dict | Tuple):
        items = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        separator = "." if ":" in name else ":"
        for key, child in items:
            yield from _leaves(child, f"{name}{separator}{key}")
    else:
        yield name, space


def _per_player(spec: ArraySpec) -> ArraySpec:
    return ArraySpec(spec.dtype, [-1, *spec.shape], spec.minimum, spec.maximum, spec.is_discrete)


def _float_limits(dtype: Any) -> tuple[float, float]:
    return float(np.finfo(dtype).min), float(np.finfo(dtype).max)


_INT32 = ArraySpec(np.int32, [], -(2**31), 2**31 - 1)
_BOOL = ArraySpec(np.bool_, [], False, True)
