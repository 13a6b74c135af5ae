"""One game of stable-retro as a Gymnasium environment that shares the one emulator of its process."""

import weakref
from typing import Any

import cv2
import gymnasium
import numpy as np
import numpy.typing as npt
import stable_retro
from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.machine.commands import in_image

from .._shared.options import check_counts, check_render_mode

__all__ = ["RetroGame", "make_env"]

Pixels = npt.NDArray[np.uint8]
Info = dict[str, Any]

_ACTIONS = {"buttons": stable_retro.Actions.FILTERED, "discrete": stable_retro.Actions.DISCRETE}


def make_env(name: str, **options: Any) -> "RetroGame":
    """The game ``name``.

    Raises:
        APIUsageError: Its ROM is not there, or an option is of the wrong type or out of its range.
    """
    return RetroGame(name, **options)


class RetroGame(gymnasium.Env[Pixels, Any]):
    """A game, seen as its last few pictures, small and grey.

    Args:
        name: A name of ``pufferlib.bindings.retro.names()``.
        state: Where the game starts, one of those that stable-retro has for it; None is its default.
        scenario: What is rewarded and what ends the game; None is its default.
        actions: "buttons" or "discrete".
        frame_skip: Frames per step, about 60 of which make a second.
        stack: Pictures in an observation.
        size: Height and width of the observation, in pixels.
        repeat_action_probability: In each frame, the chance that the last buttons stay pressed.
        wait_max: A game starts after 0 to this many frames without a button.
        max_frames: The length at which a game is cut off (truncation); 18,000 are five minutes.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: Its ROM is not there, or an option is of the wrong type or out of its range.
    """

    def __init__(
        self,
        name: str,
        *,
        state: str | None = None,
        scenario: str | None = None,
        actions: str = "buttons",
        frame_skip: int = 4,
        stack: int = 4,
        size: int = 84,
        repeat_action_probability: float = 0.25,
        wait_max: int = 30,
        max_frames: int = 18_000,
        render_mode: str | None = None,
    ) -> None:
        where = f"retro/{name}"
        check_counts(where, frame_skip=frame_skip, stack=stack, size=size, max_frames=max_frames)
        check_counts(where, 0, wait_max=wait_max)
        chance = repeat_action_probability
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance < 1:
            raise APIUsageError(f"{where}: repeat_action_probability must be in [0, 1), got {chance!r}")
        if actions not in _ACTIONS:
            raise APIUsageError(f"{where}: actions must be 'buttons' or 'discrete', got {actions!r}")
        check_render_mode(where, render_mode)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / frame_skip}
        self.render_mode = render_mode
        self._frame_skip, self._wait_max, self._max_frames = frame_skip, wait_max, max_frames
        self._repeat_action_probability = chance
        self._lease = _EmulatorLease(where, name, state, scenario, _ACTIONS[actions])
        self._frames = np.zeros((stack, size, size), np.uint8)
        self.observation_space = Box(0, 255, self._frames.shape, np.uint8)
        self.action_space = self._lease.game.action_space
        self._idle: Any = self.action_space.sample() * 0  # no button

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Start the game. The observation is overwritten by the next step."""
        super().reset(seed=seed)
        game = self._lease.acquire()
        self._screen, _ = game.reset()
        for _ in range(self.np_random.integers(self._wait_max + 1)):
            self._screen, *_ = game.step(self._idle)
        self._held = self._idle
        self._played = 0
        self._frames[:] = self._small()
        return self._frames, {}

    def step(self, action: Any) -> tuple[Pixels, float, bool, bool, Info]:
        """Play ``frame_skip`` frames. The observation is overwritten by the next step."""
        game = self._lease.acquire()
        points = 0.0
        for stays in (self.np_random.random(self._frame_skip) < self._repeat_action_probability).tolist():
            if not stays:
                self._held = action
            self._screen, reward, terminated, _, _ = game.step(self._held)
            points += float(reward)
            self._played += 1
            if terminated:
                break
        self._held = np.array(self._held)  # the array of the action may change until the next step
        self._frames[:-1] = self._frames[1:]
        self._frames[-1] = self._small()
        return self._frames, points, terminated, not terminated and self._played >= self._max_frames, {}

    def render(self) -> Pixels | None:
        """The screen, uint8 ``(height, width, 3)``; None without a ``render_mode``."""
        return self._screen.copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Give the emulator back. May be called twice."""
        self._lease.close()

    def _small(self) -> Pixels:
        grey = cv2.cvtColor(self._screen, cv2.COLOR_RGB2GRAY)
        small: Pixels = cv2.resize(grey, self._frames.shape[:0:-1], interpolation=cv2.INTER_AREA)
        return small


class _EmulatorLease:
    """One game's claim to the emulator, of which a process can have only one."""

    _owner: "weakref.ref[_EmulatorLease] | None" = None

    def __init__(self, where: str, name: str, state: str | None, scenario: str | None, actions: Any) -> None:
        self._where = where
        self._saved: bytes | None = None
        _check_rom(where, name)
        _check_known(where, "state", state, stable_retro.data.list_states(name))
        _check_known(where, "scenario", scenario, stable_retro.data.list_scenarios(name))
        self._rom = stable_retro.data.get_original_romfile_path(name)
        self._take_over()  # and drop it: the next line makes its own
        self.game: Any = stable_retro.make(
            name,
            state=stable_retro.State.DEFAULT if state is None else state,
            scenario=scenario,
            use_restricted_actions=actions,
            render_mode="rgb_array",  # a window by default
        )
        _EmulatorLease._owner = weakref.ref(self)

    def acquire(self) -> Any:
        """The game, with its emulator."""
        if self.game is None:
            raise APIUsageError(f"{self._where}: the game is closed; make another")
        if not hasattr(self.game, "em"):
            emulator = self._take_over()
            if emulator is None:
                emulator = stable_retro.RetroEmulator(self._rom)
                emulator.configure_data(self.game.data)
                emulator.step()  # makes it ready for a state
            else:
                emulator.configure_data(self.game.data)
            emulator.set_state(self._saved)
            self.game.em = emulator
            _EmulatorLease._owner = weakref.ref(self)
        return self.game

    def close(self) -> None:
        """Close the game, for good."""
        if self.game is not None:
            self.game.close()
        self.game = None

    def _take_over(self) -> Any:
        """Save the game that has the emulator. Returns the emulator if it has the same ROM in it, else ends it."""
        other = _EmulatorLease._owner() if _EmulatorLease._owner else None
        if other is None or not hasattr(other.game, "em"):
            return None
        emulator = other.game.em
        other._saved = emulator.get_state()
        del other.game.em
        return emulator if other._rom == self._rom else None


def _check_rom(where: str, name: str) -> None:
    try:
        stable_retro.data.get_romfile_path(name)
    except FileNotFoundError as error:
        path = stable_retro.data.get_file_path(name, "rom.sha")
        with open(path, encoding="utf-8") as file:
            digests = " or ".join(file.read().split())
        raise APIUsageError(
            f"{where}: expected its cartridge image (SHA-1 {digests}), which is not imported; {_way_to_import(where)}; "
            "retro/Airstriker-Genesis-v0 needs none"
        ) from error


def _way_to_import(where: str) -> str:
    if in_image():  # what is imported into a container is gone with it: the same one goes on to train
        return (
            "put your own into a folder of the checkout, for example roms, and run outside: docker compose run --rm "
            f'--entrypoint bash tank -c "python -m stable_retro.import roms && tank-entrypoint train {where}"'
        )
    return "put your own into a folder and run: python -m stable_retro.import FOLDER"


def _check_known(where: str, kind: str, value: str | None, known: list[str]) -> None:
    if value is not None and value not in known:
        raise UnknownNameError.of(where, kind, value, known)
