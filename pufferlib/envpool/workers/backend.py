"""Pools of any environment that is written in Python, made by a class, a function or a name."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.pool import Pool, PoolSpec
from pufferlib.envpool.workers.creators import make_env
from pufferlib.envpool.workers.draw import draw_env
from pufferlib.envpool.workers.options import PLAYER_FLAGS, Draw, PoolDescription, WorkerOptions
from pufferlib.envpool.workers.pool import WorkerPool, describe_env
from pufferlib.machine.cpus import usable_cpus
from pufferlib.spaces import Space
from pufferlib.vector.specs import EnvSpec, VectorSpec

__all__ = ["COMMON", "WorkerBackend"]

#: Keywords of ``make`` that every task has; all others are for what makes the environments.
COMMON = frozenset(
    "num_envs batch_size num_threads max_num_players thread_affinity_offset seed env_seed gym_reset_return_info "
    "max_episode_steps reward_threshold render_mode render_env_id render_width render_height render_camera_id "
    "from_pixels frame_stack autoreset copy base_path".split()
)

TIMEOUT_S = 120.0


class WorkerBackend:
    """Makes pools of any environment that is written in Python, in worker processes.

    Args:
        maker: A class or function that makes an environment of Gymnasium, PettingZoo (with a fixed number of agents) or
            dm_env, or a ``PufferEnv``; or a name that ``pufferlib.make`` knows: "mujoco/Ant-v5", "mypkg.envs:Forage".
        settings: Makes the keywords of ``maker`` from the config of a pool; None: all that no task has in common.
        infos: Space of one info, by its name: a Box or Discrete of one environment, or of one agent where the name
            begins with "players.". These have an array in every batch, 0 where the environment gave none.
        draw: Draws an environment, ``(env, camera_id, width, height)``; None: its ``render`` does.
        is_limited: Whether Gymnasium's limit on steps is lifted even where ``max_episode_steps`` is 0.
        timeout_s: Longest that making, resetting or stepping one environment may take; None: for ever.
    """

    def __init__(
        self,
        maker: Callable[..., Any] | str,
        settings: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        infos: Mapping[str, Space] | None = None,
        draw: Draw | None = None,
        is_limited: bool = False,
        timeout_s: float | None = TIMEOUT_S,
    ) -> None:
        self._maker, self._settings = maker, settings or own_keywords
        self._infos, self._draw = dict(infos or {}), draw or draw_env
        self._is_limited, self._timeout_s = is_limited, timeout_s

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Describe the environments that ``make`` would make, from one that is made in a process of its own.

        Raises:
            WorkerError: It fails.
            BindingMissing: Its package is not installed.
            APIUsageError: It is none that can be in a pool.
        """
        one = {**config, "num_envs": 1, "batch_size": 1, "env_seed": list(config["env_seed"])[:1]}
        return self._pool_spec(describe_env(self._vector_spec(one), self._options(one, True)))

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Make the pool; see ``Backend``.

        Raises:
            WorkerError: An environment fails.
        """
        return WorkerPool(self._vector_spec(config), self._options(config, False), spec, bool(config["copy"]))

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
            draw=self._draw,
            size=(config["render_width"], config["render_height"]),
            affinity=config["thread_affinity_offset"],
            probes=probes,
            draws=_draws(config),
        )

    def _pool_spec(self, description: PoolDescription) -> PoolSpec:
        agents = description.num_agents
        flags = {name: Box(np.array(False), np.array(True), dtype=np.bool_) for name in PLAYER_FLAGS} if agents > 1 else {}
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
    return {name: value for name, value in config.items() if name not in COMMON}


def _draws(config: Mapping[str, Any]) -> bool:
    return config["render_mode"] is not None or bool(config["from_pixels"])
