"""Pokemon Red as a Gymnasium environment: half-size images, a few numbers, and rewards for everything new."""

import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete

from pufferlib.errors import APIUsageError

from .._shared.options import check_counts, check_numbers, check_render_mode
from .kanto import HEIGHT, WIDTH, on_kanto
from .memory import EVENT_FLAGS, PARTY_SIZE, GameState, read_state
from .practice import practice_rom
from .rom import find_rom

with warnings.catch_warnings():
    # pyboy warns where its SDL comes from, but SDL is not used here.
    warnings.filterwarnings("ignore", "Using SDL2 binaries", UserWarning)
    import pyboy

__all__ = ["BUTTONS", "PokemonRed", "make_env"]

BUTTONS = ("down", "left", "right", "up", "a", "b", "start")

_BOOT_FRAMES = 120  # longer than the console's boot sequence
_NUMBERS = 8 + 2 * PARTY_SIZE

Observation = dict[str, npt.NDArray[Any]]
Info = dict[str, Any]


def make_env(name: str, *, rom: str | os.PathLike[str] | None = None, **options: Any) -> "PokemonRed":
    """Make an environment with the cartridge ``name``. ``rom`` is the file of "red". "practice" needs no file.

    Raises:
        APIUsageError: The file is missing or contains another game, or an option is out of range.
    """
    if name == "practice" and rom is not None:
        raise APIUsageError(f"pokemon_red/practice: has its cartridge built in, got rom={rom!r}; use pokemon_red/red")
    return PokemonRed(name, practice_rom() if name == "practice" else find_rom(rom), **options)


class PokemonRed(gymnasium.Env[Observation, np.int64]):
    """The game, observed as its last images and some numbers from its memory.

    Args:
        name: Name for error messages.
        cartridge: Cartridge image (ROM).
        state: File written by PyBoy's ``save_state`` from which episodes start, or None to start when the console is
            switched on, before the title screen.
        frame_skip: Frames per step, at 60 frames per second.
        hold: Number of these frames for which the button is held.
        stack: Number of images in an observation.
        wait_max: Maximum number of idle frames at the start of an episode, chosen at random from 0.
        max_steps: Length at which an episode is truncated. 20,480 steps are 2.3 hours.
        reward_square: Reward for each square of a map entered for the first time in the episode.
        reward_event: Reward for each event flag of the story.
        reward_badge: Reward for each badge.
        reward_level: Reward for each level of the party.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range, or ``state`` cannot be read.
    """

    def __init__(
        self,
        name: str,
        cartridge: bytes,
        *,
        state: str | os.PathLike[str] | None = None,
        frame_skip: int = 24,
        hold: int = 8,
        stack: int = 3,
        wait_max: int = 60,
        max_steps: int = 20_480,
        reward_square: float = 0.02,
        reward_event: float = 1.0,
        reward_badge: float = 5.0,
        reward_level: float = 0.5,
        render_mode: str | None = None,
    ) -> None:
        where = f"pokemon_red/{name}"
        check_counts(where, frame_skip=frame_skip, hold=hold, stack=stack, max_steps=max_steps)
        check_counts(where, 0, wait_max=wait_max)
        if hold >= frame_skip:
            raise APIUsageError(f"{where}: hold must be less than frame_skip={frame_skip}, got {hold}")
        check_render_mode(where, render_mode)
        self._weights = {
            "squares": reward_square,
            "events": reward_event,
            "badges": reward_badge,
            "levels": reward_level,
        }
        check_numbers(where, **{f"reward_{kind.removesuffix('s')}": weight for kind, weight in self._weights.items()})
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / frame_skip}
        self.render_mode = render_mode
        self._hold, self._rest = hold, frame_skip - hold
        self._wait_max = wait_max
        self._max_steps = max_steps
        self.observation_space: Dict[Any] = Dict(  # type: ignore[assignment]  # as gymnasium types it
            {"screen": Box(0, 255, (stack, 72, 80), np.uint8), "numbers": Box(0, 1, (_NUMBERS,), np.float32)}
        )
        self.action_space = Discrete(len(BUTTONS))
        self._screens = np.zeros((stack, 72, 80), np.uint8)
        self._console = _boot(cartridge)
        self._start = _start(where, self._console, state)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observation, Info]:
        """Restore the start. The next step overwrites the screens of the observation."""
        super().reset(seed=seed)
        self._start.seek(0)
        self._console.load_state(self._start)
        self._console.tick(1 + int(self.np_random.integers(self._wait_max + 1)), True, False)
        moment = read_state(self._console.memory)
        self._steps = 0
        self._outdoors = (WIDTH // 2, HEIGHT // 2)
        self._visited: set[tuple[int, int, int]] = set()
        self._best: dict[str, int] = {}
        self._collect_reward(moment)  # the initial state is not rewarded
        self._screens[:] = self._picture()
        return self._observation(moment), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Press a button. The next step overwrites the screens of the observation."""
        button = BUTTONS[action]
        self._console.button_press(button)
        self._console.tick(self._hold, False, False)
        self._console.button_release(button)
        self._console.tick(self._rest, True, False)
        moment = read_state(self._console.memory)
        reward = self._collect_reward(moment)
        self._screens[:-1] = self._screens[1:]
        self._screens[-1] = self._picture()
        self._steps += 1
        truncated = self._steps >= self._max_steps
        return self._observation(moment), reward, False, truncated, self._summary() if truncated else {}

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return the screen, uint8 ``(144, 160, 3)``, or None without a ``render_mode``."""
        return self._console.screen.ndarray[:, :, :3].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Switch the console off. Nothing is saved."""
        self._console.stop(save=False)

    def _collect_reward(self, moment: GameState) -> float:
        """Return the reward for everything in ``moment`` that is new in the episode."""
        self._visited.add(moment.square)
        now = {
            "squares": len(self._visited),
            "events": moment.events,
            "badges": moment.badges,
            "levels": sum(moment.levels),
        }
        reward = sum(
            self._weights[kind] * (count - self._best.get(kind, 0))
            for kind, count in now.items()
            if count > self._best.get(kind, 0)
        )
        self._best = {kind: max(count, self._best.get(kind, 0)) for kind, count in now.items()}
        return float(reward)

    def _picture(self) -> npt.NDArray[np.uint8]:
        """Return every second pixel of every second row. The screen is gray, so all channels are equal."""
        picture: npt.NDArray[np.uint8] = self._console.screen.ndarray[::2, ::2, 0]
        return picture

    def _observation(self, moment: GameState) -> Observation:
        self._outdoors = on_kanto(*moment.square) or self._outdoors
        numbers = np.zeros(_NUMBERS, np.float32)
        numbers[:8] = (
            *(coordinate / 255 for coordinate in moment.square),
            self._outdoors[0] / WIDTH,
            self._outdoors[1] / HEIGHT,
            moment.badges / 8,
            moment.events / EVENT_FLAGS,
            moment.in_battle,
        )
        count = len(moment.levels)
        numbers[8 : 8 + count] = np.minimum(moment.levels, 100) / 100
        numbers[8 + PARTY_SIZE : 8 + PARTY_SIZE + count] = moment.health
        return {"screen": self._screens, "numbers": numbers}

    def _summary(self) -> Info:
        maps = len({place[0] for place in self._visited})
        return {**self._best, "maps": maps, "perf": self._best["badges"] / 8}


def _boot(cartridge: bytes) -> Any:
    """Return a console without window and sound, at the moment when the cartridge starts."""
    # With bytes instead of a path, PyBoy cannot read or write saved games beside the ROM.
    console = pyboy.PyBoy(io.BytesIO(cartridge), window="null", sound_emulated=False, log_level="CRITICAL")
    console.set_emulation_speed(0)  # as fast as it can
    console.tick(_BOOT_FRAMES, True, False)
    return console


def _start(where: str, console: Any, state: str | os.PathLike[str] | None) -> io.BytesIO:
    """Return the state in which episodes start."""
    if state is None:
        start = io.BytesIO()
        console.save_state(start)
        return start
    try:
        start = io.BytesIO(Path(state).expanduser().read_bytes())
        console.load_state(start)
    except Exception as error:  # invalid files can raise any exception in PyBoy
        console.stop(save=False)
        raise APIUsageError(
            f"{where}: state must be a file that save_state of PyBoy can read, got {state}: "
            f"{error or type(error).__name__}; save one in PyBoy with this cartridge"
        ) from error
    return start
