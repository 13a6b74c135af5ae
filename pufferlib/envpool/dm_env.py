"""dm_env interface of pools."""

from typing import Any

import numpy as np

from pufferlib.envpool.pool import Pool, PoolBatch
from pufferlib.envpool.pool_env import PoolEnv
from pufferlib.envpool.spec import DISCOUNT, StateType, TaskSpec, import_dm_env

__all__ = ["DMPoolEnv"]

_dm_env = import_dm_env()
_Environment: Any = _dm_env.Environment


class DMPoolEnv(PoolEnv, _Environment):  # type: ignore[misc]  # dm_env is not typed
    """dm_env environment of a pool, with one row per environment in each time step.

    ``step_type`` is int32 with one element per environment. ``reward`` and ``discount`` are float32 with one element
    per player. ``observation`` is a namedtuple: ``env_id``, ``players`` (a namedtuple that starts with the ``env_id``
    of each row), ``obs`` (or the keys of a dict observation, or ``pixels``), and the task's infos. The discount of the
    last step of an episode is 0, even if the step limit ended it. Other steps have discount 1, or the value of the
    environment's info ``discount``.
    """

    def __init__(self, spec: TaskSpec, pool: Pool) -> None:
        super().__init__(spec, pool)
        self._state = StateType(spec.pool_spec, self._settings["from_pixels"])
        self._observation_spec, self._action_spec = spec.observation_spec(), spec.action_spec()

    def reset(self, env_id: Any = None, *, seed: Any = None) -> Any:
        """Start new episodes and return a batch: all environments, those of ``env_id``, or the first that finish.

        Args:
            env_id: Ids of the environments. None means all.
            seed: Seed or seeds, as in ``make``. The environments behave as if created with it. None keeps the state of
                the random generators.

        Raises:
            APIUsageError: The ids or the seed are wrong, or too few environments are in flight for a batch.
        """
        return self._time_step(self._reset(env_id, seed))

    def step(self, action: Any, env_id: Any = None) -> Any:
        """Call ``send`` and ``recv``.

        Raises:
            APIUsageError: The actions or ids are wrong, as in ``send``.
        """
        self.send(action, env_id)
        return self.recv()

    def recv(self) -> Any:
        """Wait for a batch.

        Raises:
            APIUsageError: Fewer environments are in flight than a batch contains.
        """
        return self._time_step(self._recv())

    def observation_spec(self) -> Any:
        """Return a namedtuple of the specs of ``TimeStep.observation``, for one environment or player."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """Return the spec of one action."""
        return self._action_spec

    def close(self) -> None:
        """Close the environments and the window. A second call does nothing."""
        self._close()

    def _time_step(self, batch: PoolBatch) -> Any:
        ends = batch.terminated | batch.truncated
        steps = _dm_env.StepType
        types = np.where(ends, steps.LAST, np.where(batch.elapsed_step == 0, steps.FIRST, steps.MID))
        discount = 1 - ends.astype(np.float32)
        if DISCOUNT in batch.infos:
            discount *= batch.infos[DISCOUNT]
        discount = np.repeat(discount, self.spec.pool_spec.num_players)
        observation = self._state(batch.env_id, batch.player_env_id, batch.observations, batch.infos)
        return _dm_env.TimeStep(types.astype(np.int32), batch.rewards, discount, observation)
