"""Wrappers of pools: image observations and stacked observations."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from typing_extensions import override

from pufferlib.envpool.pool import Ids, Pool, PoolBatch, PoolSpec
from pufferlib.errors import APIUsageError
from pufferlib.native._pictures import scale_picture
from pufferlib.spaces import Space

__all__ = ["PixelPool", "PoolWrapper", "StackPool", "check_can_render", "pixel_spec", "render_scaled", "stack_spec"]


class PoolWrapper:
    """Base class of wrappers. Each method calls the same method of the inner pool.

    Attributes:
        spec: Spec of the wrapped pool.
        num_envs: Number of environments.
        batch_size: Number of environments per batch.
        pool: Inner pool. The wrapper closes it.
    """

    def __init__(self, pool: Pool, spec: PoolSpec) -> None:
        self.pool, self.spec = pool, spec
        self.num_envs, self.batch_size = pool.num_envs, pool.batch_size

    @property
    def num_in_flight(self) -> int:
        """Number of environments in flight."""
        return self.pool.num_in_flight

    def reset(self, env_ids: Any = None) -> None:
        """Start a new episode in these environments, or in all."""
        self.pool.reset(env_ids)

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Send actions to these environments, or to all."""
        self.pool.send(actions, env_ids)

    def recv(self) -> PoolBatch:
        """Wait for a batch."""
        return self.pool.recv()

    def observations(self) -> Any:
        """Return the last observations of all environments."""
        return self.pool.observations()

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Render these environments."""
        return self.pool.render(env_ids, camera_id)

    def close(self) -> None:
        """Close the inner pool."""
        self.pool.close()


Frames = npt.NDArray[np.uint8]


def check_can_render(where: str, spec: PoolSpec) -> None:
    """Raise an error unless the environments can render.

    Raises:
        APIUsageError: They cannot.
    """
    if spec.frame_shape is None:
        raise APIUsageError(
            f"{where}: the environment must draw pictures, got one without; leave out render_mode and from_pixels"
        )


def render_scaled(pool: Pool, env_ids: Ids, camera_id: int, height: int | None, width: int | None) -> Frames:
    """Render environments and scale the frames, uint8 ``(len(env_ids), height, width, 3)``.

    Args:
        pool: Pool. Environments in flight are waited for.
        env_ids: Ids of the environments. An id may be repeated.
        camera_id: Camera, or -1 for the default camera.
        height: Height in pixels, or None for the height of the rendered frames.
        width: Width in pixels, or None for the width of the rendered frames.
    """
    chosen, inverse = np.unique(env_ids, return_inverse=True)
    rendered = pool.render(chosen.astype(np.int32), camera_id)
    size = (height or rendered.shape[1], width or rendered.shape[2])
    if rendered.shape[1:3] != size:
        large, rendered = rendered, np.empty((len(rendered), *size, 3), np.uint8)
        for frame, scaled in zip(large, rendered, strict=True):
            scale_picture(np.ascontiguousarray(frame), scaled)
    return rendered if len(chosen) == len(env_ids) and (chosen == env_ids).all() else rendered[inverse]


def pixel_spec(where: str, spec: PoolSpec, config: Mapping[str, Any]) -> PoolSpec:
    """Return ``spec`` with image observations: uint8 ``(3, height, width)``.

    Raises:
        APIUsageError: The environments cannot render, or autoreset is "same_step", which leaves no last frame.
    """
    check_can_render(where, spec)
    if config["autoreset"] == "same_step":
        raise APIUsageError(
            f'{where}: from_pixels must come with autoreset "next_step" or "disabled", got "same_step", which begins '
            "the next episode before the last picture of the old one could be drawn"
        )
    space = Box(0, 255, (3, config["render_height"], config["render_width"]), np.uint8)
    return replace(spec, observation_space=space)


class PixelPool(PoolWrapper):
    """Pool with image observations. All players of an environment get the same image.

    Args:
        pool: Inner pool, which must be able to render. The wrapper closes it.
        spec: Return value of ``pixel_spec``.
        camera_id: Camera, or -1 for the default camera.
    """

    def __init__(self, pool: Pool, spec: PoolSpec, camera_id: int) -> None:
        super().__init__(pool, spec)
        self._camera_id = camera_id
        _, self._height, self._width = spec.observation_space.shape or (3, 0, 0)

    @override
    def recv(self) -> PoolBatch:
        batch = self.pool.recv()
        return batch._replace(observations=self._rendered(batch.env_id))

    @override
    def observations(self) -> Frames:
        return self._rendered(np.arange(self.num_envs, dtype=np.int32))

    def _rendered(self, env_ids: Ids) -> Frames:
        rendered = render_scaled(self.pool, env_ids, self._camera_id, self._height, self._width).transpose(0, 3, 1, 2)
        if self.spec.num_players > 1:
            return np.repeat(rendered, self.spec.num_players, axis=0)
        return np.ascontiguousarray(rendered)


def stack_spec(where: str, spec: PoolSpec, frames: int, *, on_channels: bool) -> PoolSpec:
    """Return ``spec`` with ``frames`` observations stacked into one, oldest first.

    Args:
        where: Prefix of error messages.
        spec: Spec with a Box observation space.
        frames: Number of observations to stack.
        on_channels: Whether to concatenate along the first axis. Otherwise a new first axis is added.

    Raises:
        APIUsageError: The observation space is not a Box.
    """
    return replace(spec, observation_space=_stacked_box(where, spec.observation_space, frames, on_channels))


def _stacked_box(where: str, space: Space, frames: int, on_channels: bool) -> Box:
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
    """Pool that stacks the last ``frames`` observations. The first observation of an episode is repeated.

    Args:
        pool: Inner pool with a Box observation space. The wrapper closes it.
        spec: Return value of ``stack_spec``.
        frames: Number of observations to stack.
    """

    def __init__(self, pool: Pool, spec: PoolSpec, frames: int) -> None:
        super().__init__(pool, spec)
        space = pool.spec.observation_space
        self._history = np.zeros((pool.num_envs, spec.num_players, frames, *(space.shape or ())), space.dtype)

    @override
    def recv(self) -> PoolBatch:
        batch = self.pool.recv()
        last, ids = batch.final_observations, batch.env_id
        starts = batch.elapsed_step == 0
        if last is not None:
            starts |= batch.terminated | batch.truncated
            last = self._as_rows(self._push(ids, last))
        stacked = self._push(ids, batch.observations)
        first = self._by_env(batch.observations)[starts]
        stacked[starts] = first[:, :, None]
        self._history[ids] = stacked
        return batch._replace(observations=self._as_rows(stacked), final_observations=last)

    @override
    def observations(self) -> Any:
        return self._as_rows(self._history.copy())

    def _by_env(self, observations: Any) -> Any:
        return observations.reshape(-1, *self._history.shape[1:2], *self._history.shape[3:])

    def _push(self, ids: Ids, observations: Any) -> Any:
        """Return new stacks of the environments ``ids``, without the oldest observation and with a new one."""
        newest = self._by_env(observations)[:, :, None]
        return np.concatenate([self._history[ids, :, 1:], newest], axis=2)

    def _as_rows(self, stacked: Any) -> Any:
        return stacked.reshape(-1, *(self.spec.observation_space.shape or ()))
