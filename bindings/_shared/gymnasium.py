"""Shared parts of bindings to environments registered with Gymnasium: ids, options, quiet imports."""

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

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.registry.creators import keywords_of
from pufferlib.wrappers import ClipAction

from .options import check_counts, check_render_mode, check_switches

__all__ = ["ChannelsFirst", "control_task", "environment", "full_id", "quiet_pygame", "registered"]

Env = gymnasium.Env[Any, Any]

_HANDLED = frozenset({"self", "render_mode"})


def full_id(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The id that ``name`` is short for: the version may be left out, which means the newest, and so may ``prefix``.

    A name that is short for none is returned as it is.
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
    """The environment that Gymnasium knows as ``env_id``, without the checks that are the emulation's task.

    Args:
        where: Its name, for messages: "classic/CartPole-v1".
        env_id: Its id.
        options: Keywords of its class.
        render_mode: None or "rgb_array".
        max_episode_steps: The length at which an episode is cut off; None is the environment's own.

    Raises:
        UnknownNameError: An option that the class does not take; the nearest are suggested.
        APIUsageError: The class refuses a value.
    """
    check_render_mode(where, render_mode)
    if max_episode_steps is not None:
        check_counts(where, max_episode_steps=max_episode_steps)
    spec = copy.deepcopy(gymnasium.spec(env_id))
    spec.order_enforce = False
    known = {*keywords_of(load_env_creator(str(spec.entry_point)))[0], *spec.kwargs} - _HANDLED
    for option in options.keys() - known:
        raise UnknownNameError.of(where, "option", option, known)
    try:
        env = gymnasium.make(spec, max_episode_steps, True, render_mode=render_mode, **options)
    except (AssertionError, TypeError, ValueError) as error:
        raise APIUsageError(f"{where}: cannot be made with {dict(options)}: {error}") from error
    metadata = env.unwrapped.metadata
    kept = [mode for mode in metadata["render_modes"] if mode in ("rgb_array", "state_pixels")]  # CarRacing's own
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
    """Make an environment with ``registered``; with ``clip_action`` it clips any real action to the Box.

    Raises:
        UnknownNameError: An option that neither this function nor the class takes.
        APIUsageError: A value is of the wrong type or out of its range.
    """
    check_switches(where, clip_action=clip_action)
    env = registered(where, env_id, options, render_mode, max_episode_steps)
    return ClipAction(env) if clip_action and isinstance(env.action_space, Box) else env


class ChannelsFirst(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Shows pictures ``(height, width, channels)`` as ``(channels, height, width)``, as NatureCNN takes them."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        low, high = space.low.transpose(2, 0, 1), space.high.transpose(2, 0, 1)
        self.observation_space = Box(low, high, low.shape, np.uint8)

    def observation(self, observation: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """A view of the picture."""
        return observation.transpose(2, 0, 1)


def quiet_pygame() -> contextlib.AbstractContextManager[None]:
    """In the block, importing pygame prints no greeting."""
    return environment(PYGAME_HIDE_SUPPORT_PROMPT="1")


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """In the block, the environment variables have these values."""
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
