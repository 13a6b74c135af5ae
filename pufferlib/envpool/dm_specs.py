"""Specs of dm_env, and the namedtuple that its observations are here."""

import keyword
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Tuple

from pufferlib.envpool.array_spec import array_spec
from pufferlib.envpool.pool import PLAYERS, PoolSpec
from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.spaces import Space

__all__ = ["DISCOUNT", "StateType", "dm_spec", "import_dm_env"]

DISCOUNT = "discount"  # an info that becomes part of the time step

_IDS = ("env_id", "players")
_MOST_VALUES = 2**20  # of one whole number from 0 on, to be a DiscreteArray, as in EnvPool


class StateType:
    """The namedtuple that observations of dm_env are: ids, then the observation and the infos.

    An observation that is a dict has a field for each key, any other is the field ``obs``, or ``pixels`` if it is a
    picture. Infos of players are in ``players``. An info whose name cannot be a field, or is one already, is left out.

    Args:
        pool_spec: Of the pool.
        from_pixels: Observations are pictures.
    """

    def __init__(self, pool_spec: PoolSpec, from_pixels: bool) -> None:
        space = pool_spec.observation_space
        keys = tuple(space.spaces) if isinstance(space, Dict) else ()
        self._keys = keys if all(_is_field(key) and key not in _IDS for key in keys) else ()
        fields = self._keys or ("pixels" if from_pixels else "obs",)
        names = list(pool_spec.info_spaces)
        of_players = [name.removeprefix(PLAYERS) for name in names if name.startswith(PLAYERS)]
        self._of_players = [name for name in of_players if _is_field(name) and name != "env_id"]
        self._infos = [name for name in names if _is_field(name) and name not in (*_IDS, *fields, DISCOUNT)]
        self._players: Any = namedtuple("players", ["env_id", *self._of_players])  # type: ignore[misc]
        self._state: Any = namedtuple("State", [*_IDS, *fields, *self._infos])  # type: ignore[misc]

    def __call__(self, env_id: Any, player_env_id: Any, observation: Any, infos: Mapping[str, Any]) -> Any:
        """Put values, or their specs, into their fields."""
        players = self._players(player_env_id, *(infos[PLAYERS + name] for name in self._of_players))
        observed = [observation[key] for key in self._keys] or [observation]
        return self._state(env_id, players, *observed, *(infos[name] for name in self._infos))


def _is_field(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def import_dm_env() -> Any:
    """Import dm_env, for those who use its interface.

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
    """Spec of dm_env for ``space``; a dict or tuple of specs where it is one of spaces."""
    if isinstance(space, Dict):
        return {key: dm_spec(child, key, discrete_dtype) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(dm_spec(child, f"{name}.{i}", discrete_dtype) for i, child in enumerate(space.spaces))
    spec, specs = array_spec(space, discrete_dtype), import_dm_env().specs
    is_one = not spec.shape and np.issubdtype(spec.dtype, np.integer)
    if is_one and spec.minimum == 0 and spec.maximum < _MOST_VALUES:
        return specs.DiscreteArray(spec.maximum + 1, spec.dtype, name)
    return specs.BoundedArray(spec.shape, spec.dtype, spec.minimum, spec.maximum, name)
