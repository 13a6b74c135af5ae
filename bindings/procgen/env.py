"""A batch of games of Procgen that write into the arrays of a PufferEnv."""

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

with gym_is_gymnasium(), warnings.catch_warnings():  # it registers its games in gym
    warnings.filterwarnings("ignore", "unclosed file .*version.txt", ResourceWarning)  # which it leaves open
    from procgen import ProcgenGym3Env
    from procgen.env import EXPLORATION_LEVEL_SEEDS

__all__ = ["ProcgenGames"]

NUM_ACTIONS = 15
END_LEVEL = -1  # as an action
MODES = {
    "easy": None,  # every game has it
    "hard": None,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
    "exploration": tuple(EXPLORATION_LEVEL_SEEDS),
}


class ProcgenGames(PufferEnv):
    """``num_envs`` games of one kind, stepped together.

    Args:
        name: A name of ``pufferlib.bindings.procgen.names()``.
        num_envs: Games, each with one agent.
        num_threads: Threads of the library that share a step; 0 leaves it to the caller's own.
        distribution_mode: The levels: "easy", "hard", and in some games "extreme", "memory" (the agent sees
            little of a large level) or "exploration" (one level that is hard to find through).
        num_levels: How many different levels there are; 0 is all.
        start_level: The first of them, if there is not every one.
        use_sequential_levels: A solved level leads to the next in the same episode.
        center_agent: The view follows the agent, in games that have larger levels.
        use_backgrounds: Draw backgrounds; else they are black.
        use_monochrome_assets: Draw rectangles of one colour instead of figures.
        restrict_themes: Draw each kind of figure always with the same picture.
        use_generated_assets: Draw figures that are generated, too.
        paint_vel_info: Draw the agent's speed into the corner, in games where it counts.
        render_mode: None, or "rgb_array" for pictures of ``(512, 512, 3)``, which make steps slower.
        buf: Arrays to write into, C-contiguous; None allocates new ones.
        seed: Of the first ``reset``, when that is given none.

    Raises:
        UnknownNameError: There is no such ``distribution_mode``.
        APIUsageError: A value is of the wrong type or out of its range, or the game does not have the mode.
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
        own = {} if distribution_mode == "exploration" else levels  # that mode decides on its level itself
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
        """Begin new levels.

        Args:
            seed: Seeds all games; None lets their streams go on (the first time: the seed that the
                constructor was given).

        Returns:
            observations uint8 ``(num_envs, 64, 64, 3)`` and an empty list.
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
        """Act with every agent once.

        Args:
            actions: ``(num_envs,)`` integers from 0 to 14; negative ones count from the end.

        Returns:
            observations uint8 ``(num_envs, 64, 64, 3)``, rewards float32 ``(num_envs,)``, terminals and truncations
            bool ``(num_envs,)``, and a dict for each episode that ended.

        Raises:
            APIUsageError: An action out of range; before ``reset``; after ``close``.
        """
        if not self._is_playing:
            self._open_games("step")
            raise APIUsageError(f"{self._where}.step: nothing is being played; call reset first")
        given = np.asarray(actions)
        try:
            ACTIONS.take(given, out=self.actions)  # which looks at the range, too
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
        """A picture of game ``env_index``, uint8 ``(512, 512, 3)``; None without a ``render_mode``."""
        pictures = self._open_games("render").pictures
        return None if pictures is None else pictures[env_index].copy()

    def close(self) -> None:
        """Free the games. The arrays stay valid; closing twice is fine."""
        self._is_playing = False
        if self._games is not None:
            self._games.close()
        self._games = None

    def _open_games(self, doing: str) -> "_Games":
        if self._games is None:
            raise APIUsageError(f"{self._where}.{doing}: the environment is closed; make a new one")
        return self._games

    def _fresh_state(self, seed: int) -> bytes:
        """A game as it starts with ``seed``."""
        game = ProcgenGym3Env(1, self.name, num_threads=0, rand_seed=seed, **self._options)
        try:
            game.observe()
            state: bytes = game.get_state()[0]
            return state
        finally:
            game.close()

    def _summaries(self) -> Infos:
        """One info for each episode that ended; the counts of the next one start."""
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
    """The library's games, in arrays of ours.

    Args:
        arrays: What is seen, done and earned, by the library's names; rewards and first steps are ``reward``
            and ``first``.
        num: Games.
        name: Of them.
        **options: Of ``ProcgenGym3Env``.
    """

    def __init__(self, arrays: Mapping[str, Array], num: int, name: str, **options: Any) -> None:
        self._given = arrays
        super().__init__(num, name, **options)
        self.completed: Array = self._info["prev_level_complete"]
        self.pictures: Array | None = self._info.get("rgb")

    def play(self) -> None:
        """Step all games with the array of actions and read the outcome."""
        self._c_lib.libenv_act(self._c_env)
        self._c_lib.libenv_observe(self._c_env)

    def look(self) -> None:
        """Write what is to be seen."""
        self._c_lib.libenv_observe(self._c_env)

    def _allocate_specs(self, num: int, specs: Any) -> tuple[dict[str, Array], Any]:
        """The library's own allocation, with ours in the places for which there are any."""
        arrays, pointers = super()._allocate_specs(num, specs)
        for place, spec in enumerate(specs):
            given = self._given.get(spec.name)
            if given is not None and given.shape[1:] == spec.shape:  # the large picture is called rgb, too
                arrays[spec.name] = given
                for index in range(num):
                    pointers[place * num + index] = self._ffi.from_buffer(given[index : index + 1])
        return arrays, pointers

    def _allocate_array(self, num: int, dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """Rewards and first steps."""
        array = self._given["first" if dtype == np.bool_ else "reward"]
        return array, self._ffi.from_buffer(array)


ACTIONS = np.arange(NUM_ACTIONS, dtype=np.int32)


def _check_counts(where: str, low: int, **values: object) -> None:
    for option, value in values.items():
        is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_count or not low <= value < 2**31:  # type: ignore[operator]  # it is a number
            raise APIUsageError(f"{where}: {option} must be an int >= {low} and < 2**31, got {value!r}")


def _check_mode(where: str, name: str, mode: object, levels: Mapping[str, int]) -> None:
    """The library ends the process when a game does not have the mode."""
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
