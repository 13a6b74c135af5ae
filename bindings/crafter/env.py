"""Crafter as a Gymnasium environment with reproducible seeds, fast world generation and useful infos."""

import collections
import fcntl
import importlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from numba.core import dispatcher

from .._shared.gym_alias import gym_is_gymnasium
from .._shared.gymnasium import ChannelsFirst
from .._shared.options import check_counts, check_render_mode, check_switches

__all__ = ["CrafterEnv", "make_env"]

Pixels = npt.NDArray[np.uint8]
Info = dict[str, Any]


def _compile_noise() -> None:
    """Import OpenSimplex and compile its noise function with numba, once for all processes of this machine.

    Numba caches compiled code beside the package, or in the user's cache folder if that is read-only. If neither is
    writable, the import would fail, so each process compiles without a cache. With the lock, workers that start
    together wait 2 s for the first one, instead of all compiling the same code.
    """
    compiled: Any = dispatcher.Dispatcher
    enable_caching, is_kept = compiled.enable_caching, True
    try:
        opensimplex = importlib.import_module("opensimplex")
    except RuntimeError:
        compiled.enable_caching, is_kept = lambda _: None, False
        opensimplex = importlib.import_module("opensimplex")
    finally:
        compiled.enable_caching = enable_caching
    with Path(str(opensimplex.__file__)).open() as file:
        if is_kept:
            fcntl.flock(file, fcntl.LOCK_EX)
        opensimplex.OpenSimplex(seed=0).noise3(0.0, 0.0, 0)  # compiles for the argument types that Crafter uses


_compile_noise()
with gym_is_gymnasium():
    import crafter
    from crafter import constants, engine

ACHIEVEMENTS = tuple(constants.achievements)


def make_env(
    name: str,
    *,
    size: int = 64,
    view: int = 9,
    area: int = 64,
    length: int = 10_000,
    channels_first: bool = False,
    render_size: int = 576,
    render_mode: str | None = None,
) -> gymnasium.Env[Pixels, np.int64]:
    """Make the game, with or without rewards.

    Args:
        name: Id of the game, see ``pufferlib.bindings.crafter.names()``.
        size: Height and width of the observation in pixels.
        view: Number of cells that it shows in each direction, including the inventory.
        area: Height and width of the world in cells.
        length: Number of steps after which a game is truncated.
        channels_first: Whether images are ``(3, size, size)``, as NatureCNN expects them.
        render_size: Height and width of rendered images in pixels.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"crafter/{name}"
    check_counts(where, 5, view=view)
    check_counts(where, view, size=size, render_size=render_size)
    check_counts(where, 16, area=area)
    check_counts(where, length=length)
    check_switches(where, channels_first=channels_first)
    check_render_mode(where, render_mode)
    simulation = crafter.Env((area, area), (view, view), (size, size), name == "CrafterReward-v1", length, seed=0)
    env = CrafterEnv(simulation, render_size, render_mode)
    return ChannelsFirst(env) if channels_first else env


class CrafterEnv(gymnasium.Env[Pixels, np.int64]):
    """Crafter with the seeding and rendering of a Gymnasium environment.

    Args:
        env: The package's own environment, which this one takes over.
        render_size: Height and width of rendered images in pixels.
        render_mode: None or "rgb_array".
    """

    def __init__(self, env: Any, render_size: int, render_mode: str | None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode
        self._env = env
        self._render_size = (render_size, render_size)
        self._is_seeded = False
        env._world.__class__ = _OrderedWorld
        env._sem_view = lambda: None  # a map in the info of every step, which is not used here
        self.observation_space = Box(0, 255, env.observation_space.shape, np.uint8)
        self.action_space = Discrete(len(constants.actions))

    def get_action_meanings(self) -> list[str]:
        """Return the name of each action, for example "noop", "move_left", "place_stone"."""
        return list(constants.actions)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Pixels, Info]:
        """Start a game. With a seed, it is the first game of ``crafter.Env(seed=seed)``."""
        super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            self._env._seed = int(self.np_random.integers(2**31 - 1)) if seed is None else seed
            self._env._episode = 0
            self._is_seeded = True
        return _in_order(self._env.reset()), {}

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, Info]:
        """Run one step. The info is empty except in the last step of a game."""
        observation, reward, done, info = self._env.step(action)
        observation = _in_order(observation)
        if not done:
            return observation, reward, False, False, {}
        unlocked = {name: float(info["achievements"][name] > 0) for name in ACHIEVEMENTS}
        total = sum(unlocked.values())
        summary = {"score": total, "perf": total / len(unlocked), "achievements": unlocked}
        is_dead = info["discount"] == 0
        return observation, reward, is_dead, not is_dead, summary

    def render(self) -> Pixels | None:
        """Return a larger image of the observation, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        chance = self._env._world.random
        state = chance.get_state()  # drawing the night uses the game's random numbers
        picture: Pixels = self._env.render(self._render_size)
        chance.set_state(state)
        return picture


def _in_order(picture: Pixels) -> Pixels:
    """Return a C-contiguous copy, made pixel by pixel, because the package draws columns."""
    pixels = picture.transpose(1, 0, 2).view("V3")[..., 0].T
    return np.ascontiguousarray(pixels).view(np.uint8).reshape(picture.shape)


class _OrderedWorld(engine.World):  # type: ignore[misc]  # crafter has no types
    """A world that keeps the creatures of a chunk in the order in which they were added.

    In the package, they are in a set, whose order depends on memory addresses. The choice of which creature disappears
    depends on that order, so the same seed would not always give the same game.
    """

    def reset(self, seed: int | None = None) -> None:
        super().reset(seed)
        self._chunks: dict[Any, _OrderedSet] = collections.defaultdict(_OrderedSet)


class _OrderedSet(dict[Any, None]):
    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]
