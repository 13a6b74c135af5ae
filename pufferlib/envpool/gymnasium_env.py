"""Gymnasium interface of pools, for ``env_type`` "gym" and "gymnasium"."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from pufferlib.buffers import Array
from pufferlib.envpool.pool import PLAYERS, Pool, PoolBatch
from pufferlib.envpool.pool_env import PoolEnv
from pufferlib.envpool.spec import TaskSpec
from pufferlib.errors import APIUsageError

__all__ = ["PoolVectorEnv"]

Info = dict[str, Any]
StepResult = tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class PoolVectorEnv(  # type: ignore[misc]  # EnvPool's methods take more arguments
    PoolEnv, gymnasium.vector.VectorEnv[Any, Any, Any], gymnasium.Env[Any, Any]
):
    """Gymnasium vector environment of a pool. Gymnasium's vector wrappers accept it if the pool is synchronous.

    As in EnvPool, it is also a ``gymnasium.Env``, for wrappers of single environments. ``observation_space`` and
    ``action_space`` are the spaces of one environment. Infos are arrays: ``env_id``, ``players`` (a dict with the
    ``env_id`` of each row), ``elapsed_step`` and the task's own infos. With autoreset "same_step", ``final_obs``
    contains the last observations of episodes that ended, in the rows of the mask ``_final_obs``. ``final_info``
    contains the infos of their last steps, as a dict of arrays with masks. All other infos of these rows belong to the
    reset.

    Attributes:
        num_envs: Number of environments.
        observation_space: Observation space of one environment, or of one player if there are several.
        action_space: Action space of one environment, or of one player if there are several.
    """

    is_vector_env = True

    def __init__(self, spec: TaskSpec, pool: Pool) -> None:
        super().__init__(spec, pool)
        self.num_envs = pool.num_envs
        self.observation_space = self.single_observation_space = spec.observation_space
        self.action_space = self.single_action_space = spec.action_space
        self.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": pool.spec.render_fps,
            "autoreset_mode": _MODES[self._settings["autoreset"]],
        }

    def reset(self, env_id: Any = None, *, seed: Any = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start new episodes and return a batch: all environments, those of ``env_id``, or the first that finish.

        Args:
            env_id: Ids of the environments. None means all.
            seed: Seed or seeds, as in ``make``. The environments behave as if created with it. None keeps the state of
                the random generators.
            options: ``{"reset_mask": mask}`` with a bool mask ``(num_envs,)``, instead of ``env_id``. A synchronous
                pool then returns rows of all environments, as Gymnasium does. Rows of environments that were not reset
                contain their last observations.

        Returns:
            Observations ``(rows, *shape)`` and infos.

        Raises:
            APIUsageError: The ids, the seed or the options are wrong, or too few environments are in flight for a
                batch.
        """
        if options:
            env_id = self._ids_in_mask(env_id, options)
        batch = self._reset(env_id, seed)
        if options and not self.is_async:
            return self.pool.observations(), self._info_for_all(batch)
        return batch.observations, self._info(batch)

    def step(self, action: Any, env_id: Any = None) -> StepResult:  # type: ignore[override]
        """Call ``send`` and ``recv``.

        Returns:
            Observations ``(rows, *shape)``, rewards float32 ``(rows,)``, terminated and truncated (bool, one per
            environment of the batch), and infos.

        Raises:
            APIUsageError: The actions or ids are wrong, as in ``send``.
        """
        if self._step_pool is not None:
            return self._with_last_ids(self._step_pool.step(action, self._ids_of(action) if env_id is None else env_id))
        self.send(action, env_id)
        return self._step_result(self._recv())

    def recv(self, reset: bool = False, return_info: bool = True) -> Any:
        """Wait for a batch.

        Args:
            reset: Whether to return only observations and infos, like ``reset``.
            return_info: Must be True, as in EnvPool.

        Returns:
            The five values of ``step``, or the two values of ``reset``.

        Raises:
            APIUsageError: Fewer environments are in flight than a batch contains.
        """
        if not return_info:
            raise APIUsageError(f"{self._where}.recv: return_info must be True, got {return_info!r}; leave it out")
        if self._step_pool is not None and not reset:
            if self.pool.num_in_flight < self._needed:
                self._wait_for_sender()
            return self._with_last_ids(self._step_pool.recv_step())
        batch = self._recv()
        return (batch.observations, self._info(batch)) if reset else self._step_result(batch)

    def close_extras(self, **_: Any) -> None:
        """Close the environments and the window."""
        self._close()

    def _set_pool(self, pool: Pool) -> None:
        super()._set_pool(pool)
        if self._step_pool is not None and not self.is_async:
            self.step = self._step_pool.step  # type: ignore[method-assign]  # saves a call

    def _with_last_ids(self, result: StepResult) -> StepResult:
        self._last_ids = result[4]["env_id"]
        return result

    def _step_result(self, batch: PoolBatch) -> StepResult:
        return batch.observations, batch.rewards, batch.terminated, batch.truncated, self._info(batch)

    def _info(self, batch: PoolBatch) -> Info:
        players: Info = {"env_id": batch.player_env_id}
        info: Info = {"env_id": batch.env_id, "players": players, "elapsed_step": batch.elapsed_step}
        _add_arrays(info, batch.infos)
        if batch.final_infos is not None:
            info["final_info"], info["_final_info"] = {}, batch.terminated | batch.truncated
            _add_arrays(info["final_info"], batch.final_infos)
        if batch.final_observations is not None:
            info["final_obs"], info["_final_obs"] = batch.final_observations, batch.terminated | batch.truncated
        return info

    def _info_for_all(self, batch: PoolBatch) -> Info:
        """Return infos with rows for all environments, and masks of those in the batch, as Gymnasium does."""
        players, ids = self.spec.pool_spec.num_players, self.all_env_ids
        mask = np.isin(ids, batch.env_id)
        player_rows = (batch.env_id[:, None] * players + np.arange(players)).ravel()
        infos = {}
        for name, values in {"elapsed_step": batch.elapsed_step, **batch.infos}.items():
            count, rows = (len(ids) * players, player_rows) if name.startswith(PLAYERS) else (len(ids), batch.env_id)
            infos[name] = np.full((count, *values.shape[1:]), None if values.dtype == object else 0, values.dtype)
            infos[name][rows] = values
            if not name.startswith(("_", PLAYERS)):
                infos[f"_{name}"] = mask
        elapsed = infos.pop("elapsed_step")
        whole = batch._replace(env_id=ids, player_env_id=np.repeat(ids, players), elapsed_step=elapsed, infos=infos)
        return self._info(whole._replace(final_observations=None, final_infos=None))

    def _ids_in_mask(self, env_id: Any, options: Info) -> Any:
        mask = options.get("reset_mask")
        if options.keys() != {"reset_mask"} or env_id is not None:
            raise APIUsageError(
                f'{self._where}.reset: options must be {{"reset_mask": mask}}, without env_id, got {options!r:.80} and '
                f"env_id {env_id!r:.40}"
            )
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise APIUsageError(
                f"{self._where}.reset: reset_mask must be an array of {self.num_envs} bools of which one is True, got "
                f"{mask!r:.80}"
            )
        return np.flatnonzero(mask)


def _add_arrays(info: Info, arrays: Mapping[str, Array]) -> None:
    """Add arrays to ``info``. Arrays of players are added to the dict ``info["players"]``."""
    for name, values in arrays.items():
        if name.startswith(PLAYERS):
            info.setdefault("players", {})[name.removeprefix(PLAYERS)] = values
        else:
            info[name] = values
