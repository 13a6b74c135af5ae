"""Interface of pools, and of the tasks and backends that create them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.spaces import Space

__all__ = ["PLAYERS", "Backend", "Ids", "Pool", "PoolBatch", "PoolSpec", "PoolTask", "SeedPool", "StepPool"]


Ids = npt.NDArray[np.int32]
PLAYERS = "players."  # prefix of infos that have a row for each player


@dataclass(frozen=True)
class PoolSpec:
    """Spaces and other properties that the environments of a pool have in common.

    Attributes:
        observation_space: Observation space of one agent: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or
            Tuple of these.
        action_space: Action space of one agent.
        num_players: Number of agents per environment, the same in every environment.
        info_spaces: Spaces of the infos in ``PoolBatch.infos``, by name: a Box or Discrete per environment, or per
            agent if the name starts with "players.".
        frame_shape: Height and width of the frames of ``render`` in pixels, or None if it cannot render.
        render_fps: Number of frames per second of play.
        reward_threshold: Return at which the environment counts as solved, or None.
    """

    observation_space: Space
    action_space: Space
    num_players: int = 1
    info_spaces: Mapping[str, Space] = field(default_factory=dict)
    frame_shape: tuple[int, int] | None = None
    render_fps: float = 15.0
    reward_threshold: float | None = None


class PoolBatch(NamedTuple):
    """Results of B environments that finished a step or reset. There are ``rows = B * num_players`` rows.

    Attributes:
        env_id: Ids of the environments, int32 ``(B,)``.
        player_env_id: Environment of each row, int32 ``(rows,)``.
        observations: Array ``(rows, *shape)``, or a dict or tuple of such arrays, like the observation space.
        rewards: Rewards, float32 ``(rows,)``.
        terminated: Whether the episode terminated, bool ``(B,)``.
        truncated: Whether the episode was truncated by the step limit or by the environment, bool ``(B,)``. Both flags
            can be True.
        elapsed_step: Number of steps in the episode so far, int32 ``(B,)``. It is 0 after a reset.
        infos: Arrays by the names in ``PoolSpec.info_spaces``, B or ``rows`` long.
        final_observations: With autoreset "same_step": last observations of the episodes that ended, in the format of
            ``observations``. Other rows are undefined. None in other modes.
        final_infos: With autoreset "same_step": infos of the last steps of the episodes that ended, with masks and
            ``elapsed_step``. None in other modes.
    """

    env_id: Ids
    player_env_id: Ids
    observations: Any
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    elapsed_step: npt.NDArray[np.int32]
    infos: dict[str, Array]
    final_observations: Any = None
    final_infos: dict[str, Array] | None = None


class Pool(Protocol):
    """Environments that take actions one by one and come back in batches.

    An environment is in flight from ``send`` or ``reset`` until ``recv`` returns it.

    If ``batch_size == num_envs``, the pool is synchronous: a batch contains everything that was sent since the last
    one, in the order of sending. Otherwise a batch contains the first ``batch_size`` environments that finish. With
    autoreset "next_step", the first action and the action after the end of an episode reset the environment. That
    action is not used, the reward is 0, and ``elapsed_step`` is 0. With "same_step", an environment is reset in the
    step that ends the episode. With "disabled", only ``reset`` resets it.

    Each environment has its own random generator, so results do not depend on the number of threads.

    Raises:
        APIUsageError: Any method raises it for ids that are out of range, given twice or in flight, for actions of a
            wrong shape, dtype or value, for a ``recv`` that would wait forever, and after ``close``.
    """

    spec: PoolSpec
    num_envs: int
    batch_size: int

    @property
    def num_in_flight(self) -> int:
        """Number of environments in flight."""

    def reset(self, env_ids: Any = None) -> None:
        """Start a new episode in these environments, or in all."""

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Send actions ``(len(env_ids) * num_players, *action_shape)`` to these environments, or to all.

        Both arguments may be arrays or sequences. The caller may change them as soon as this method returns.
        """

    def recv(self) -> PoolBatch:
        """Wait for a batch. With ``copy=False`` its arrays belong to the pool and change with the next batch."""

    def observations(self) -> Any:
        """Return the last observations of all environments as new arrays. No environment may be in flight."""

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Render these environments, uint8 ``(len(env_ids), height, width, 3)``. Waits for those in flight."""

    def close(self) -> None:
        """Close the environments and stop their threads or processes. A second call does nothing."""


@runtime_checkable
class SeedPool(Pool, Protocol):
    """Pool that can reseed its environments, which is cheaper than a new pool."""

    def reset_with(self, seeds: Sequence[int]) -> None:
        """Reset all environments, each with a seed from 0 to 2**32 - 1. They behave as if created with it."""


@runtime_checkable
class StepPool(Pool, Protocol):
    """Pool that returns Gymnasium's five values directly, which is cheaper than a ``PoolBatch``."""

    def step(self, action: Any, env_id: Any = None) -> Any:
        """Call ``send`` and ``recv``. Return observations, rewards, two flags and infos. The action may be a dict."""

    def recv_step(self) -> Any:
        """Call ``recv`` and return the five values of ``step``."""


class Backend(Protocol):
    """Factory of pools for one kind of environment.

    It receives the common keyword arguments of ``make`` and those of its task.
    """

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Return the spec of the environments that ``make`` would create. Environments created for this are closed."""

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Create the pool.

        Args:
            config: All keyword arguments, checked: ``num_envs``, ``batch_size`` (never 0), ``num_threads`` (0 for
                automatic), ``env_seed`` (a list with one int per environment), ``max_episode_steps`` (0 for no limit),
                ``thread_affinity_offset``, ``autoreset``, ``copy``, ``render_mode`` ("rgb_array" if frames are needed,
                else None), ``render_width``, ``render_height`` (None for the environment's own size), and the task's
                own.
            spec: Return value of ``describe`` for this config.
        """


@dataclass(frozen=True)
class PoolTask:
    """Task with an id.

    Attributes:
        id: Id, such as "CartPole-v1".
        family: Name of the family, such as "classic_control", as in the table of families in the documentation.
        backend: Backend that creates the pools.
        max_episode_steps: Number of steps after which an episode is truncated, or 0 for no limit.
        reward_threshold: Return at which the task counts as solved, or None.
        keywords: Default values of the task's own keyword arguments.
        any_keyword: Whether the task accepts other keyword arguments, which its backend checks.
        extra: Binding whose packages the task needs, or None.
    """

    id: str
    family: str
    backend: Backend
    max_episode_steps: int = 0
    reward_threshold: float | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    any_keyword: bool = False
    extra: str | None = None
