"""Backend for C environments: those of Ocean, and users' own C files."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict

from pufferlib.emulation.layout import observation_layout
from pufferlib.envpool._native import NativePool
from pufferlib.envpool.config import own_keywords
from pufferlib.envpool.pool import Backend, Pool, PoolSpec
from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.arguments import checked_threads
from pufferlib.ocean.env import type_of
from pufferlib.ocean.files import is_c_file
from pufferlib.ocean.types import EnvType, spaces_of
from pufferlib.spaces import Space

__all__ = ["NativeBackend", "NativePool", "TwinBackend"]

PLAYER_INFOS = ("players.terminated", "players.truncated", "players.mask")
OWN_LIMIT = "max_steps"  # parameter of environments with a step limit of their own


class NativeBackend:
    """Backend for one C environment.

    Args:
        name: Name from ``pufferlib.ocean.names()``, or path of a C file. The file is compiled when a pool is described
            or created, if it has changed.
        space: Observation space of batches: a Discrete for a single integer, or a Dict in the layout of emulation. None
            means the Box in C.
        **params: Keyword arguments of the environment. Keyword arguments of a task take precedence over them.
    """

    def __init__(self, name: str, space: Space | None = None, **params: Any) -> None:
        self.name, self.space, self.params = name, space, params

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Return the spec of the environments that ``make`` would create.

        Raises:
            UnknownNameError: There is no such environment or keyword argument.
            APIUsageError: A keyword argument has a wrong type or is out of range, or the C file does not compile.
        """
        env_type = type_of(self.name)
        spec = OceanBatch(env_type.index, 1, self._values(env_type, config), 1).spec
        box, action_space, _ = spaces_of(spec)
        infos = PLAYER_INFOS if spec["agents"] > 1 else ()
        height, width = spec["picture"]
        return PoolSpec(
            observation_space=box if self.space is None else self.space,
            action_space=action_space,
            num_players=spec["agents"],
            info_spaces={**env_type.infos, **{name: Box(0, 1, (), np.bool_) for name in infos}},
            frame_shape=(config.get("render_height") or height, config.get("render_width") or width),
            render_fps=spec["frames_per_second"],
        )

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> NativePool:
        """Create the pool.

        Raises:
            UnknownNameError: There is no such environment or keyword argument.
            APIUsageError: A keyword argument has a wrong type or is out of range, or the C file does not compile.
            PufferError: A helper thread could not be started.
        """
        env_type = type_of(self.name)
        wanted = config.get("num_threads", 0)
        threads = checked_threads(env_type.class_name, wanted or "auto")
        return NativePool(
            env_type.index,
            self._values(env_type, config),
            spec,
            config["env_seed"],
            config["batch_size"],
            num_threads=min(threads, config["batch_size"]),
            max_episode_steps=config.get("max_episode_steps", 0) or self._own_limit(env_type, config),
            autoreset=config.get("autoreset", "next_step"),
            copy=config.get("copy", True),
            thread_affinity_offset=config.get("thread_affinity_offset", -1),
            fields=observation_layout(space).dtype if isinstance(space := spec.observation_space, Dict) else None,
        )

    def _own_limit(self, env_type: EnvType, config: Mapping[str, Any]) -> int:
        limit: int = OceanBatch(env_type.index, 1, self._values(env_type, config), 1).spec["max_steps"]
        return limit

    def _values(self, env_type: EnvType, config: Mapping[str, Any]) -> list[float | bytes]:
        """Return the parameters as C expects them. The step limit of the pool replaces the environment's own limit."""
        known = {parameter.name: parameter for parameter in env_type.parameters}
        given = own_keywords(config)
        if not is_c_file(self.name):  # other tasks have checked them, and may use some for themselves
            given = {name: value for name, value in given.items() if name in known}
        params = {**self.params, **given}
        limit = config.get("max_episode_steps", 0)
        if limit and OWN_LIMIT in known and OWN_LIMIT not in params:
            own = known[OWN_LIMIT]
            params[OWN_LIMIT] = int(min(max(limit, own.low), own.high))
        return env_type.in_c(params)


class TwinBackend:
    """Backend for a Python environment that also exists in C, with the same results.

    The keyword argument ``native=False`` selects the Python environment.

    Args:
        native: Function that returns the backend in C for the task's own keyword arguments, or None if these need the
            Python environment.
        python: Backend of the Python environment.
        draws: Whether the environment in C can render. If not, pools that render use Python.
    """

    def __init__(self, native: Callable[[dict[str, Any]], Backend | None], python: Backend, draws: bool = True) -> None:
        self.native, self.python, self.draws = native, python, draws

    def describe(self, config: Mapping[str, Any]) -> PoolSpec:
        """Return the spec of the environments that ``make`` would create.

        Raises:
            APIUsageError: A keyword argument does not exist, has a wrong type or is out of range.
        """
        backend, config = self._chosen(config)
        return backend.describe(config)

    def make(self, config: Mapping[str, Any], spec: PoolSpec) -> Pool:
        """Create the pool.

        Raises:
            PufferError: A helper thread could not be started, or a Python environment failed.
        """
        backend, config = self._chosen(config)
        return backend.make(config, spec)

    def _chosen(self, config: Mapping[str, Any]) -> tuple[Backend, Mapping[str, Any]]:
        """Return the backend, and the config that it needs."""
        own = own_keywords(config)
        common = {name: value for name, value in config.items() if name not in own}
        is_native = own.pop("native")
        if not isinstance(is_native, bool):
            raise APIUsageError(f"envpool.make: native must be True or False, got {is_native!r:.80}")
        can_draw = self.draws or config["render_mode"] is None
        native = self.native(own) if is_native and can_draw else None
        return (self.python, {**common, **own}) if native is None else (native, common)
