"""Settings of the workers of a pool, and what they share with it beside the rows of the environments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferlib.buffers import ArraySpecs
from pufferlib.env import AutoresetMode
from pufferlib.envpool.workers._queues import queue_capacity
from pufferlib.spaces import Space, action_spec
from pufferlib.vector.specs import EnvDescription, RowSpec

__all__ = ["INFO", "PLAYERS", "PLAYER_FLAGS", "Draw", "Frame", "PoolDescription", "WorkerOptions", "env_places"]

#: A function that draws an environment: ``(env, camera_id, width, height)``, the last three -1, None and None where
#: the environment may choose; returns uint8 ``(height, width, 3)``.
Draw = Callable[[Any, int, int | None, int | None], Any]
Frame = tuple[int, int, float]

INFO = "info:"  # begins the names of the arrays of infos
PLAYERS = "players."  # begins the names of infos with one value for each agent
PLAYER_FLAGS = {"players.terminated": "terminals", "players.truncated": "truncations", "players.mask": "masks"}


@dataclass(frozen=True)
class WorkerOptions:
    """Settings of the workers of one pool.

    Attributes:
        autoreset: What follows an episode.
        limit: Steps after which an episode is cut off; 0 for no limit.
        info_spaces: Infos that have an array, by name.
        info_sources: Names that the environments have for some of these, where they do not know the name here.
        declared_only: Whether infos without an array are dropped.
        draw: Draws an environment.
        size: Width and height to draw, px; None: the environment's own.
        affinity: Core of the first worker, of those that the process may use; -1: any.
        probes: Whether one environment is only to be described.
        draws: Whether pictures will be asked for.
    """

    autoreset: AutoresetMode
    limit: int
    info_spaces: Mapping[str, Space]
    info_sources: Mapping[str, str]
    declared_only: bool
    draw: Draw
    size: tuple[int | None, int | None]
    affinity: int
    probes: bool
    draws: bool

    def arrays(self, row_spec: RowSpec, num_envs: int, num_workers: int) -> ArraySpecs:
        """Shape and dtype of what the pool and its workers share beside the rows."""
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
    """An environment, with its own spaces before they were made flat.

    Attributes:
        observations: Of one agent: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple of such.
        row_dtype: Of one agent's flat observation, with the fields of ``observations``.
        limit: Steps after which it cuts off its episodes itself; None for no such limit.
        reward_threshold: Return from which it counts as solved; None where it says none.
        frame: Height and width of its pictures, px, and how many make a second; None where it draws none.
    """

    observations: Space
    row_dtype: np.dtype[Any]
    limit: int | None
    reward_threshold: float | None
    frame: Frame | None


def env_places(num_envs: int, num_workers: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """First environment of each worker, and the number of all."""
    return (np.arange(num_workers + 1) * num_envs // num_workers).astype(np.int32)
