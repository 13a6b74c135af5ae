"""Backend for Python environments, given by a class, a function or a name."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import own_keywords
from pufferlib.envpool.pool import Pool, PoolSpec
from pufferlib.envpool.workers.arrays import channels_first
from pufferlib.envpool.workers.envs import make_env, render_env
from pufferlib.envpool.workers.options import PLAYER_FLAGS, Draw, PoolDescription, WorkerOptions
from pufferlib.envpool.workers.pool import WorkerPool, describe_env
from pufferlib.machine.cpus import usable_cpus
from pufferlib.spaces import Space
from pufferlib.vector.specs import EnvSpec, VectorSpec

__all__ = ["WorkerBackend"]

TIMEOUT_S = 120.0


class WorkerBackend:
    """Backend for Python environments in worker processes.

    Args:
        maker: Class or function that makes a Gymnasium, PettingZoo (with a fixed number of agents) or dm_env
            environment or a ``PufferEnv``, or a name that ``pufferlib.make`` accepts: "mujoco/Ant-v5",
            "mypkg.envs:Forage".
        settings: Function that returns the keyword arguments of ``maker`` for a pool config. None means all keyword
            arguments that are not common to all tasks.
        infos: Space of each declared info, by name: a Box or Discrete per environment, or per agent if the name starts
            with "players.". Declared infos have an array in every batch, 0 if the environment did not report one.
        info_sources: Names that environments use for some declared infos, where they differ.
        draw: Function ``(env, camera_id, width, height)`` that returns a frame. None means the environment's
            ``render``.
        declared_only: Whether other infos are dropped, which saves sending them.
        channels_first_by: Keyword argument that, if True, transposes images from ``(height, width, channels)`` to
            ``(channels, height, width)``. None means that there is none.
        is_limited: Whether Gymnasium's step limit is removed even if ``max_episode_steps`` is 0.
        timeout_s: Timeout for creating, resetting or stepping one environment, in seconds. None means no timeout.
    """

    def __init__(
        self,
        maker: Callable[..., Any] | str,
        settings: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        infos: Mapping[str, Space] | None = None,
        info_sources: Mapping[str, str] | None = None,
        draw: Draw | None = None,
        declared_only: bool = False,
        channels_first_by: str | None = None,
        is_limited: bool = False,
        timeout_s: float | None = TIMEOUT_S,
    ) -> None:
        self._maker, self._settings = maker, settings or own_keywords
        self._infos, self._info_sources, self._draw = dict(infos or {}), dict(info_sources or {}), draw or render_env
        self._declared_only, self._channels_first_by = declared_only, channels_first_by
        self._is_limited, self._timeout_s = is_limited, timeout_s

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Return the spec of the environments that ``make`` would create, from one that is created in its own process.

        Raises:
            WorkerError: The environment failed.
            BindingMissing: The package of the environment is not installed.
            APIUsageError: The environment cannot be used in a pool.
        """
        one = {**config, "num_envs": 1, "batch_size": 1, "env_seed": list(config["env_seed"])[:1]}
        spec = self._pool_spec(describe_env(self._vector_spec(one), self._options(one, True)))
        if self._is_channels_first(config):
            return replace(spec, observation_space=channels_first(spec.observation_space))
        return spec

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Create the pool.

        Raises:
            WorkerError: An environment failed.
        """
        settings, options = self._vector_spec(config), self._options(config, False)
        return WorkerPool(settings, options, spec, bool(config["copy"]), self._is_channels_first(config))

    def _is_channels_first(self, config: Mapping[str, Any]) -> bool:
        """Return whether images are transposed to channels first."""
        return self._channels_first_by is not None and bool(config[self._channels_first_by])

    def _vector_spec(self, config: Mapping[str, Any]) -> VectorSpec:
        keywords = dict(self._settings(config))
        is_limited = self._is_limited or config["max_episode_steps"] > 0
        creator = functools.partial(make_env, self._maker, keywords, _renders(config), is_limited)
        seeds = [int(seed) % 2**32 for seed in config["env_seed"]]
        threads = config["num_threads"] or min(config["batch_size"], usable_cpus())
        return VectorSpec(
            envs=tuple(EnvSpec(index, creator, (), {}, seed) for index, seed in enumerate(seeds)),
            batch_size=config["batch_size"],
            num_workers=min(threads, config["num_envs"]),
            zero_copy=False,
            autoreset=None,
            seed=seeds[0],
            timeout_s=self._timeout_s,
            on_crash="raise",
            hide_output=False,
        )

    def _options(self, config: Mapping[str, Any], is_probe: bool) -> WorkerOptions:
        return WorkerOptions(
            autoreset=config["autoreset"],
            limit=config["max_episode_steps"],
            info_spaces=self._infos,
            info_sources=self._info_sources,
            declared_only=self._declared_only,
            draw=self._draw,
            size=(config["render_width"], config["render_height"]),
            affinity=config["thread_affinity_offset"],
            is_probe=is_probe,
            renders=_renders(config),
        )

    def _pool_spec(self, description: PoolDescription) -> PoolSpec:
        agents = description.num_agents
        dtype: Any = np.bool_  # Gymnasium's type hints do not allow bool
        flag = Box(np.array(False), np.array(True), dtype=dtype)
        flags = dict.fromkeys(PLAYER_FLAGS, flag) if agents > 1 else {}
        height, width, fps = description.frame or (0, 0, 15.0)
        return PoolSpec(
            observation_space=description.observations,
            action_space=description.single_action_space,
            num_players=agents,
            info_spaces={**self._infos, **flags},
            frame_shape=(height, width) if description.frame else None,
            render_fps=fps,
            reward_threshold=description.reward_threshold,
        )


def _renders(config: Mapping[str, Any]) -> bool:
    return config["render_mode"] is not None or bool(config["from_pixels"])
