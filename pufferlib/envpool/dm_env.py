"""A pool behind the interface of dm_env."""

from typing import Any

import numpy as np

from pufferlib.envpool.pool import Pool, PoolBatch
from pufferlib.envpool.pool_env import PoolEnv
from pufferlib.envpool.spec import DISCOUNT, StateType, TaskSpec, import_dm_env

__all__ = ["DMPoolEnv"]

_dm_env = import_dm_env()
_Environment: Any = _dm_env.Environment


class DMPoolEnv(PoolEnv, _Environment):  # type: ignore[misc]  # dm_env has no types
    """Environments of a pool as one of dm_env, whose time steps have a row for each.

    ``step_type`` is int32 with one element for each environment, ``reward`` and ``discount`` are float32 with one for
    each player. ``observation`` is a namedtuple: ``env_id``, ``players`` (a namedtuple that begins with the ``env_id``
    of each row), ``obs`` (or the keys of a dict of observations, or ``pixels``) and the task's infos.
    The discount of an episode's last step is 0, also where the step limit ended it; that of others is 1, or what the
    environment says in an info of that name.
    """

    def __init__(self, spec: TaskSpec, pool: Pool) -> None:
        super().__init__(spec, pool)
        self._state = StateType(spec.pool_spec, self._settings["from_pixels"])
        self._observation_spec, self._action_spec = spec.observation_spec(), spec.action_spec()

    def reset(self, env_id: Any = None, *, seed: Any = None) -> Any:
        """Begin new episodes and return a batch: all environments, those of ``env_id``, or the first that finish.

        Args:
            env_id: Environments; None for all.
            seed: As ``make`` takes it: from here on everything is as if it had been made with this seed. None lets
                the generators go on.

        Raises:
            APIUsageError: Wrong ids or seed; too few environments for a batch.
        """
        return self._time_step(self._reset(env_id, seed))

    def step(self, action: Any, env_id: Any = None) -> Any:
        """``send`` and ``recv``.

        Raises:
            APIUsageError: As ``send`` does.
        """
        self.send(action, env_id)
        return self.recv()

    def recv(self) -> Any:
        """Wait for a batch.

        Raises:
            APIUsageError: Fewer environments are in flight than a batch has, so that it would wait for ever.
        """
        return self._time_step(self._recv())

    def observation_spec(self) -> Any:
        """A namedtuple of the specs of ``TimeStep.observation``, of one environment or player."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The spec of one action."""
        return self._action_spec

    def close(self) -> None:
        """End the environments, and close the window; twice is fine."""
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
