"""One stable-retro game as a Gymnasium environment. All games of a process share one emulator."""

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
    """Make the game ``name``.

    Raises:
        APIUsageError: The ROM is missing, or an option has the wrong type or is out of range.
    """
    return RetroGame(name, **options)


class RetroGame(gymnasium.Env[Pixels, Any]):
    """A game whose observation is a stack of small grayscale images.

    Args:
        name: Name of the game, see ``pufferlib.bindings.retro.names()``.
        state: Starting state, one of stable-retro's states for the game, or None for the default.
        scenario: Scenario that defines rewards and terminals, or None for the default.
        actions: "buttons" or "discrete".
        frame_skip: Frames per step, at about 60 frames per second.
        stack: Number of images in an observation.
        size: Height and width of the observation in pixels.
        repeat_action_probability: Probability, per frame, that the last buttons stay pressed.
        wait_max: Maximum number of frames without a button at the start of a game, chosen at random from 0.
        max_frames: Length at which a game is truncated. 18,000 frames are five minutes.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: The ROM is missing, or an option has the wrong type or is out of range.
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
        """Start the game. The next step overwrites the observation."""
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
        """Run ``frame_skip`` frames. The next step overwrites the observation."""
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
        self._held = np.array(self._held)  # copied, because the caller may change the action array
        self._frames[:-1] = self._frames[1:]
        self._frames[-1] = self._small()
        return self._frames, points, terminated, not terminated and self._played >= self._max_frames, {}

    def render(self) -> Pixels | None:
        """Return the screen, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        return self._screen.copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Release the emulator. Closing twice is safe."""
        self._lease.close()

    def _small(self) -> Pixels:
        grey = cv2.cvtColor(self._screen, cv2.COLOR_RGB2GRAY)
        small: Pixels = cv2.resize(grey, self._frames.shape[:0:-1], interpolation=cv2.INTER_AREA)
        return small


class _EmulatorLease:
    """One game's access to the emulator, of which there can be only one per process."""

    _owner: "weakref.ref[_EmulatorLease] | None" = None

    def __init__(self, where: str, name: str, state: str | None, scenario: str | None, actions: Any) -> None:
        self._where = where
        self._saved: bytes | None = None
        _check_rom(where, name)
        _check_known(where, "state", state, stable_retro.data.list_states(name))
        _check_known(where, "scenario", scenario, stable_retro.data.list_scenarios(name))
        self._rom = stable_retro.data.get_original_romfile_path(name)
        self._take_over()  # the result is discarded, because the next line makes a new emulator
        self.game: Any = stable_retro.make(
            name,
            state=stable_retro.State.DEFAULT if state is None else state,
            scenario=scenario,
            use_restricted_actions=actions,
            render_mode="rgb_array",  # a window by default
        )
        _EmulatorLease._owner = weakref.ref(self)

    def acquire(self) -> Any:
        """Return the game, with the emulator assigned to it."""
        if self.game is None:
            raise APIUsageError(f"{self._where}: the environment is closed; make a new one")
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
        """Close the game permanently."""
        if self.game is not None:
            self.game.close()
        self.game = None

    def _take_over(self) -> Any:
        """Save the game that has the emulator. Return the emulator if it has the same ROM, otherwise discard it."""
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
            f"{where}: expected its cartridge image (SHA-1 {digests}), which is not imported; {_how_to_import(where)}; "
            "retro/Airstriker-Genesis-v0 needs none"
        ) from error


def _how_to_import(where: str) -> str:
    if in_image():  # imports into a container are lost with it, so the same container must also train
        return (
            "put your own into a folder of the checkout, for example roms, and run outside: docker compose run --rm "
            f'--entrypoint bash tank -c "python -m stable_retro.import roms && tank-entrypoint train {where}"'
        )
    return "put your own into a folder and run: python -m stable_retro.import FOLDER"


def _check_known(where: str, kind: str, value: str | None, known: list[str]) -> None:
    if value is not None and value not in known:
        raise UnknownNameError.of(where, kind, value, known)
