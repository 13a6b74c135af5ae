"""Tasks: what ``make`` finds by its id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pufferlib.envpool.pool import Pool, PoolSpec

__all__ = ["Backend", "PoolTask"]


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
