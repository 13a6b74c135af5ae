"""A pool around another one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.envpool.pool import Ids, Pool, PoolBatch, PoolSpec
from pufferlib.errors import APIUsageError
from pufferlib.native._pictures import scale_picture
from pufferlib.spaces import Space

__all__ = ["PixelPool", "PoolWrapper", "StackPool", "check_draws", "draw", "pixel_spec", "stack_spec"]


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


Pictures = npt.NDArray[np.uint8]


def check_draws(where: str, spec: PoolSpec) -> None:
    """Raise unless the environments draw pictures.

    Raises:
        APIUsageError: They do not.
    """
    if spec.frame_shape is None:
        raise APIUsageError(
            f"{where}: the environment must draw pictures, got one without; leave out render_mode and from_pixels"
        )


def draw(pool: Pool, env_ids: Ids, camera_id: int, height: int | None, width: int | None) -> Pictures:
    """Pictures of environments, uint8 ``(len(env_ids), height, width, 3)``; None: as high or wide as they are drawn.

    Args:
        pool: Waits for those that are in flight.
        env_ids: Any of them, also one several times.
        camera_id: -1 for the usual one.
        height: In px.
        width: In px.
    """
    chosen, places = np.unique(env_ids, return_inverse=True)
    pictures = pool.render(chosen.astype(np.int32), camera_id)
    size = (height or pictures.shape[1], width or pictures.shape[2])
    if pictures.shape[1:3] != size:
        large, pictures = pictures, np.empty((len(pictures), *size, 3), np.uint8)
        for picture, small in zip(large, pictures, strict=True):
            scale_picture(np.ascontiguousarray(picture), small)
    return pictures if len(chosen) == len(env_ids) and (chosen == env_ids).all() else pictures[places]


def pixel_spec(where: str, spec: PoolSpec, config: Mapping[str, Any]) -> PoolSpec:
    """``spec`` with observations that are pictures: uint8 ``(3, height, width)``.

    Raises:
        APIUsageError: The environments draw none; or episodes begin in the step in which the last one ended, of which
            no picture would be left.
    """
    check_draws(where, spec)
    if config["autoreset"] == "same_step":
        raise APIUsageError(
            f'{where}: from_pixels must come with autoreset "next_step" or "disabled", got "same_step", which begins '
            "the next episode before the last picture of the old one could be drawn"
        )
    space = Box(0, 255, (3, config["render_height"], config["render_width"]), np.uint8)
    return replace(spec, observation_space=space)


class PixelPool(PoolWrapper):
    """A pool whose observations are pictures of another's environments; players of one all see the same.

    Args:
        pool: With ``render``; it belongs to this one.
        spec: As ``pixel_spec`` returns it.
        camera_id: Which to draw from; -1 for the usual one.
    """

    def __init__(self, pool: Pool, spec: PoolSpec, camera_id: int) -> None:
        super().__init__(pool, spec)
        self._camera_id = camera_id
        _, self._height, self._width = spec.observation_space.shape or (3, 0, 0)

    def recv(self) -> PoolBatch:
        """Wait for a batch, and draw its environments."""
        batch = self.pool.recv()
        return batch._replace(observations=self._drawn(batch.env_id))

    def observations(self) -> Pictures:
        """Pictures of all environments."""
        return self._drawn(np.arange(self.num_envs, dtype=np.int32))

    def _drawn(self, env_ids: Ids) -> Pictures:
        pictures = draw(self.pool, env_ids, self._camera_id, self._height, self._width).transpose(0, 3, 1, 2)
        if self.spec.num_players > 1:
            return np.repeat(pictures, self.spec.num_players, axis=0)
        return np.ascontiguousarray(pictures)


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
