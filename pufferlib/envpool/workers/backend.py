"""Pools of any environment that is written in Python, made by a class, a function or a name."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import COMMON
from pufferlib.envpool.pool import Pool, PoolSpec
from pufferlib.envpool.workers.arrays import channels_first
from pufferlib.envpool.workers.envs import draw_env, make_env
from pufferlib.envpool.workers.options import PLAYER_FLAGS, Draw, PoolDescription, WorkerOptions
from pufferlib.envpool.workers.pool import WorkerPool, describe_env
from pufferlib.machine.cpus import usable_cpus
from pufferlib.spaces import Space
from pufferlib.vector.specs import EnvSpec, VectorSpec

__all__ = ["WorkerBackend", "own_keywords"]

TIMEOUT_S = 120.0


class WorkerBackend:
    """Makes pools of any environment that is written in Python, in worker processes.

    Args:
        maker: A class or function that makes an environment of Gymnasium, PettingZoo (with a fixed number of agents) or
            dm_env, or a ``PufferEnv``; or a name that ``pufferlib.make`` knows: "mujoco/Ant-v5", "mypkg.envs:Forage".
        settings: Makes the keywords of ``maker`` from the config of a pool; None: all that no task has in common.
        infos: Space of one info, by its name: a Box or Discrete of one environment, or of one agent where the name
            begins with "players.". These have an array in every batch, 0 where the environment gave none.
        info_sources: Names that the environments have for some of these, where they do not know the name here.
        draw: Draws an environment, ``(env, camera_id, width, height)``; None: its ``render`` does.
        declared_only: Whether infos without an array are dropped, which spares sending them.
        channels_first_by: Keyword that, where it is True, shows pictures ``(height, width, channels)`` as ``(channels,
            height, width)``; None: no such keyword.
        is_limited: Whether Gymnasium's limit on steps is lifted even where ``max_episode_steps`` is 0.
        timeout_s: Longest that making, resetting or stepping one environment may take; None: for ever.
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
        self._infos, self._info_sources, self._draw = dict(infos or {}), dict(info_sources or {}), draw or draw_env
        self._declared_only, self._channels_first_by = declared_only, channels_first_by
        self._is_limited, self._timeout_s = is_limited, timeout_s

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would make, from one that is made in a process of its own.

        Raises:
            WorkerError: It fails.
            BindingMissing: Its package is not installed.
            APIUsageError: It is none that can be in a pool.
        """
        one = {**config, "num_envs": 1, "batch_size": 1, "env_seed": list(config["env_seed"])[:1]}
        spec = self._pool_spec(describe_env(self._vector_spec(one), self._options(one, True)))
        return replace(spec, observation_space=channels_first(spec.observation_space)) if self._turns(config) else spec

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Make the pool; see ``Backend``.

        Raises:
            WorkerError: An environment fails.
        """
        settings, options = self._vector_spec(config), self._options(config, False)
        return WorkerPool(settings, options, spec, bool(config["copy"]), self._turns(config))

    def _turns(self, config: Mapping[str, Any]) -> bool:
        """Tell if pictures are shown with their channels first."""
        return self._channels_first_by is not None and bool(config[self._channels_first_by])

    def _vector_spec(self, config: Mapping[str, Any]) -> VectorSpec:
        keywords = dict(self._settings(config))
        is_limited = self._is_limited or config["max_episode_steps"] > 0
        creator = functools.partial(make_env, self._maker, keywords, _draws(config), is_limited)
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

    def _options(self, config: Mapping[str, Any], probes: bool) -> WorkerOptions:
        return WorkerOptions(
            autoreset=config["autoreset"],
            limit=config["max_episode_steps"],
            info_spaces=self._infos,
            info_sources=self._info_sources,
            declared_only=self._declared_only,
            draw=self._draw,
            size=(config["render_width"], config["render_height"]),
            affinity=config["thread_affinity_offset"],
            probes=probes,
            draws=_draws(config),
        )

    def _pool_spec(self, description: PoolDescription) -> PoolSpec:
        agents = description.num_agents
        dtype: Any = np.bool_  # which Gymnasium's types leave out
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


def own_keywords(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of ``config`` that are not those of every task."""
    return {name: value for name, value in config.items() if name not in COMMON and name != "env_seed"}


def _draws(config: Mapping[str, Any]) -> bool:
    return config["render_mode"] is not None or bool(config["from_pixels"])
