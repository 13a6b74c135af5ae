"""A pool around another one."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.envpool.pool import Ids, Pool, PoolBatch, PoolSpec

__all__ = ["PoolWrapper"]


class PoolWrapper:
    """A pool that hands everything to another; those below it change what ``recv`` returns.

    Attributes:
        spec: Of its batches.
        num_envs: Environments.
        batch_size: Environments of a batch.
        pool: The other one, which belongs to this one.
    """

    def __init__(self, pool: Pool, spec: PoolSpec) -> None:
        self.pool, self.spec = pool, spec
        self.num_envs, self.batch_size = pool.num_envs, pool.batch_size

    @property
    def num_in_flight(self) -> int:
        """Environments that were sent something and have not come back."""
        return self.pool.num_in_flight

    def reset(self, env_ids: Any = None) -> None:
        """Send the command to begin a new episode."""
        self.pool.reset(env_ids)

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Send actions."""
        self.pool.send(actions, env_ids)

    def recv(self) -> PoolBatch:
        """Wait for a batch."""
        return self.pool.recv()

    def observations(self) -> Any:
        """Observations of all environments."""
        return self.pool.observations()

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Draw environments."""
        return self.pool.render(env_ids, camera_id)

    def close(self) -> None:
        """Close the pool inside."""
        self.pool.close()
