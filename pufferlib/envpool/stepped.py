"""Pools of environments that are stepped in C when a batch is received: MuJoCo robots, dm_control and Box2D."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import Array, allocate
from pufferlib.emulation.layout import observation_layout
from pufferlib.envpool.pool import Ids, PoolBatch, PoolSpec
from pufferlib.envpool.refusals import SENT, converted_ids, refused_id
from pufferlib.envpool.workers.arrays import ActionReader, unflatten
from pufferlib.errors import APIUsageError
from pufferlib.ocean.arguments import checked_threads
from pufferlib.registry.games import GymnasiumTwin
from pufferlib.registry.twins import twin_of

__all__ = ["NUMBER", "SteppedBackend", "SteppedPool", "stepped_backend"]

NUMBER = Box(-np.inf, np.inf, (), np.float64)  # space of an info
NO_IDS: Ids = np.zeros(0, np.int32)


def stepped_backend(
    env_name: str, infos: Mapping[str, tuple[str, ...]], keywords: Mapping[str, Any]
) -> "SteppedBackend | None":
    """Return the backend of an environment in C, or None if there is none with these keyword arguments.

    Args:
        env_name: Name of the environment, such as "mujoco/Ant-v5".
        infos: Infos of the pool, each with the names that Gymnasium may have for it.
        keywords: The task's own keyword arguments.
    """
    twin = twin_of(env_name, keywords)
    return SteppedBackend(twin, infos) if isinstance(twin, GymnasiumTwin) else None


class SteppedBackend:
    """Backend of an environment that is stepped in C.

    Args:
        twin: Environment in C.
        infos: Infos of the pool, each with the names that Gymnasium may have for it.
    """

    def __init__(self, twin: GymnasiumTwin, infos: Mapping[str, tuple[str, ...]]) -> None:
        self._twin, self._infos = twin, infos

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Return the spec of the environments that ``make`` would create."""
        return PoolSpec(
            observation_space=self._twin.observation_space,
            action_space=self._twin.action_space,
            info_spaces=dict.fromkeys(self._infos, NUMBER),
        )

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> "SteppedPool":
        """Create the pool.

        Raises:
            PufferError: A helper thread could not be started.
        """
        return SteppedPool(self._twin, self._infos, config, spec)


class SteppedPool:
    """Environments that are stepped in C when ``recv`` needs them, in threads. It implements ``SeedPool``.

    Args:
        twin: Environment in C.
        infos: Infos of the pool, each with the names that Gymnasium may have for it.
        config: As in ``Backend.make``.
        spec: Spec of the pool.

    Attributes:
        spec: Spec of the pool.
        num_envs: Number of environments.
        batch_size: Number of environments per batch. If it equals ``num_envs``, a batch contains all that were sent.
    """

    def __init__(
        self, twin: GymnasiumTwin, infos: Mapping[str, tuple[str, ...]], config: Mapping[str, Any], spec: PoolSpec
    ) -> None:
        self.spec, self.num_envs, self.batch_size = spec, config["num_envs"], config["batch_size"]
        self._where, self._copies, self._autoreset = twin.name, config["copy"], config["autoreset"]
        threads = min(checked_threads(twin.name, config["num_threads"] or "auto"), self.batch_size)
        limited = dataclasses.replace(twin, max_steps=config["max_episode_steps"])
        affinity = config["thread_affinity_offset"] + 1
        self._games = limited.games(self.num_envs, "disabled", threads, affinity)
        self._layout = observation_layout(twin.observation_space)
        self._rows = allocate(cast(Box, self._layout.flat_space), twin.action_space, self.num_envs)
        self._games.bind(**self._rows)
        self._reader = ActionReader(self._where, spec.action_space, self.batch_size)
        self._sources = infos
        # Column of each info of a step, or None if the environment does not have it.
        own = self._games.info_columns
        self._columns = {
            name: next((own[source] for source in sources if source in own), None) for name, sources in infos.items()
        }
        self._seeds: dict[int, int] = {env: int(seed) % 2**32 for env, seed in enumerate(config["env_seed"])}
        self._begins = np.ones(self.num_envs, np.bool_)  # the next command begins an episode
        # All ids. If a batch has them, this array itself stands for them, because whole arrays are copied much faster
        # than rows of an index.
        self._all = np.arange(self.num_envs, dtype=np.int32)
        self._flying: Ids = NO_IDS
        self._sent = np.zeros(self.num_envs, np.bool_)
        self._lock, self._is_closed = threading.RLock(), False

    @property
    def num_in_flight(self) -> int:
        """Number of environments in flight."""
        return len(self._flying)

    def reset(self, env_ids: Any = None) -> None:
        """Start a new episode in these environments, or in all."""
        with self._lock:
            ids = self._checked_ids("reset", env_ids, is_reset=True)
            self._begins[ids] = True
            self._fly(ids)

    def reset_with(self, seeds: Sequence[int]) -> None:
        """Start a new episode in all environments, each with a seed."""
        with self._lock:
            if len(seeds) != self.num_envs:
                raise APIUsageError(f"{self._where}.reset: expected {self.num_envs} seeds, got {len(seeds)}")
            self.reset()
            self._seeds = {env: int(seed) % 2**32 for env, seed in enumerate(seeds)}

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Send actions ``(len(env_ids), *action_shape)`` to these environments, or to all."""
        with self._lock:
            ids = self._checked_ids("send", env_ids, is_reset=False)
            self._rows["actions"][self._index(ids)] = self._reader.read(actions, len(ids))
            self._fly(ids)

    def _fly(self, ids: Ids) -> None:
        self._sent[self._index(ids)] = True
        self._flying = np.concatenate((self._flying, ids)) if self._flying.size else ids

    def _index(self, ids: Ids) -> Any:
        """Return the index of the rows of these environments."""
        return ... if ids is self._all else ids

    def _copy(self, array: Array, ids: Ids) -> Array:
        """Return the rows of these environments as a new array."""
        return array.copy() if ids is self._all else array[ids]

    def _checked_ids(self, method: str, env_ids: Any, is_reset: bool) -> Ids:
        """Return the ids as an array, after checking that each environment can take a command now."""
        self._check_open(method)
        where, is_strict = f"{self._where}.{method}", not is_reset and self._autoreset == "disabled"
        if env_ids is None and not self._flying.size and not (is_strict and self._begins.any()):  # the common case
            return self._all
        ids = self._all if env_ids is None else converted_ids(where, env_ids)
        seen: set[int] = set()
        for env in ids.tolist():
            is_known = 0 <= env < self.num_envs
            needs_reset = is_known and is_strict and self._begins[env]
            if not is_known or env in seen or self._sent[env] or needs_reset:
                raise refused_id(where, env, self.num_envs, SENT if is_known and self._sent[env] else 0, env in seen)
            seen.add(env)
        return self._all if np.array_equal(ids, self._all) else ids.astype(np.int32)

    def _check_open(self, method: str) -> None:
        if self._is_closed:
            raise APIUsageError(f"{self._where}.{method}: the pool is closed; make a new one")

    def recv(self) -> PoolBatch:
        """Step the environments of the next batch, and return it.

        Raises:
            APIUsageError: Fewer environments are in flight than a batch needs, or a simulation is unstable.
        """
        with self._lock:
            self._check_open("recv")
            is_sync = self.batch_size == self.num_envs
            needed = len(self._flying) if is_sync else self.batch_size
            if not needed or len(self._flying) < needed:
                raise APIUsageError(
                    f"{self._where}.recv: it would wait for ever: a batch needs {needed or 1} environments in flight, "
                    f"got {len(self._flying)}; send some actions first, or reset"
                )
            ids, self._flying = self._flying, NO_IDS
            if len(ids) > needed:
                ids, self._flying = ids[:needed], ids[needed:]
            return self._batch(ids)

    def _batch(self, ids: Ids) -> PoolBatch:
        """Step or reset these environments, and return their results."""
        games, rows, index = self._games, self._rows, self._index(ids)
        self._sent[index] = False
        begins = self._begins[index]
        begun = np.flatnonzero(begins)
        games.advance(ids[~begins] if begun.size else ids)
        infos = {
            name: np.zeros(len(ids)) if column is None else self._copy(games.infos[:, column], ids)
            for name, column in self._columns.items()
        }
        self._begin(ids, begun, infos)
        for env in ids[begun].tolist():
            games.clear(env)
        terminated, truncated = self._copy(rows["terminals"], ids), self._copy(rows["truncations"], ids)
        ended = terminated | truncated
        final, final_infos = None, None
        if self._autoreset == "same_step":
            last = {"elapsed_step": self._copy(games.elapsed, ids), **infos}
            final_infos = {name: array.copy() for name, array in last.items()}
            final_infos |= {f"_{name}": ended.copy() for name in last}
            final = self._unflatten(self._copy(rows["observations"], ids))
            self._begin(ids, np.flatnonzero(ended), infos)
        else:
            self._begins[index] = ended
        env_id = ids.copy()
        return PoolBatch(
            env_id=env_id,
            player_env_id=env_id,
            observations=self._unflatten(self._shown("observations", ids)),
            rewards=self._shown("rewards", ids),
            terminated=terminated,
            truncated=truncated,
            elapsed_step=self._copy(games.elapsed, ids),
            infos=infos,
            final_observations=final,
            final_infos=final_infos,
        )

    def _shown(self, name: str, ids: Ids) -> Array:
        """Return rows of an array of the pool, or the array itself if batches are not copied."""
        return self._rows[name] if ids is self._all and not self._copies else self._copy(self._rows[name], ids)

    def _begin(self, ids: Ids, places: Array, infos: Mapping[str, Array]) -> None:
        """Start episodes in the environments at these places of a batch, and write their infos."""
        envs = ids[places].tolist()
        begun = self._games.begin(envs, [self._seeds.pop(env, None) for env in envs])
        for place, env, info in zip(places.tolist(), envs, begun, strict=True):
            self._begins[env] = False
            for name, sources in self._sources.items():
                infos[name][place] = next((info[source] for source in sources if source in info), 0)

    def observations(self) -> Any:
        """Return the last observations of all environments as new arrays."""
        return self._unflatten(self._rows["observations"].copy())

    def _unflatten(self, rows: Array) -> Any:
        layout = self._layout
        return unflatten(rows, layout.space, layout.dtype) if layout.is_emulated else rows

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Raise APIUsageError, because pools that render step the environments in Python."""
        raise APIUsageError(f"{self._where}.render: make the pool with render_mode='rgb_array'")

    def close(self) -> None:
        """Free the environments. A second call does nothing."""
        with self._lock:
            if not self._is_closed:
                self._games.close()
            self._is_closed = True
