"""Creators of what the workers of a pool run, from classes, functions and names of any kind of environment."""

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

__all__ = ["draw_env", "drawn", "make_env", "time_limit", "users_env"]


Env = Any


def make_env(
    maker: Callable[..., Any] | str,
    keywords: Mapping[str, Any],
    draws: bool,
    is_limited: bool,
    buf: BufferSource = None,
    seed: int = 0,
) -> Env:
    """Make an environment of any kind on given rows, without limits of its own.

    Args:
        maker: A class or function that makes one of Gymnasium, PettingZoo or dm_env, or a ``PufferEnv``; or a name
            that ``pufferlib.make`` knows, whose statistics of episodes are left out.
        keywords: Of it.
        draws: Whether it will be asked for pictures.
        is_limited: Whether the caller cuts off its episodes, so that it need not do so itself.
        buf: Its rows.
        seed: Given to it if it takes one.

    Raises:
        APIUsageError: It makes something else.
    """
    function = registry.env_creator(maker) if isinstance(maker, str) else maker
    known, takes_any = keywords_of(function)
    named = {"buf": buf, "seed": seed, "autoreset": "disabled"}
    given = {name: value for name, value in named.items() if name in known} | dict(keywords)
    if draws and (takes_any or "render_mode" in known):
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
            _lift_time_limit(env)
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


def _lift_time_limit(env: Env) -> None:
    """Take every ``TimeLimit`` of Gymnasium's out of the wrappers of ``env``."""
    layer = env
    while (inner := vars(layer).get("env")) is not None:
        if isinstance(inner, TimeLimit):
            layer.env = inner.env
        else:
            layer = inner


def time_limit(env: Env) -> int | None:
    """Steps after which Gymnasium cuts off the episodes of an emulated environment; None for no such limit."""
    spec = getattr(env.env, "spec", None) if env.emulated else None
    limit = getattr(spec, "max_episode_steps", None)
    return None if limit is None or limit < 0 else int(limit)


Picture = npt.NDArray[np.uint8]


def users_env(env: Any) -> Any:
    """The environment behind the emulation, or a native one itself."""
    return env.env if env.emulated else env


def draw_env(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Draw an environment by its own ``render``, with the one camera and in the one size that it has.

    Raises:
        APIUsageError: It has none.
    """
    try:
        return users_env(env).render()
    except NotImplementedError as error:
        raise APIUsageError(
            f"envpool: {users_env(env)} must have a method render() to be drawn, got none; leave out render_mode and "
            "from_pixels, or write one"
        ) from error


def drawn(env: Any, picture: Any) -> Picture:
    """Check that a picture is one.

    Raises:
        APIUsageError: It is not uint8 ``(height, width, 3)``.
    """
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise APIUsageError(
            f"envpool.render: {users_env(env)} must return a picture, uint8 (height, width, 3), got "
            f"{picture if array.dtype == object else f'{array.dtype} {array.shape}'}; let it draw with render_mode "
            '"rgb_array"'
        )
    return np.ascontiguousarray(array)
