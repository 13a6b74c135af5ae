"""Interface of a pool: environments that are sent actions one by one, and come back in batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.spaces import Space

__all__ = ["PLAYERS", "Backend", "Ids", "Pool", "PoolBatch", "PoolSpec", "PoolTask", "SeedPool", "StepPool"]


Ids = npt.NDArray[np.int32]
PLAYERS = "players."  # begins the names of infos that have a row for each player


@dataclass(frozen=True)
class PoolSpec:
    """Spaces and other facts that the environments of a pool have in common.

    Attributes:
        observation_space: Of one agent: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple of such.
        action_space: Of one agent.
        num_players: Agents of an environment, the same in each of them; 1 where there is only one.
        info_spaces: What ``PoolBatch.infos`` holds, by name: a Box or Discrete of one environment, or of one agent
            where the name begins with "players.".
        frame_shape: Height and width of the pictures of ``render``, px; None where there are none.
        render_fps: Frames of a second of play.
        reward_threshold: Return from which the environment counts as solved; None where nobody has named one.
    """

    observation_space: Space
    action_space: Space
    num_players: int = 1
    info_spaces: Mapping[str, Space] = field(default_factory=dict)
    frame_shape: tuple[int, int] | None = None
    render_fps: float = 15.0
    reward_threshold: float | None = None


class PoolBatch(NamedTuple):
    """Environments that have finished a step or reset; B of them, with ``B * num_players`` rows, one for each agent.

    Attributes:
        env_id: int32 ``(B,)``.
        player_env_id: int32 ``(rows,)``: the environment of each row.
        observations: ``(rows, *shape)``; a dict or tuple of such arrays where the space is one.
        rewards: float32 ``(rows,)``.
        terminated: bool ``(B,)``.
        truncated: bool ``(B,)``: cut off, by the step limit or by the environment. Both may be True.
        elapsed_step: int32 ``(B,)``: steps of the episode so far; 0 after a reset.
        infos: Arrays by the names of ``PoolSpec.info_spaces``, B or ``rows`` long.
        final_observations: With autoreset "same_step" as ``observations``: those that ended episodes closed with, in
            other rows anything; else None.
        final_infos: With autoreset "same_step" as ``infos``: those of the last steps of episodes that ended, with masks
            and ``elapsed_step``; else None.
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
    """Environments, each of which has been sent something and not come back yet (is in flight), or waits.

    With ``batch_size == num_envs`` it is synchronous: a batch is what was sent since the last one, in the order in
    which it was sent. Otherwise a batch is the first ``batch_size`` that finish. An environment that was never reset,
    or whose episode is over with autoreset "next_step", is reset by the next action, which is not used: reward 0,
    ``elapsed_step`` 0. With "same_step" it is reset at once, with "disabled" only by ``reset``.

    Each environment has a generator of its own, so that its data do not depend on the number of threads.

    Raises:
        APIUsageError: From any method: ids that are out of range, twice there or in flight; actions of a wrong
            shape, dtype or value; a ``recv`` that nothing could end; a pool that is closed.
    """

    spec: PoolSpec
    num_envs: int
    batch_size: int

    @property
    def num_in_flight(self) -> int:
        """Environments that were sent something and have not come back."""

    def reset(self, env_ids: Any = None) -> None:
        """Send the command to begin a new episode to these environments, or all."""

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Send these environments, or all, their actions: ``(len(env_ids) * num_players, *action_shape)``.

        Both may be arrays or lists of any kind, of which the pool takes those that mean something. They may be changed
        as soon as this has returned.
        """

    def recv(self) -> PoolBatch:
        """Wait for a batch. Its arrays are new, or with ``copy=False`` those of the pool, which the next changes."""

    def observations(self) -> Any:
        """Last observations of all environments, as a batch of all has them, in new arrays; none is in flight."""

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Draw these environments, ``(len(env_ids), height, width, 3)``; waits for those that are in flight."""

    def close(self) -> None:
        """End the environments, and what runs them. Closing twice is fine."""


@runtime_checkable
class SeedPool(Pool, Protocol):
    """A pool whose environments can be given other seeds, which costs less than another pool."""

    def reset_with(self, seeds: Sequence[int]) -> None:
        """``reset`` all, each with a seed from 0 to 2**32 - 1: from here on they are as if made with it."""


@runtime_checkable
class StepPool(Pool, Protocol):
    """A pool that knows Gymnasium's five values, at less cost than a PoolBatch."""

    def step(self, action: Any, env_id: Any = None) -> Any:
        """``send`` and ``recv``, where a dict may be the action too: observations, rewards, flags and infos."""

    def recv_step(self) -> Any:
        """``recv``, with the same five values."""


class Backend(Protocol):
    """Makes pools of one kind of environment. It takes the common keywords of ``make``, and those of its task."""

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would make; none of them stays."""

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Make the pool.

        Args:
            config: All keywords, checked: ``num_envs``, ``batch_size`` (never 0), ``num_threads`` (0: choose),
                ``env_seed`` (a list with one int for each environment), ``max_episode_steps`` (0: no limit),
                ``thread_affinity_offset``, ``autoreset``, ``copy``, ``render_mode`` ("rgb_array" where pictures will
                be asked for, else None), ``render_width``, ``render_height`` (None: the environment's own), and
                the task's own.
            spec: What ``describe`` returned for this config.
        """


@dataclass(frozen=True)
class PoolTask:
    """One id.

    Attributes:
        id: Such as "CartPole-v1".
        family: Such as "classic_control"; the heading it has in the table of families.
        backend: What makes its pools.
        max_episode_steps: Steps after which an episode is cut off; 0 for no limit.
        reward_threshold: Return from which it counts as solved; None where nobody has named one.
        keywords: Its own keywords of ``make``, with their defaults.
        any_keyword: It takes keywords beside these, which its backend checks.
        extra: The binding whose packages it needs; None where nothing more is needed.
    """

    id: str
    family: str
    backend: Backend
    max_episode_steps: int = 0
    reward_threshold: float | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    any_keyword: bool = False
    extra: str | None = None
