"""Keyword arguments of ``make`` that every task accepts, with their defaults and checks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pufferlib.env import AutoresetMode
from pufferlib.envpool.pool import PoolTask
from pufferlib.errors import APIUsageError, UnknownKeywordError, UnknownNameError

__all__ = [
    "COMMON",
    "RENDER_MODES",
    "backend_config",
    "checked_config",
    "checked_int",
    "checked_seed",
    "own_keywords",
    "pool_seeds",
]

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
MAX_PIXELS = 4096
RENDER_MODES = ("rgb_array", "human")

#: Keyword arguments that every task accepts, with their defaults. None means the default of the task.
COMMON: Mapping[str, Any] = {
    "num_envs": 1,
    "batch_size": None,
    "num_threads": 0,
    "max_num_players": None,
    "thread_affinity_offset": -1,
    "seed": 42,
    "gym_reset_return_info": True,
    "max_episode_steps": None,
    "reward_threshold": None,
    "render_mode": None,
    "render_env_id": 0,
    "render_width": None,
    "render_height": None,
    "render_camera_id": -1,
    "from_pixels": False,
    "frame_stack": 1,
    "autoreset": "next_step",
    "copy": True,
}

DEFAULT_PX = 84  # default height and width of image observations


def checked_config(where: str, task: PoolTask, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return all keyword arguments of a task, checked and with defaults.

    ``env_seed`` is a list with one seed per environment, or empty. ``max_num_players`` is not compared with the number
    of players here, because only the environment knows it.

    Args:
        where: Prefix of error messages.
        task: Task. Its backend checks the task's own keyword arguments.
        keywords: Keyword arguments given to ``make``.

    Raises:
        UnknownNameError: There is no such keyword argument or mode.
        APIUsageError: A value has a wrong type or is out of range.
    """
    keywords = _with_seed(where, keywords)
    for name in keywords if not task.any_keyword else ():
        if name not in COMMON and name not in task.keywords:
            raise UnknownKeywordError.of(where, "keyword argument", name, {*COMMON, *task.keywords})
    given = {**COMMON, **task.keywords, **keywords}
    config = _sizes(where, given)
    config["seed"], config["env_seed"] = checked_seed(where, given["seed"], config["num_envs"])
    config["gym_reset_return_info"] = _flag(where, "gym_reset_return_info", given["gym_reset_return_info"])
    limit = given["max_episode_steps"]
    config["max_episode_steps"] = (
        task.max_episode_steps if limit is None else checked_int(where, "max_episode_steps", limit, 0)
    )
    config["reward_threshold"] = _threshold(where, given["reward_threshold"], task.reward_threshold)
    config |= _render_settings(where, given, config["num_envs"])
    config["autoreset"] = str(AutoresetMode.of(where, given["autoreset"]))
    config["copy"] = _flag(where, "copy", given["copy"])
    return config | {name: value for name, value in given.items() if name not in COMMON}


def _with_seed(where: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments with ``env_seed``, if given, moved to ``seed``."""
    given = dict(keywords)
    seeds = given.pop("env_seed", ())
    if not isinstance(seeds, Sequence | np.ndarray) or isinstance(seeds, str):
        raise APIUsageError(f"{where}: env_seed must be a list with a seed for each environment, got {seeds!r:.80}")
    if len(seeds):
        if isinstance(given.get("seed", 0), Sequence | np.ndarray):
            raise APIUsageError(f"{where}: seeds must be given as seed or as env_seed, got both; leave out env_seed")
        given["seed"] = seeds
    return given


def backend_config(config: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """Return the config for a ``Backend``, which renders only "rgb_array" and does not know ``from_pixels``."""
    draws = config["render_mode"] is not None or config["from_pixels"]
    return {**config, "env_seed": list(seeds), "render_mode": "rgb_array" if draws else None}


def pool_seeds(config: Mapping[str, Any]) -> list[int]:
    """Return the seed of each environment, from 0 to 2**32 - 1: its own seed, or the common seed plus its index."""
    own = config["env_seed"] or range(config["seed"], config["seed"] + config["num_envs"])
    return [seed % 2**32 for seed in own]


def checked_int(where: str, name: str, value: Any, low: int, high: int = INT32_MAX) -> int:
    """Return ``value`` as an int from ``low`` to ``high``.

    Raises:
        APIUsageError: It is not an int in this range.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise APIUsageError(f"{where}: {name} must be an int from {low} to {high}, got {value!r:.80}")
    return int(value)


def _sizes(where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    num_envs = checked_int(where, "num_envs", given["num_envs"], 1)
    batch_size = given["batch_size"]
    batch_size = 0 if batch_size is None else checked_int(where, "batch_size", batch_size, 0)
    if batch_size > num_envs:
        raise APIUsageError(
            f"{where}: batch_size must be from 0 (all) to num_envs, which is {num_envs}, got {batch_size}; give more "
            "environments or a smaller batch"
        )
    players = given["max_num_players"]
    return {
        "num_envs": num_envs,
        "batch_size": batch_size or num_envs,
        "num_threads": checked_int(where, "num_threads", given["num_threads"], 0),
        "max_num_players": None if players is None else checked_int(where, "max_num_players", players, 1),
        "thread_affinity_offset": checked_int(where, "thread_affinity_offset", given["thread_affinity_offset"], -1),
    }


def checked_seed(where: str, seed: Any, num_envs: int) -> tuple[int, list[int]]:
    """Return the common seed and an empty list, or 0 and a list with one seed per environment.

    Raises:
        APIUsageError: The seed is neither an int nor a sequence of ``num_envs`` ints, or does not fit into int32.
    """
    if not isinstance(seed, list | tuple | range | np.ndarray):
        return checked_int(where, "seed", seed, INT32_MIN, INT32_MAX - num_envs + 1), []
    if (isinstance(seed, np.ndarray) and seed.ndim != 1) or len(seed) != num_envs:
        raise APIUsageError(
            f"{where}: seed must be one int, or a sequence of num_envs, which is {num_envs}, got {seed!r:.80}; give "
            "each environment one"
        )
    return 0, [checked_int(where, f"seed[{i}]", each, INT32_MIN) for i, each in enumerate(seed)]


def _choice(where: str, name: str, value: Any, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise UnknownNameError.of(where, name, value, known)
    return value


def _flag(where: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise APIUsageError(f"{where}: {name} must be True or False, got {value!r:.80}")
    return bool(value)


def _threshold(where: str, given: Any, default: float | None) -> float | None:
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
        raise APIUsageError(f"{where}: reward_threshold must be a number or None, got {given!r:.80}")
    return float(given)


def _render_settings(where: str, given: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
    mode = given["render_mode"]
    from_pixels = _flag(where, "from_pixels", given["from_pixels"])
    sizes: dict[str, int | None] = {}
    for name in ("render_width", "render_height"):
        size = given[name]
        sizes[name] = DEFAULT_PX if size is None and from_pixels else size
        if sizes[name] is not None:
            sizes[name] = checked_int(where, name, sizes[name], 1, MAX_PIXELS)
    return {
        "render_mode": None if mode is None else _choice(where, "render_mode", mode, RENDER_MODES),
        "render_env_id": checked_int(where, "render_env_id", given["render_env_id"], 0, num_envs - 1),
        **sizes,
        "render_camera_id": checked_int(where, "render_camera_id", given["render_camera_id"], -1),
        "from_pixels": from_pixels,
        "frame_stack": checked_int(where, "frame_stack", given["frame_stack"], 1, 1024),
    }


def own_keywords(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments in ``config`` that are not common to all tasks."""
    return {name: value for name, value in config.items() if name not in COMMON and name != "env_seed"}
