"""One ViZDoom scenario as a Gymnasium environment that leaves no files behind."""

import contextlib
import tempfile
from typing import Any

import cv2
import gymnasium
import numpy as np
import numpy.typing as npt
import vizdoom.gymnasium_wrapper  # noqa: F401 - registers the scenarios
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from .._shared.options import check_counts, check_render_mode
from .engine import engine_folder

__all__ = ["Doom", "make_env"]

Observation = dict[str, npt.NDArray[Any]]
Info = dict[str, Any]

_RESOLUTIONS = ((120, 160), (240, 320), (480, 640))
_AMOUNT = 10.0  # amount of a button that has one: degrees to turn, or distance to move
_VARIABLES_SCALE = np.float32(1 / 100)  # health, armour and ammunition are percent
_MUTED = dict.fromkeys(("audio", "automap", "depth", "labels", "notifications"), False)


def make_env(name: str, **options: Any) -> "Doom":
    """Make the scenario ``name``, an id of ViZDoom.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """
    return Doom(name, **options)


class Doom(gymnasium.Env[Observation, Any]):
    """A scenario, observed as its last images and its game variables.

    Args:
        name: Id of ViZDoom.
        frame_skip: Frames per step, at 35 frames per second. Buttons stay pressed.
        height: Height of the images in pixels.
        width: Width of the images in pixels.
        stack: Number of images in an observation.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """

    def __init__(
        self,
        name: str,
        *,
        frame_skip: int = 4,
        height: int = 72,
        width: int = 128,
        stack: int = 1,
        render_mode: str | None = None,
    ) -> None:
        where = f"vizdoom/{name}"
        check_counts(where, frame_skip=frame_skip, height=height, width=width, stack=stack)
        check_render_mode(where, render_mode)
        drawn = next(((h, w) for h, w in _RESOLUTIONS if h >= height and w >= width), _RESOLUTIONS[-1])
        buffers = {f"{buffer}_buffer_enabled": on for buffer, on in _MUTED.items()}
        made: Any = gymnasium.make(
            name,
            disable_env_checker=True,
            frame_skip=frame_skip,
            render_mode=render_mode,
            screen_resolution=f"RES_{drawn[1]}X{drawn[0]}",
            **buffers,
        )
        self._doom = made.unwrapped
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 35 / frame_skip}
        self.render_mode = render_mode
        self._size = (width, height)
        self._screens = np.zeros((3 * stack, height, width), np.uint8)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        spaces: dict[str, Any] = {"screen": Box(0, 255, self._screens.shape, np.uint8)}
        self._variables = np.zeros(self._doom.num_game_variables, np.float32)
        if self._variables.size:
            spaces["gamevariables"] = Box(-np.inf, np.inf, self._variables.shape, np.float32)
        self.observation_space: Dict[Any] = Dict(spaces)  # type: ignore[assignment]  # as gymnasium types it
        self._amounts: int = self._doom.num_delta_buttons
        self.action_space = _action_space(self._doom.action_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode. The next step overwrites the screens of the observation."""
        super().reset(seed=seed)
        with self._starting():
            seen, _ = self._doom.reset(seed=None if seed is None else seed % 2**32)
        self._update_screens(seen)
        self._screens[:-3] = np.tile(self._screens[-3:], (len(self._screens) // 3 - 1, 1, 1))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Run ``frame_skip`` frames. The next step overwrites the screens of the observation."""
        seen, reward, over, truncated, _ = self._doom.step(self._pressed(action))
        if not over:
            self._screens[:-3] = self._screens[3:]
            self._update_screens(seen)
        return self._observation(), float(reward), over and not truncated, truncated, {}

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return the screen as the engine drew it, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        picture: npt.NDArray[np.uint8] | None = self._doom.render() if self.render_mode else None
        return picture

    def close(self) -> None:
        """Stop the engine, and remove its files."""
        self._doom.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _starting(self) -> contextlib.AbstractContextManager[None]:
        """Return a context for starting the engine, which changes to the folder for its files the first time."""
        if self._folder is not None:
            return contextlib.nullcontext()
        self._folder = engine_folder(self._doom.game)
        return contextlib.chdir(self._folder.name)

    def _update_screens(self, seen: Observation) -> None:
        small = cv2.resize(seen["screen"], self._size, interpolation=cv2.INTER_AREA)
        self._screens[-3:] = small.transpose(2, 0, 1)
        if self._variables.size:
            np.multiply(seen["gamevariables"], _VARIABLES_SCALE, out=self._variables)

    def _observation(self) -> Observation:
        if self._variables.size:
            return {"screen": self._screens, "gamevariables": self._variables.copy()}
        return {"screen": self._screens}

    def _pressed(self, action: Any) -> Any:
        """Convert ``action`` to ViZDoom's format."""
        if not self._amounts:
            return action
        buttons, amounts = action[: -self._amounts], action[-self._amounts :]
        is_one = isinstance(self._doom.action_space["binary"], Discrete)
        return {
            "binary": buttons[0] if is_one else buttons.astype(np.int8),
            "continuous": _AMOUNT * (amounts - 1).astype(np.float32),
        }


def _action_space(space: Any) -> Any:
    """Return ``space``. If it has amounts besides buttons, each of these gets three values."""
    if not isinstance(space, Dict):
        return space
    buttons: Any = space["binary"]
    counts = [int(buttons.n)] if isinstance(buttons, Discrete) else [2] * int(buttons.n)
    amounts: Any = space["continuous"]
    return MultiDiscrete([*counts, *[3] * amounts.shape[0]])
