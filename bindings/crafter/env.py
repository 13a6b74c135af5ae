"""Crafter as a Gymnasium environment: seeds that decide everything, worlds made in 50 ms, infos that mean something."""

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
    """Load OpenSimplex, whose noise numba compiles once for all processes of this machine.

    Numba keeps what it compiled beside the package, or in the user's cache folder where that cannot be
    written. Where neither can, the package would not even load; then each process compiles for itself.
    The lock lets workers that start together wait 2 s for the first, instead of all compiling the same.
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
        opensimplex.OpenSimplex(seed=0).noise3(0.0, 0.0, 0)  # the types that Crafter asks for


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
    """The game, with or without rewards.

    Args:
        name: An id of ``pufferlib.bindings.crafter.names()``.
        size: Height and width of the observation, in pixels.
        view: Cells that it shows in either direction, the inventory included.
        area: Height and width of the world, in cells.
        length: Steps after which a game is cut off.
        channels_first: Show ``(3, size, size)``, as NatureCNN takes it.
        render_size: Height and width of what ``render`` draws, in pixels.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: A value is of the wrong type or out of its range.
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
    """Crafter with the seeding and the rendering of a Gymnasium environment.

    Args:
        env: The package's own environment, of which this one takes possession.
        render_size: Height and width of what ``render`` draws, in pixels.
        render_mode: None or "rgb_array".
    """

    def __init__(self, env: Any, render_size: int, render_mode: str | None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode
        self._env = env
        self._render_size = (render_size, render_size)
        self._is_seeded = False
        env._world.__class__ = _OrderedWorld
        env._sem_view = lambda: None  # a map for the info of every step, which nobody would see
        self.observation_space = Box(0, 255, env.observation_space.shape, np.uint8)
        self.action_space = Discrete(len(constants.actions))

    def get_action_meanings(self) -> list[str]:
        """The name of each action: "noop", "move_left", "place_stone"."""
        return list(constants.actions)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Pixels, Info]:
        """Start a game: with a seed, the first one that ``crafter.Env(seed=seed)`` plays."""
        super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            self._env._seed = int(self.np_random.integers(2**31 - 1)) if seed is None else seed
            self._env._episode = 0
            self._is_seeded = True
        return _in_order(self._env.reset()), {}

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, Info]:
        """Act once. The info is empty but for the last step of a game."""
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
        """A larger picture of the observation; None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        chance = self._env._world.random
        state = chance.get_state()  # the noise of the night is drawn from what drives the game
        picture: Pixels = self._env.render(self._render_size)
        chance.set_state(state)
        return picture


def _in_order(picture: Pixels) -> Pixels:
    """A copy whose rows lie one after the other, made pixel by pixel: the package draws columns."""
    pixels = picture.transpose(1, 0, 2).view("V3")[..., 0].T
    return np.ascontiguousarray(pixels).view(np.uint8).reshape(picture.shape)


class _OrderedWorld(engine.World):  # type: ignore[misc]  # crafter has no types
    """A world that counts the creatures of a chunk in the order in which they came.

    In the package that is the order of a set, which follows from addresses in memory, and which of them
    disappears is drawn from it: the same seed would not play the same game.
    """

    def reset(self, seed: int | None = None) -> None:
        super().reset(seed)
        self._chunks: dict[Any, _OrderedSet] = collections.defaultdict(_OrderedSet)


class _OrderedSet(dict[Any, None]):
    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]
