"""One task of MineRL, through the old gym that it is made for."""

from typing import Any

import gym
import minerl  # noqa: F401 - registers its tasks with gym

from pufferlib.emulation.old_api import GymToGymnasium

from .._options import check_render_mode

__all__ = ["make_game"]


def make_game(name: str, *, render_mode: str | None = None) -> GymToGymnasium:
    """The task ``name``; the game itself starts with the first reset.

    Raises:
        APIUsageError: ``render_mode`` is neither None nor "rgb_array".
    """
    check_render_mode(f"minerl/{name}", render_mode)
    env: Any = gym.make(name)
    return GymToGymnasium(env, render_mode)
