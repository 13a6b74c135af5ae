"""Atari: 104 games of the Arcade Learning Environment, as ``Pong-v5``, with EnvPool's preprocessing and options."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import checked_int
from pufferlib.envpool.pool import Pool, PoolSpec
from pufferlib.envpool.tasks import PoolTask
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

if TYPE_CHECKING:
    from pufferlib.envpool.workers import WorkerBackend

__all__ = ["AtariBackend", "tasks"]

FAMILY = "atari"
MAX_EPISODE_STEPS = 27_000  # half an hour, by 4 frames a step
RAM_BYTES = 128
MAX_SIDE = 4096  # px
MAX_FRAMES = 1024  # of a step or a stack

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

#: Least and greatest values of those that are ints.
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
    """Return a task for each game."""
    from pufferlib.registry import names

    return [
        PoolTask(
            f"{''.join(word.capitalize() for word in game.split('_'))}-v5",
            FAMILY,
            AtariBackend(game),
            max_episode_steps=MAX_EPISODE_STEPS,
            keywords=KEYWORDS,
            extra="atari",
        )
        for game in names("atari")
    ]


class AtariBackend:
    """Makes pools of one game, in worker processes: the emulator holds Python's lock, so that threads would wait.

    Args:
        game: Its name in the binding "atari".
    """

    def __init__(self, game: str) -> None:
        self._game = game

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would make; see ``Backend``.

        Raises:
            APIUsageError: A keyword is of a wrong type, out of its range, or not one that the game has.
            BindingMissing: ale-py is not installed.
        """
        return self._workers(config).describe(config)

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Make the pool; see ``Backend``.

        Raises:
            WorkerError: An environment fails.
        """
        return self._workers(config).make(config, spec)

    def _workers(self, config: Mapping[str, Any]) -> "WorkerBackend":
        from pufferlib.envpool.workers import WorkerBackend

        options = _options(f"envpool ({self._game})", config)
        infos = {**INFOS, **(DISCOUNT if config["zero_discount_on_life_loss"] else {})}
        return WorkerBackend(f"atari/{self._game}", lambda _: options, infos)


def _options(where: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the binding from the keywords of a task."""
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
