"""Options of the workers of a pool, and the description of its environments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferlib.buffers import ArraySpecs
from pufferlib.env import AutoresetMode
from pufferlib.envpool.pool import PLAYERS
from pufferlib.envpool.workers._queues import queue_capacity
from pufferlib.spaces import Space, action_spec
from pufferlib.vector.specs import EnvDescription, RowSpec

__all__ = ["INFO", "PLAYERS", "PLAYER_FLAGS", "Draw", "Frame", "PoolDescription", "WorkerOptions", "first_env_indices"]

#: Function ``(env, camera_id, width, height)`` that returns a frame, uint8 ``(height, width, 3)``. The values -1, None
#: and None mean the defaults of the environment.
Draw = Callable[[Any, int, int | None, int | None], Any]
Frame = tuple[int, int, float]

INFO = "info:"  # prefix of the arrays of infos
PLAYER_FLAGS = {"players.terminated": "terminals", "players.truncated": "truncations", "players.mask": "masks"}


@dataclass(frozen=True)
class WorkerOptions:
    """Options of the workers of one pool.

    Attributes:
        autoreset: Autoreset mode.
        limit: Number of steps after which an episode is truncated, or 0 for no limit.
        info_spaces: Spaces of infos that have an array, by name.
        info_sources: Names that environments use for some of these infos, where they differ.
        declared_only: Whether infos without an array are dropped.
        draw: Function that renders an environment.
        size: Width and height of frames in pixels, None for the environment's own size.
        affinity: Index of the first worker's core among the cores that the process may use, or -1 for any.
        is_probe: Whether one environment is created only to describe it.
        renders: Whether environments must be able to render.
    """

    autoreset: AutoresetMode
    limit: int
    info_spaces: Mapping[str, Space]
    info_sources: Mapping[str, str]
    declared_only: bool
    draw: Draw
    size: tuple[int | None, int | None]
    affinity: int
    is_probe: bool
    renders: bool

    def arrays(self, row_spec: RowSpec, num_envs: int, num_workers: int) -> ArraySpecs:
        """Return shape and dtype of the arrays that pool and workers share, except for the environment rows."""
        largest = -(-num_envs // num_workers)
        flag = ((num_envs,), np.dtype(bool))
        specs: ArraySpecs = {
            "entries": ((num_workers, queue_capacity(largest)), np.dtype(np.uint32)),
            "outcomes": ((num_envs,), np.dtype(np.uint8)),
            "finished_ns": ((num_envs,), np.dtype(np.int64)),
            "terminated": flag,
            "truncated": flag,
            "elapsed_step": ((num_envs,), np.dtype(np.int32)),
        }
        for name, space in self.info_spaces.items():
            if name not in PLAYER_FLAGS:
                rows = num_envs * row_spec.num_agents if name.startswith(PLAYERS) else num_envs
                shape, dtype = action_spec(space)
                specs[INFO + name] = ((rows, *shape), np.dtype(dtype))
        return specs


@dataclass(frozen=True)
class PoolDescription(EnvDescription):
    """Description of an environment, with its spaces before they were flattened.

    Attributes:
        observations: Observation space of one agent: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple
            of these.
        row_dtype: Dtype of one agent's flat observation, with the fields of ``observations``.
        limit: Number of steps after which the environment truncates its episodes itself, or None.
        reward_threshold: Return at which the environment counts as solved, or None.
        frame: Height and width of frames in pixels, and frames per second. None if the environment cannot render.
    """

    observations: Space
    row_dtype: np.dtype[Any]
    limit: int | None
    reward_threshold: float | None
    frame: Frame | None


def first_env_indices(num_envs: int, num_workers: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """Return the index of each worker's first environment, followed by the number of environments."""
    return (np.arange(num_workers + 1) * num_envs // num_workers).astype(np.int32)
