"""Tasks of Atari: 104 games of the Arcade Learning Environment, with EnvPool's preprocessing and options."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import checked_int
from pufferlib.envpool.pool import Pool, PoolSpec, PoolTask
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError
from pufferlib.registry import names
from pufferlib.spaces import Space

__all__ = ["AtariBackend", "tasks"]

MAX_EPISODE_STEPS = 27_000  # half an hour at 4 frames per step
RAM_BYTES = 128
MAX_SIDE = 4096  # px
MAX_FRAMES = 1024  # per step or stack

KEYWORDS: Mapping[str, Any] = {
    "stack_num": 4,
    "frame_skip": 4,
    "noop_max": 30,
    "zero_discount_on_life_loss": False,
    "episodic_life": False,
    "reward_clip": False,
    "use_fire_reset": True,
    "img_height": 84,
    "img_width": 84,
    "mode": -1,
    "difficulty": -1,
    "full_action_space": False,
    "repeat_action_probability": 0.0,
    "use_inter_area_resize": True,
    "gray_scale": True,
}

#: Smallest and largest value of each int keyword argument.
LIMITS = {
    "stack_num": (1, MAX_FRAMES),
    "frame_skip": (1, MAX_FRAMES),
    "noop_max": (0, 10_000),
    "img_height": (1, MAX_SIDE),
    "img_width": (1, MAX_SIDE),
    "mode": (-1, 255),
    "difficulty": (-1, 255),
}

INFOS: Mapping[str, Space] = {
    "lives": Box(0, 2**31 - 1, (), np.int32),
    "reward": Box(-np.inf, np.inf, (), np.float32),
    "terminated": Box(0, 1, (), np.int32),
    "ram": Box(0, 255, (RAM_BYTES,), np.uint8),
}
DISCOUNT: Mapping[str, Space] = {"discount": Box(0, 1, (), np.float32)}


def tasks() -> list[PoolTask]:
    """Return the tasks of the family ``atari``."""
    return [
        PoolTask(
            f"{''.join(word.capitalize() for word in game.split('_'))}-v5",
            "atari",
            AtariBackend(game),
            max_episode_steps=MAX_EPISODE_STEPS,
            keywords=KEYWORDS,
            extra="atari",
        )
        for game in names("atari")
    ]


class AtariBackend:
    """Backend for one Atari game. It uses worker processes, because the emulator holds Python's global lock.

    Args:
        game: Name of the game in the binding "atari".
    """

    def __init__(self, game: str) -> None:
        self._game = game

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would create.

        Raises:
            APIUsageError: A keyword argument has a wrong type, is out of range, or does not exist for the game.
            BindingMissing: ale-py is not installed.
        """
        return self._workers(config).describe(config)

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Create the pool.

        Raises:
            WorkerError: An environment failed.
        """
        return self._workers(config).make(config, spec)

    def _workers(self, config: Mapping[str, Any]) -> WorkerBackend:
        options = _options(f"envpool ({self._game})", config)
        infos = {**INFOS, **(DISCOUNT if config["zero_discount_on_life_loss"] else {})}
        return WorkerBackend(f"atari/{self._game}", lambda _: options, infos)


def _options(where: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the binding for the keyword arguments of a task."""
    given = {name: config[name] for name in KEYWORDS}
    for name, (low, high) in LIMITS.items():
        given[name] = checked_int(where, name, given[name], low, high)
    for name, default in KEYWORDS.items():
        if isinstance(default, bool) and not isinstance(given[name], bool | np.bool_):
            raise APIUsageError(f"{where}: {name} must be True or False, got {given[name]!r:.80}")
    return {
        "rules": "envpool",
        "stack": given["stack_num"],
        "size": (given["img_height"], given["img_width"]),
        "fire_reset": bool(given["use_fire_reset"]),
        "grey": bool(given["gray_scale"]),
        "area_resize": bool(given["use_inter_area_resize"]),
        "max_steps": config["max_episode_steps"],
        "mode": None if given["mode"] < 0 else given["mode"],
        "difficulty": None if given["difficulty"] < 0 else given["difficulty"],
        **{name: given[name] for name in ("frame_skip", "noop_max", "repeat_action_probability", "full_action_space")},
        **{name: bool(given[name]) for name in ("episodic_life", "reward_clip", "zero_discount_on_life_loss")},
    }
