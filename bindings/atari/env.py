"""One Atari game as a Gymnasium environment, with the preprocessing that the literature agrees on."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import ale_py
import cv2
import gymnasium
import numpy as np
import numpy.typing as npt
from ale_py import roms
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformReward

from pufferlib.errors import APIUsageError
from pufferlib.native._pictures import FrameStack
from pufferlib.wrappers import EpisodeStats

from .._shared.options import check_counts, check_render_mode, check_switches

__all__ = ["AtariGame", "EpisodicLife", "make_env"]

Pixels = npt.NDArray[np.uint8]
Env = gymnasium.Env[Pixels, np.int64]
Info = dict[str, Any]


def make_env(game: str, *, episodic_life: bool = False, reward_clip: bool = False, **options: Any) -> Env:
    """``AtariGame(game, **options)`` in the wrappers asked for; infos tell the score of each whole game."""
    check_switches(f"atari/{game}", episodic_life=episodic_life, reward_clip=reward_clip)
    env: Env = EpisodeStats(AtariGame(game, **options))  # innermost: it sees whole games and unclipped points
    if episodic_life:
        env = EpisodicLife(env)
    if reward_clip:
        env = TransformReward(env, _sign)
    return env


class AtariGame(gymnasium.Env[Pixels, np.int64]):
    """An Atari 2600 game, seen as its last few frames, small and grey.

    Args:
        game: A name of ``pufferlib.bindings.atari.names()``.
        frame_skip: Frames per step, 60 of which make a second; the last two are merged pixel by
            pixel (maximum), because the console draws some sprites only every other frame.
        stack: Frames in an observation.
        size: Height and width of the observation, in pixels.
        repeat_action_probability: In each frame, the chance that the console ignores the action
            and goes on with the last one ("sticky actions").
        noop_max: A game starts with 0 to this many frames without an action.
        max_frames: The length at which a game is cut off (truncation); 108,000 is half an hour.
        full_action_space: Offer all 18 actions, not only those that the game reads.
        fire_reset: Press FIRE once at the start, for games that wait for it.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option is of the wrong type or out of its range.
    """

    def __init__(
        self,
        game: str,
        *,
        frame_skip: int = 4,
        stack: int = 4,
        size: int = 84,
        repeat_action_probability: float = 0.25,
        noop_max: int = 30,
        max_frames: int = 108_000,
        full_action_space: bool = False,
        fire_reset: bool = False,
        render_mode: str | None = None,
    ) -> None:
        where = f"atari/{game}"
        check_counts(where, frame_skip=frame_skip, stack=stack, size=size, max_frames=max_frames)
        check_counts(where, 0, noop_max=noop_max)
        chance = repeat_action_probability
        if not isinstance(chance, int | float | np.number) or not 0 <= chance < 1:
            raise APIUsageError(f"{where}: repeat_action_probability must be in [0, 1), got {chance!r}")
        check_switches(where, full_action_space=full_action_space, fire_reset=fire_reset)
        check_render_mode(where, render_mode)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / frame_skip}
        self.render_mode = render_mode
        self._frame_skip = frame_skip
        self._repeat_action_probability = repeat_action_probability
        self._noop_max = noop_max
        self._ale = _load(game, max_frames)
        # Loading a game takes 0.2 s and going back to this state 0.2 ms. It decides nothing at
        # random: all chance is drawn from np_random, so that a seed needs no loading either.
        self._power_on = self._ale.cloneState(include_rng=True)
        self._actions = self._ale.getLegalActionSet() if full_action_space else self._ale.getMinimalActionSet()
        self._last_action = ale_py.Action.NOOP
        self._fire_reset = fire_reset and ale_py.Action.FIRE in self._actions
        #: The action that starts a life: FIRE if ``fire_reset`` asks for it, else the one that does nothing.
        self.start_action = np.int64(self._actions.index(ale_py.Action.FIRE) if self._fire_reset else 0)
        self._screen, self._previous_screen = np.empty((2, *self._ale.getScreenDims()), np.uint8)
        self._frames = np.zeros((stack, size, size), np.uint8)
        self._push_frame = _frame_pusher(self._screen, self._previous_screen, self._frames)
        self.observation_space = Box(0, 255, self._frames.shape, np.uint8)
        self.action_space = Discrete(len(self._actions))

    @property
    def lives(self) -> int:
        """Lives left; 0 in games that have none."""
        return int(self._ale.lives())

    def get_action_meanings(self) -> list[str]:
        """The buttons of each action: "NOOP", "FIRE", "UPRIGHTFIRE"."""
        return [action.name for action in self._actions]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Start a game. The observation is overwritten by the next step."""
        super().reset(seed=seed)
        if seed is not None:
            self._ale.restoreState(self._power_on)
        self._ale.reset_game()
        self._last_action = ale_py.Action.NOOP
        for _ in range(self.np_random.integers(self._noop_max + 1)):
            self._ale.act(ale_py.Action.NOOP)
        if self._fire_reset:
            self._ale.act(ale_py.Action.FIRE)
        self._ale.getScreenGrayscale(self._screen)
        self._push_frame(False)
        self._frames[:-1] = self._frames[-1]
        return self._frames, {}

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, Info]:
        """Play ``frame_skip`` frames. The observation is overwritten by the next step."""
        chosen = self._actions[action]
        sticks = (self.np_random.random(self._frame_skip) < self._repeat_action_probability).tolist()
        points = 0
        for frame, stick in enumerate(sticks, start=1):
            if not stick:
                self._last_action = chosen
            points += self._ale.act(self._last_action)
            if self._ale.game_over():
                break
            if frame == self._frame_skip - 1:
                self._ale.getScreenGrayscale(self._previous_screen)
        self._ale.getScreenGrayscale(self._screen)
        self._push_frame(frame == self._frame_skip > 1)
        return self._frames, float(points), self._ale.game_over(with_truncation=False), self._ale.game_truncated(), {}

    def save_state(self) -> dict[str, Any]:
        """State of the game but for ``np_random``, as plain data; ``load_state`` goes on from it."""
        return {
            "emulator": bytes(self._ale.cloneState(include_rng=True).serialize()),
            "last_action": self._last_action.value,
            "screens": [self._screen.copy(), self._previous_screen.copy()],
            "frames": self._frames.copy(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from where ``save_state`` was called, in this game or another one with the same options."""
        emulator = ale_py.ALEState.__new__(ale_py.ALEState)
        emulator.__setstate__(state["emulator"])
        self._ale.restoreState(emulator)
        self._last_action = ale_py.Action(state["last_action"])
        self._screen[...], self._previous_screen[...] = state["screens"]
        self._frames[...] = state["frames"]  # in place: the resizing in C has its address

    def render(self) -> Pixels | None:
        """The screen in colour, uint8 ``(210, 160, 3)`` for most games; None without a ``render_mode``."""
        return self._ale.getScreenRGB() if self.render_mode == "rgb_array" else None


class EpisodicLife(gymnasium.Wrapper[Pixels, np.int64, Pixels, np.int64], RecordConstructorArgs):
    """Ends the episode when a life is lost; the next one goes on with the same game."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        assert isinstance(env.unwrapped, AtariGame)
        self._game = env.unwrapped
        self._game_over = True
        self._lives = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Go on with the next life; start a new game when there is none, or when a seed is given."""
        info: Info = {}
        if seed is None and not self._game_over:
            observation, _, terminated, truncated, info = self.env.step(self._game.start_action)
            self._game_over = terminated or truncated
        if seed is not None or self._game_over:
            observation, _ = self.env.reset(seed=seed)
        self._game_over = False
        self._lives = self._game.lives
        return observation, info

    def step(self, action: np.int64) -> tuple[Pixels, SupportsFloat, bool, bool, Info]:
        """Play one step; terminated when it cost a life."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._game_over = terminated or truncated
        lives, self._lives = self._lives, self._game.lives
        return observation, reward, terminated or self._lives < lives, truncated, info


def _frame_pusher(newer: Pixels, older: Pixels, frames: Pixels) -> Callable[[bool], None]:
    """The function that drops the oldest frame and adds a new one, of both screens (their maximum) or of the newer."""
    try:
        return FrameStack(newer, older, frames).push  # three times as fast as cv2, for the usual sizes
    except ValueError:
        return functools.partial(_push_by_cv2, newer, older, frames)


def _push_by_cv2(newer: Pixels, older: Pixels, frames: Pixels, both: bool) -> None:
    if both:
        np.maximum(newer, older, out=newer)
    frames[:-1] = frames[1:]
    newest = frames[-1]
    cv2.resize(newer, newest.shape[::-1], dst=newest, interpolation=cv2.INTER_AREA)


def _sign(reward: SupportsFloat) -> float:
    return float(np.sign(float(reward)))


def _load(game: str, max_frames: int) -> ale_py.ALEInterface:
    """The emulator with ``game`` in it, and without a random choice of its own."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 1)
    ale.setInt("max_num_frames_per_episode", max_frames)
    path = roms.get_rom_path(game)
    assert path is not None, game
    ale.loadROM(path)
    return ale
