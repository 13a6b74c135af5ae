"""One Atari game as a Gymnasium environment, with the standard preprocessing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ale_py
import gymnasium
import numpy as np
import numpy.typing as npt
from ale_py import roms
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import EzPickle

from pufferlib.errors import APIUsageError

from .._shared.options import check_counts, check_render_mode, check_switches
from .pictures import NEWER, OLDER, make_pictures

__all__ = ["AtariGame"]

Pixels = npt.NDArray[np.uint8]
Info = dict[str, Any]


class AtariGame(gymnasium.Env[Pixels, np.int64], EzPickle):
    """An Atari 2600 game whose observation is a stack of small grayscale frames.

    Args:
        game: Name of the game, see ``pufferlib.bindings.atari.names()``.
        frame_skip: Frames per step, at 60 frames per second. The last two are merged by a pixel-wise maximum, because
            the console draws some sprites only every other frame.
        stack: Number of frames in an observation.
        size: Height and width of the observation in pixels, or a pair of both.
        repeat_action_probability: Probability, per frame, that the console ignores the action and repeats the last one
            ("sticky actions").
        noop_max: Maximum number of frames without an action at the start of a game, chosen at random from 0.
        max_frames: Length at which a game is truncated. 108,000 frames are half an hour.
        full_action_space: Whether to offer all 18 actions, and not only those that the game uses.
        fire_reset: Whether to press FIRE once at the start, for games that wait for it.
        mode: Variant of the game, or None for its default.
        difficulty: Position of the difficulty switches, or None for the game's default.
        grey: Whether observations are grayscale. Otherwise they are RGB, ``(3 * stack, height, width)``.
        area_resize: Whether to resize by area averaging. Otherwise each pixel averages its four nearest screen pixels.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """

    def __init__(
        self,
        game: str,
        *,
        frame_skip: int = 4,
        stack: int = 4,
        size: int | tuple[int, int] = 84,
        repeat_action_probability: float = 0.25,
        noop_max: int = 30,
        max_frames: int = 108_000,
        full_action_space: bool = False,
        fire_reset: bool = False,
        mode: int | None = None,
        difficulty: int | None = None,
        grey: bool = True,
        area_resize: bool = True,
        render_mode: str | None = None,
    ) -> None:
        EzPickle.__init__(self, **{name: value for name, value in locals().items() if name != "self"})
        where = f"atari/{game}"
        height, width = size if isinstance(size, tuple | list) and len(size) == 2 else (size, size)
        check_counts(where, frame_skip=frame_skip, stack=stack, max_frames=max_frames)
        check_counts(where, size=height)
        check_counts(where, size=width)
        check_counts(where, 0, noop_max=noop_max)
        chance = repeat_action_probability
        if not isinstance(chance, int | float | np.number) or not 0 <= chance < 1:
            raise APIUsageError(f"{where}: repeat_action_probability must be in [0, 1), got {chance!r}")
        check_switches(where, full_action_space=full_action_space, fire_reset=fire_reset)
        check_switches(where, grey=grey, area_resize=area_resize)
        check_render_mode(where, render_mode)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / frame_skip}
        self.render_mode = render_mode
        self._frame_skip = frame_skip
        self._repeat_action_probability = repeat_action_probability
        self._noop_max = noop_max
        self._ale = _load(game, max_frames)
        _choose(where, "mode", mode, self._ale.getAvailableModes, self._ale.setMode)
        _choose(where, "difficulty", difficulty, self._ale.getAvailableDifficulties, self._ale.setDifficulty)
        # Loading a game takes 0.2 s, restoring this state 0.2 ms. The emulator draws no random numbers
        # itself: all come from np_random, so setting a seed does not need to reload the game either.
        self._power_on = self._ale.cloneState(include_rng=True)
        self._actions = self._ale.getLegalActionSet() if full_action_space else self._ale.getMinimalActionSet()
        self._last_action = ale_py.Action.NOOP
        self._fire_reset = fire_reset and ale_py.Action.FIRE in self._actions
        #: Action that starts a life: FIRE with ``fire_reset``, otherwise NOOP.
        self.start_action = np.int64(self._actions.index(ale_py.Action.FIRE) if self._fire_reset else 0)
        self._pictures = make_pictures(self._ale, stack, (int(height), int(width)), bool(grey), bool(area_resize))
        self._frames = self._pictures.frames
        self._observation = self._frames.reshape(-1, *self._frames.shape[-2:])
        self.observation_space = Box(0, 255, self._observation.shape, np.uint8)
        self.action_space = Discrete(len(self._actions))

    @property
    def lives(self) -> int:
        """Number of lives left, or 0 in games without lives."""
        return int(self._ale.lives())

    def get_action_meanings(self) -> list[str]:
        """Return the buttons of each action, for example "NOOP", "FIRE", "UPRIGHTFIRE"."""
        return [action.name for action in self._actions]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Start a game. The next step overwrites the observation."""
        super().reset(seed=seed)
        if seed is not None:
            self._ale.restoreState(self._power_on)
        self._ale.reset_game()
        self._last_action = ale_py.Action.NOOP
        for _ in range(self.np_random.integers(self._noop_max + 1)):
            self._ale.act(ale_py.Action.NOOP)
        if self._fire_reset:
            self._ale.act(ale_py.Action.FIRE)
        self._show_start()
        return self._observation, {}

    def _show_start(self) -> None:
        """Fill all frames with the current screen."""
        self._show_next()
        self._frames[:-1] = self._frames[-1]

    def _show_next(self) -> None:
        """Append the current screen as the newest frame."""
        self._pictures.look(NEWER)
        self._pictures.push(False)

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, Info]:
        """Run ``frame_skip`` frames. The next step overwrites the observation."""
        sticks = (self.np_random.random(self._frame_skip) < self._repeat_action_probability).tolist()
        points = self._play(self._actions[action], sticks)
        terminated, truncated = self._ale.game_over(with_truncation=False), self._ale.game_truncated()
        return self._observation, float(points), terminated, truncated, {}

    def _play(self, action: ale_py.Action, sticks: Iterable[bool]) -> int:
        """Run frames up to the last one or the end of the game, and update the observation. Return the points.

        Args:
            action: Action of the player.
            sticks: Whether the console repeats the previous action, for each frame.
        """
        points, act, game_over = 0, self._ale.act, self._ale.game_over
        for frame, stick in enumerate(sticks, start=1):
            if not stick:
                self._last_action = action
            points += act(self._last_action)
            if game_over():
                break
            if frame == self._frame_skip - 1:
                self._pictures.look(OLDER)
        self._pictures.look(NEWER)
        self._pictures.push(frame == self._frame_skip > 1)
        return points

    def save_state(self) -> dict[str, Any]:
        """Return the state of the game as plain data, without ``np_random``. Restore it with ``load_state``."""
        return {
            "emulator": bytes(self._ale.cloneState(include_rng=True).serialize()),
            "last_action": self._last_action.value,
            "frames": self._frames.copy(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``save_state``, of this game or another one with the same options."""
        emulator = ale_py.ALEState.__new__(ale_py.ALEState)
        emulator.__setstate__(state["emulator"])
        self._ale.restoreState(emulator)
        self._last_action = ale_py.Action(state["last_action"])
        self._frames[...] = state["frames"]  # in place, because the C code holds its address
        self._pictures.forget()

    def render(self) -> Pixels | None:
        """Return the color screen, uint8 ``(210, 160, 3)`` for most games, or None without a ``render_mode``."""
        return self._ale.getScreenRGB() if self.render_mode == "rgb_array" else None


def _load(game: str, max_frames: int) -> ale_py.ALEInterface:
    """Return an emulator with ``game`` loaded, and without its own randomness."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 1)
    ale.setInt("max_num_frames_per_episode", max_frames)
    path = roms.get_rom_path(game)
    assert path is not None, game
    ale.loadROM(path)
    return ale


def _choose(
    where: str, name: str, value: int | None, available: Callable[[], list[int]], choose: Callable[[int], None]
) -> None:
    """Set ``mode`` or ``difficulty``.

    Raises:
        APIUsageError: The game does not have this value.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in available():
        raise APIUsageError(f"{where}: {name} must be None or one of {sorted(available())}, got {value!r}")
    choose(int(value))
