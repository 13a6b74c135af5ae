"""One MineRL task, made with the old gym."""

from typing import Any

import gym
import minerl  # noqa: F401 - registers its tasks with gym

from pufferlib.emulation.legacy_api import GymToGymnasium

from .._shared.options import check_render_mode

__all__ = ["make_env"]


def make_env(name: str, *, render_mode: str | None = None) -> GymToGymnasium:
    """Make the task ``name``. Minecraft itself starts with the first reset.

    Raises:
        APIUsageError: ``render_mode`` is neither None nor "rgb_array".
    """
    check_render_mode(f"minerl/{name}", render_mode)
    env: Any = gym.make(name)
    return GymToGymnasium(env, render_mode)
