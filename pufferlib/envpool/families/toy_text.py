"""Toy text: Gymnasium's small tables, under its ids."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.tasks import PoolTask

__all__ = ["tasks"]

FAMILY = "toy_text"


def make_blackjack(**keywords: Any) -> Any:
    """Blackjack whose observation is one array: the sum of the player, the dealer's card, whether an ace counts 11."""
    env = gymnasium.make("Blackjack-v1", disable_env_checker=True, **keywords)
    space = Box(0, 31, (3,), np.int32)
    return gymnasium.wrappers.TransformObservation(env, lambda seen: np.array(seen, np.int32), space)


def draw_table(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Draw a table as Gymnasium does, without looking for a screen."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    return env.env.render()


class Table(NamedTuple):
    """A task and the environment of Gymnasium's behind it.

    Attributes:
        task_id: As ``make`` takes it.
        name: Of the environment in Gymnasium.
        max_episode_steps: Steps after which an episode is cut off; 0 for no limit.
        reward_threshold: Return from which it counts as solved; None where nobody has named one.
        has_prob: Whether it tells how likely the last change of its state was.
        maker: Makes it where the observations of Gymnasium's are changed.
    """

    task_id: str
    name: str
    max_episode_steps: int = 0
    reward_threshold: float | None = None
    has_prob: bool = True
    maker: Callable[..., Any] | None = None


TABLES = (
    Table("Blackjack-v1", "Blackjack-v1", has_prob=False, maker=make_blackjack),
    Table("CliffWalking-v0", "CliffWalking-v1"),
    Table("CliffWalking-v1", "CliffWalking-v1"),
    Table("CliffWalkingSlippery-v1", "CliffWalkingSlippery-v1"),
    Table("FrozenLake-v1", "FrozenLake-v1", 100, 0.7),
    Table("FrozenLake8x8-v1", "FrozenLake8x8-v1", 200, 0.85),
    Table("Taxi-v3", "Taxi-v4", 200, 8.0),
)


def tasks() -> list[PoolTask]:
    """Return a task for each id."""
    from pufferlib.envpool.workers import WorkerBackend

    prob = {"prob": Box(0, 1, (), np.float32)}
    return [
        PoolTask(
            table.task_id,
            FAMILY,
            WorkerBackend(
                table.maker or table.name,
                infos=prob if table.has_prob else None,
                draw=draw_table,
                is_limited=True,
                declared_only=True,
            ),
            table.max_episode_steps,
            table.reward_threshold,
            any_keyword=True,
        )
        for table in TABLES
    ]
