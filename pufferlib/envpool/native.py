"""Pools of games of a C environment: those of Ocean, and C files of somebody's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool._native import NativePool
from pufferlib.envpool.pool import PoolSpec
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.arguments import checked_threads
from pufferlib.ocean.env import type_of
from pufferlib.ocean.types import EnvType, spaces_of
from pufferlib.seeding import env_seed

__all__ = ["NativeBackend", "NativePool"]

PLAYER_INFOS = ("players.terminated", "players.truncated", "players.mask")
OWN_LIMIT = "max_steps"  # the parameter of environments that end their episodes after some steps themselves


class NativeBackend:
    """Makes pools of one C environment.

    Args:
        name: One of ``pufferlib.ocean.names()``, or the path of a C file, which is compiled when a pool is described
            or made, if it has changed.
        **params: Keywords of the environment. Those of a task that are called like one of them come first.
    """

    def __init__(self, name: str, **params: Any) -> None:
        self.name, self.params = name, params

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would make.

        Raises:
            UnknownNameError: No such environment, or no such keyword of it.
            APIUsageError: A keyword has a value of the wrong type, or out of range; the compiler refuses the C file.
        """
        env_type = type_of(self.name)
        spec = OceanBatch(env_type.index, 1, self._values(env_type, config), 1).spec
        observation_space, action_space, _ = spaces_of(spec)
        infos = PLAYER_INFOS if spec["agents"] > 1 else ()
        height, width = spec["picture"]
        return PoolSpec(
            observation_space=observation_space,
            action_space=action_space,
            num_players=spec["agents"],
            info_spaces={name: Box(0, 1, (), np.bool_) for name in infos},
            frame_shape=(config.get("render_height") or height, config.get("render_width") or width),
            render_fps=spec["frames_per_second"],
        )

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> NativePool:
        """Make the pool: environment i plays as ``pufferlib.make(name, seed=env_seed[i])`` does.

        Raises:
            APIUsageError: As ``describe`` does.
            PufferError: No helper thread could be started.
        """
        env_type = type_of(self.name)
        wanted = config.get("num_threads", 0)
        threads = checked_threads(env_type.class_name, wanted or "auto")
        return NativePool(
            env_type.index,
            self._values(env_type, config),
            spec,
            [env_seed(seed, 0) for seed in config["env_seed"]],
            config["batch_size"],
            num_threads=min(threads, config["batch_size"]),
            max_episode_steps=config.get("max_episode_steps", 0),
            autoreset=config.get("autoreset", "next_step"),
            copy=config.get("copy", True),
            thread_affinity_offset=config.get("thread_affinity_offset", -1),
        )

    def _values(self, env_type: EnvType, config: Mapping[str, Any]) -> list[float]:
        """Parameters as C takes them. A limit of the environment itself makes way for that of the pool."""
        known = {parameter.name: parameter for parameter in env_type.parameters}
        params = {**self.params, **{name: config[name] for name in known if name in config}}
        limit = config.get("max_episode_steps", 0)
        if limit and OWN_LIMIT in known and OWN_LIMIT not in params:
            own = known[OWN_LIMIT]
            params[OWN_LIMIT] = int(min(max(limit, own.low), own.high))
        return env_type.numbers(params)
