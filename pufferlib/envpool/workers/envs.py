"""Functions of worker processes that create, describe and render one environment of any kind."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.wrappers import TimeLimit

from pufferlib import registry
from pufferlib.buffers import BufferSource
from pufferlib.emulation import DMEnvToGymnasium, GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.emulation.dm_env import is_dm_env
from pufferlib.emulation.legacy_api import converted
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.registry.creators import keywords_of
from pufferlib.wrappers import EpisodeStats, MultiagentEpisodeStats

__all__ = ["checked_frame", "inner_env", "make_env", "render_env", "time_limit"]


Env = Any


def make_env(
    maker: Callable[..., Any] | str,
    keywords: Mapping[str, Any],
    renders: bool,
    is_limited: bool,
    buf: BufferSource = None,
    seed: int = 0,
) -> Env:
    """Create an environment of any kind that writes into given buffers.

    Args:
        maker: Class or function that makes a Gymnasium, PettingZoo or dm_env environment or a ``PufferEnv``, or a name
            that ``pufferlib.make`` accepts. The episode statistics of named environments are removed.
        keywords: Keyword arguments of ``maker``.
        renders: Whether the environment must be able to render.
        is_limited: Whether the caller truncates episodes. Gymnasium's ``TimeLimit`` wrappers are then removed.
        buf: Buffers of the environment.
        seed: Seed, passed if ``maker`` accepts one.

    Raises:
        APIUsageError: ``maker`` returns something else.
    """
    function = registry.env_creator(maker) if isinstance(maker, str) else maker
    known, takes_any = keywords_of(function)
    named = {"buf": buf, "seed": seed, "autoreset": "disabled"}
    given = {name: value for name, value in named.items() if name in known} | dict(keywords)
    if renders and (takes_any or "render_mode" in known):
        given.setdefault("render_mode", "rgb_array")
    env = function(**given)
    try:
        if isinstance(env, PufferEnv) and not env.emulated:
            return env
        if not getattr(env, "emulated", False):
            env = _emulated(env, buf)
        if isinstance(maker, str) and isinstance(env.env, EpisodeStats | MultiagentEpisodeStats):
            env.env = env.env.env
        if is_limited:
            _remove_time_limits(env)
        return env
    except BaseException:
        if callable(close := getattr(env, "close", None)):
            close()
        raise


def _emulated(env: Env, buf: BufferSource) -> Env:
    if isinstance(env, type) or not hasattr(env, "step"):
        raise APIUsageError(
            f"envpool: expected an environment of Gymnasium, PettingZoo or dm_env, or a PufferEnv, got {env!r:.80}; "
            "return one from the class or function that makes it"
        )
    env = DMEnvToGymnasium(env) if is_dm_env(env) else converted(env)
    kind: Any = GymnasiumPufferEnv if isinstance(env, gymnasium.Env) else PettingZooPufferEnv
    return kind(env, buf=buf)


def _remove_time_limits(env: Env) -> None:
    """Remove every Gymnasium ``TimeLimit`` from the wrappers of ``env``."""
    layer = env
    while (inner := vars(layer).get("env")) is not None:
        if isinstance(inner, TimeLimit):
            layer.env = inner.env
        else:
            layer = inner


def time_limit(env: Env) -> int | None:
    """Return the number of steps after which Gymnasium truncates the episodes of an emulated environment, or None."""
    spec = getattr(env.env, "spec", None) if env.emulated else None
    limit = getattr(spec, "max_episode_steps", None)
    return None if limit is None or limit < 0 else int(limit)


FrameArray = npt.NDArray[np.uint8]


def inner_env(env: Any) -> Any:
    """Return the environment inside the emulation, or the environment itself if it is native."""
    return env.env if env.emulated else env


def render_env(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Call the environment's own ``render``, which has one camera and one size.

    Raises:
        APIUsageError: It has no ``render``.
    """
    try:
        return inner_env(env).render()
    except NotImplementedError as error:
        raise APIUsageError(
            f"envpool: {inner_env(env)} must have a method render() to be drawn, got none; leave out render_mode and "
            "from_pixels, or write one"
        ) from error


def checked_frame(env: Any, frame: Any) -> FrameArray:
    """Return a frame as a contiguous array.

    Raises:
        APIUsageError: It is not uint8 ``(height, width, 3)``.
    """
    array = np.asarray(frame)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise APIUsageError(
            f"envpool.render: {inner_env(env)} must return a picture, uint8 (height, width, 3), got "
            f"{frame if array.dtype == object else f'{array.dtype} {array.shape}'}; let it draw with render_mode "
            '"rgb_array"'
        )
    return np.ascontiguousarray(array)
