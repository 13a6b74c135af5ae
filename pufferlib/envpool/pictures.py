"""Pictures of a pool's environments in one size, and a pool whose observations they are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.envpool.pool import Ids, Pool, PoolBatch, PoolSpec
from pufferlib.envpool.pool_wrapper import PoolWrapper
from pufferlib.errors import APIUsageError
from pufferlib.native._pictures import scale_picture

__all__ = ["PixelPool", "check_draws", "draw", "pixel_spec"]

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
