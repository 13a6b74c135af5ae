"""A batch of Procgen games that write into the arrays of a PufferEnv."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from pufferlib.buffers import Array
from pufferlib.env import Infos, PufferEnv, Stepped
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.seeding import env_seed

from .._shared.gym_alias import gym_is_gymnasium
from .._shared.options import check_render_mode, check_switches

with gym_is_gymnasium(), warnings.catch_warnings():  # procgen registers its games with gym
    warnings.filterwarnings("ignore", "unclosed file .*version.txt", ResourceWarning)  # procgen leaves it open
    from procgen import ProcgenGym3Env
    from procgen.env import EXPLORATION_LEVEL_SEEDS

__all__ = ["ProcgenGames"]

NUM_ACTIONS = 15
END_LEVEL = -1  # action that ends the level
MODES = {
    "easy": None,  # available in every game
    "hard": None,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
    "exploration": tuple(EXPLORATION_LEVEL_SEEDS),
}


class ProcgenGames(PufferEnv):
    """``num_envs`` copies of one game, stepped together.

    Args:
        name: Name of the game, see ``pufferlib.bindings.procgen.names()``.
        num_envs: Number of games, each with one agent.
        num_threads: Number of library threads that share a step. 0 uses only the caller's thread.
        distribution_mode: Kind of levels: "easy", "hard", and in some games "extreme", "memory" (the agent sees little
            of a large level) or "exploration" (one level that is hard to explore).
        num_levels: Number of different levels, or 0 for all.
        start_level: First of these levels, if ``num_levels`` is not 0.
        use_sequential_levels: Whether a solved level leads to the next one in the same episode.
        center_agent: Whether the view follows the agent, in games with larger levels.
        use_backgrounds: Whether to draw backgrounds. Otherwise they are black.
        use_monochrome_assets: Whether to draw rectangles of one color instead of figures.
        restrict_themes: Whether to draw each kind of figure with the same image.
        use_generated_assets: Whether to also draw generated figures.
        paint_vel_info: Whether to draw the agent's speed into the corner, in games where it matters.
        render_mode: None, or "rgb_array" for images of ``(512, 512, 3)``, which make steps slower.
        buf: C-contiguous arrays to write into, or None to allocate new ones.
        seed: Seed of the first ``reset``, if that has no seed.

    Raises:
        UnknownNameError: ``distribution_mode`` does not exist.
        APIUsageError: A value has the wrong type or is out of range, or the game does not have the mode.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(
        self,
        name: str,
        *,
        num_envs: int = 1,
        num_threads: int = 0,
        distribution_mode: str = "hard",
        num_levels: int = 0,
        start_level: int = 0,
        use_sequential_levels: bool = False,
        center_agent: bool = True,
        use_backgrounds: bool = True,
        use_monochrome_assets: bool = False,
        restrict_themes: bool = False,
        use_generated_assets: bool = False,
        paint_vel_info: bool = False,
        render_mode: str | None = None,
        buf: Mapping[str, Array] | None = None,
        seed: int = 0,
    ) -> None:
        self._where = f"procgen/{name}"
        switches = {
            "use_sequential_levels": use_sequential_levels,
            "center_agent": center_agent,
            "use_backgrounds": use_backgrounds,
            "use_monochrome_assets": use_monochrome_assets,
            "restrict_themes": restrict_themes,
            "use_generated_assets": use_generated_assets,
            "paint_vel_info": paint_vel_info,
        }
        _check_counts(self._where, 1, num_envs=num_envs)
        _check_counts(self._where, 0, num_threads=num_threads, num_levels=num_levels, start_level=start_level)
        levels = {"num_levels": int(num_levels), "start_level": int(start_level)}
        check_switches(self._where, **switches)
        check_render_mode(self._where, render_mode)
        _check_mode(self._where, name, distribution_mode, levels)
        self.name = name
        self.render_mode = render_mode
        self.num_envs = self.num_agents = int(num_envs)
        self.single_observation_space = Box(0, 255, (64, 64, 3), np.uint8)
        self.single_action_space = Discrete(NUM_ACTIONS)
        super().__init__(buf)
        own = {} if distribution_mode == "exploration" else levels  # this mode has a fixed level
        self._options = {**switches, **own, "distribution_mode": distribution_mode, "render_mode": render_mode}
        arrays = {"rgb": self.observations, "action": self.actions, "reward": self.rewards, "first": self.terminals}
        self._games: _Games | None = _Games(
            arrays, self.num_envs, name, num_threads=int(num_threads), rand_seed=0, **self._options
        )
        self._seed: int | None = seed
        self._is_playing = False
        self._returns = np.zeros(self.num_envs, np.float32)
        self._starts = np.zeros(self.num_envs, np.int64)
        self._steps = 0

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new levels.

        Args:
            seed: Seed of all games. With None, random streams continue (the first reset uses the constructor's seed).

        Returns:
            Observations uint8 ``(num_envs, 64, 64, 3)`` and an empty list.
        """
        games = self._open_games("reset")
        seed = self._seed if seed is None else seed
        self._seed = None
        if seed is None:
            self.actions[:] = END_LEVEL
            games.play()
        else:
            games.set_state([self._fresh_state(env_seed(int(seed), index)) for index in range(self.num_envs)])
            games.look()
        self._is_playing = True
        self.actions[:] = 0
        self.rewards[:] = 0
        self.terminals[:] = False
        self.truncations[:] = False
        self.masks[:] = True
        self._returns[:] = 0
        self._starts[:] = self._steps
        return self.observations, []

    def step(self, actions: Any) -> Stepped:
        """Step every game once.

        Args:
            actions: Integers ``(num_envs,)`` from 0 to 14. Negative ones count from the end.

        Returns:
            Observations uint8 ``(num_envs, 64, 64, 3)``, rewards float32 ``(num_envs,)``, terminals and truncations
            bool ``(num_envs,)``, and a dict for each episode that ended.

        Raises:
            APIUsageError: An action is out of range, or the environment was not reset yet or is closed.
        """
        if not self._is_playing:
            self._open_games("step")
            raise APIUsageError(f"{self._where}.step: the environment was not reset; call reset first")
        given = np.asarray(actions)
        try:
            ACTIONS.take(given, out=self.actions)  # also checks the range
            is_good = given.dtype.kind in "iu"
        except (IndexError, TypeError, ValueError):
            is_good = False
        if not is_good:
            raise APIUsageError(
                f"{self._where}.step: actions must be {self.num_envs} integers from 0 to 14, got {actions!r}"
            )
        self._games.play()  # type: ignore[union-attr]  # it is open while it plays
        self._steps += 1
        self._returns += self.rewards
        infos = self._summaries() if np.count_nonzero(self.terminals) else []
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def render(self, env_index: int = 0) -> npt.NDArray[np.uint8] | None:
        """Return an image of game ``env_index``, uint8 ``(512, 512, 3)``, or None without a ``render_mode``."""
        pictures = self._open_games("render").pictures
        return None if pictures is None else pictures[env_index].copy()

    def close(self) -> None:
        """Free the games. The arrays stay valid. Closing twice is safe."""
        self._is_playing = False
        if self._games is not None:
            self._games.close()
        self._games = None

    def _open_games(self, doing: str) -> "_Games":
        if self._games is None:
            raise APIUsageError(f"{self._where}.{doing}: the environment is closed; make a new one")
        return self._games

    def _fresh_state(self, seed: int) -> bytes:
        """Return the initial state of a game with ``seed``."""
        game = ProcgenGym3Env(1, self.name, num_threads=0, rand_seed=seed, **self._options)
        try:
            game.observe()
            state: bytes = game.get_state()[0]
            return state
        finally:
            game.close()

    def _summaries(self) -> Infos:
        """Return an info for each episode that ended, and reset its counters."""
        infos = []
        for index in np.flatnonzero(self.terminals):
            score = float(self._returns[index])
            infos.append(
                {
                    "score": score,
                    "episode_return": score,
                    "episode_length": int(self._steps - self._starts[index]),
                    "completed": int(self._open_games("step").completed[index]),
                }
            )
        self._returns[self.terminals] = 0
        self._starts[self.terminals] = self._steps
        return infos


class _Games(ProcgenGym3Env):  # type: ignore[misc]  # procgen has no types
    """The library's games, using external arrays.

    Args:
        arrays: Arrays for observations, actions and outcomes, by the library's names. Rewards and first steps are
            ``reward`` and ``first``.
        num: Number of games.
        name: Name of the game.
        **options: Options of ``ProcgenGym3Env``.
    """

    def __init__(self, arrays: Mapping[str, Array], num: int, name: str, **options: Any) -> None:
        self._given = arrays
        super().__init__(num, name, **options)
        self.completed: Array = self._info["prev_level_complete"]
        self.pictures: Array | None = self._info.get("rgb")

    def play(self) -> None:
        """Step all games with the array of actions, and read the outcome."""
        self._c_lib.libenv_act(self._c_env)
        self._c_lib.libenv_observe(self._c_env)

    def look(self) -> None:
        """Write the current observations."""
        self._c_lib.libenv_observe(self._c_env)

    def _allocate_specs(self, num: int, specs: Any) -> tuple[dict[str, Array], Any]:
        """Allocate like the library, but use the given arrays where they exist."""
        arrays, pointers = super()._allocate_specs(num, specs)
        for place, spec in enumerate(specs):
            given = self._given.get(spec.name)
            if given is not None and given.shape[1:] == spec.shape:  # the rendered image is also called rgb
                arrays[spec.name] = given
                for index in range(num):
                    pointers[place * num + index] = self._ffi.from_buffer(given[index : index + 1])
        return arrays, pointers

    def _allocate_array(self, num: int, dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """Return the given array for rewards or first steps."""
        array = self._given["first" if dtype == np.bool_ else "reward"]
        return array, self._ffi.from_buffer(array)


ACTIONS = np.arange(NUM_ACTIONS, dtype=np.int32)


def _check_counts(where: str, low: int, **values: object) -> None:
    for option, value in values.items():
        is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_count or not low <= value < 2**31:  # type: ignore[operator]  # it is a number
            raise APIUsageError(f"{where}: {option} must be an int >= {low} and < 2**31, got {value!r}")


def _check_mode(where: str, name: str, mode: object, levels: Mapping[str, int]) -> None:
    """Raise an error if the game does not have the mode, because the library would exit the process."""
    if mode not in MODES:
        raise UnknownNameError.of(where, "distribution_mode", mode, MODES)
    games = MODES[mode]
    if games is not None and name not in games:
        has = ", ".join(repr(other) for other, having in MODES.items() if having is None or name in having)
        raise APIUsageError(f"{where}: distribution_mode must be one of {has}, got {mode!r}")
    if sum(levels.values()) >= 2**31:
        raise APIUsageError(f"{where}: start_level + num_levels must be < 2**31, got {dict(levels)}")
    if mode == "exploration" and any(levels.values()):
        raise APIUsageError(f"{where}: exploration has one level, got {dict(levels)}; leave them out")
