"""Code shared by bindings to environments registered with Gymnasium: ids, options, silent imports."""

import contextlib
import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from pufferlib.errors import UnknownKeywordError
from pufferlib.registry.creators import keywords_of, rejections_named
from pufferlib.wrappers import ClipAction

from .options import check_counts, check_render_mode, check_switches

__all__ = ["ChannelsFirst", "control_task", "environment", "full_id", "quiet_pygame", "registered"]

Env = gymnasium.Env[Any, Any]

_HANDLED = frozenset({"self", "render_mode"})


def full_id(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the full id for ``name``, which may omit the version (meaning the newest) and ``prefix``.

    Other names are returned unchanged.
    """
    versions: dict[str, int] = {}
    for env_id in known:
        stem, _, version = env_id.rpartition("-v")
        versions[stem] = max(versions.get(stem, 0), int(version))
    for candidate in (name, prefix + name):
        if candidate in versions:
            return f"{candidate}-v{versions[candidate]}"
        if candidate in known:
            return candidate
    return name


def registered(
    where: str, env_id: str, options: Mapping[str, Any], render_mode: str | None, max_episode_steps: int | None = None
) -> Env:
    """Make the environment registered with Gymnasium as ``env_id``, without the checks that emulation does itself.

    Args:
        where: Name for error messages, for example "classic/CartPole-v1".
        env_id: Id of the environment.
        options: Keyword arguments of its class.
        render_mode: None or "rgb_array".
        max_episode_steps: Episode length for truncation. None is the environment's own.

    Raises:
        UnknownKeywordError: The class has no such option. The error suggests similar names.
        APIUsageError: The class rejects a value.
    """
    check_render_mode(where, render_mode)
    if max_episode_steps is not None:
        check_counts(where, max_episode_steps=max_episode_steps)
        max_episode_steps = int(max_episode_steps)  # Gymnasium accepts only Python's
    spec = copy.deepcopy(gymnasium.spec(env_id))
    spec.order_enforce = False
    known = {*keywords_of(load_env_creator(str(spec.entry_point)))[0], *spec.kwargs} - _HANDLED
    for option in options.keys() - known:
        raise UnknownKeywordError.of(where, "keyword argument", option, known)
    with rejections_named(where, options):
        env = gymnasium.make(spec, max_episode_steps, True, render_mode=render_mode, **options)
    metadata = env.unwrapped.metadata
    kept = [mode for mode in metadata["render_modes"] if mode in ("rgb_array", "state_pixels")]  # or CarRacing's
    env.unwrapped.metadata = {**metadata, "render_modes": kept}
    return env


def control_task(
    where: str,
    env_id: str,
    /,
    *,
    max_episode_steps: int | None = None,
    clip_action: bool = False,
    render_mode: str | None = None,
    **options: Any,
) -> Env:
    """Make an environment with ``registered``. With ``clip_action``, it clips any real action to the Box.

    Raises:
        UnknownKeywordError: Neither this function nor the class has such an option.
        APIUsageError: A value has the wrong type or is out of range.
    """
    check_switches(where, clip_action=clip_action)
    env = registered(where, env_id, options, render_mode, max_episode_steps)
    return ClipAction(env) if clip_action and isinstance(env.action_space, Box) else env


class ChannelsFirst(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Transposes images from ``(height, width, channels)`` to ``(channels, height, width)``, as NatureCNN expects."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        low, high = space.low.transpose(2, 0, 1), space.high.transpose(2, 0, 1)
        self.observation_space = Box(low, high, low.shape, np.uint8)

    def observation(self, observation: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a view of the image."""
        return observation.transpose(2, 0, 1)


def quiet_pygame() -> contextlib.AbstractContextManager[None]:
    """Suppress pygame's greeting on import inside the block."""
    return environment(PYGAME_HIDE_SUPPORT_PROMPT="1")


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
