"""A pool whose observations are the last ones of each environment together."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.envpool.pool import Ids, Pool, PoolBatch, PoolSpec
from pufferlib.envpool.pool_wrapper import PoolWrapper
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["StackPool", "stack_spec"]

Frames = npt.NDArray[np.uint8]


def stack_spec(where: str, spec: PoolSpec, frames: int, *, on_channels: bool) -> PoolSpec:
    """``spec`` with ``frames`` observations in one, the oldest first.

    Args:
        where: Begins the message of an error.
        spec: With a Box of observations.
        frames: How many.
        on_channels: They are joined along their first axis; otherwise they get one in front of it.

    Raises:
        APIUsageError: Observations are no Box.
    """
    return replace(spec, observation_space=_stacked(where, spec.observation_space, frames, on_channels))


def _stacked(where: str, space: Space, frames: int, on_channels: bool) -> Box:
    if not isinstance(space, Box):
        raise APIUsageError(
            f"{where}: frame_stack must be 1 unless observations are one array, a Box, got {frames} with {space}; "
            "stack in your own loop, or take from_pixels"
        )
    low, high = (np.repeat(bound[None], frames, axis=0) for bound in (space.low, space.high))
    if on_channels:
        low, high = (bound.reshape(-1, *space.shape[1:]) for bound in (low, high))
    return Box(low, high, dtype=np.dtype(space.dtype).type)


class StackPool(PoolWrapper):
    """A pool whose observations are the last ``frames`` of another's; an episode begins with its first one repeated.

    Args:
        pool: Of observations that are one array; it belongs to this one.
        spec: As ``stack_spec`` returns it.
        frames: How many.
    """

    def __init__(self, pool: Pool, spec: PoolSpec, frames: int) -> None:
        super().__init__(pool, spec)
        space = pool.spec.observation_space
        self._history = np.zeros((pool.num_envs, spec.num_players, frames, *(space.shape or ())), space.dtype)

    def recv(self) -> PoolBatch:
        """Wait for a batch, and put its observations on those before."""
        batch = self.pool.recv()
        last, ids = batch.final_observations, batch.env_id
        begins = batch.elapsed_step == 0
        if last is not None:
            begins |= batch.terminated | batch.truncated
            last = self._shaped(self._pushed(ids, last))
        stacked = self._pushed(ids, batch.observations)
        first = self._by_env(batch.observations)[begins]
        stacked[begins] = first[:, :, None]
        self._history[ids] = stacked
        return batch._replace(observations=self._shaped(stacked), final_observations=last)

    def observations(self) -> Frames:
        """The last observations of all environments."""
        return self._shaped(self._history.copy())  # type: ignore[no-any-return]

    def _by_env(self, observations: Any) -> Any:
        return observations.reshape(-1, *self._history.shape[1:2], *self._history.shape[3:])

    def _pushed(self, ids: Ids, observations: Any) -> Any:
        """Stacks of the environments ``ids`` without their oldest and with ``observations``, in a new array."""
        newest = self._by_env(observations)[:, :, None]
        return np.concatenate([self._history[ids, :, 1:], newest], axis=2)

    def _shaped(self, stacked: Any) -> Any:
        return stacked.reshape(-1, *(self.spec.observation_space.shape or ()))
