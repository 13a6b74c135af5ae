"""One level of DeepMind Lab as a Gymnasium environment."""

from typing import Any

import deepmind_lab
import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from .._shared.options import check_counts, check_render_mode

__all__ = ["LabGame"]

Pixels = npt.NDArray[np.uint8]

_VIEW = "RGB_INTERLEAVED"
# Degrees to look right and up, then strafe, move, fire, jump, crouch.
_ACTIONS = np.array(
    [
        (0, 0, 0, 1, 0, 0, 0),
        (0, 0, 0, -1, 0, 0, 0),
        (0, 0, -1, 0, 0, 0, 0),
        (0, 0, 1, 0, 0, 0, 0),
        (-20, 0, 0, 0, 0, 0, 0),
        (20, 0, 0, 0, 0, 0, 0),
        (-20, 0, 0, 1, 0, 0, 0),
        (20, 0, 0, 1, 0, 0, 0),
        (0, 0, 0, 0, 1, 0, 0),
    ],
    np.intc,
)


class LabGame(gymnasium.Env[Pixels, np.int64]):
    """A level, seen through the player's eyes.

    Args:
        name: Name of the level, without its folder.
        height: Height of the observation in pixels.
        width: Width of the observation in pixels.
        frame_skip: Frames per step, at 60 frames per second.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self, name: str, *, height: int = 72, width: int = 96, frame_skip: int = 4, render_mode: str | None = None
    ) -> None:
        check_counts(f"dmlab/{name}", height=height, width=width, frame_skip=frame_skip)
        check_render_mode(f"dmlab/{name}", render_mode)
        self.render_mode = render_mode
        self._frame_skip = frame_skip
        self._lab = deepmind_lab.Lab(
            f"contributed/dmlab30/{name}", [_VIEW], config={"height": str(height), "width": str(width)}
        )
        self._view = np.zeros((height, width, 3), np.uint8)
        self.observation_space = Box(0, 255, self._view.shape, np.uint8)
        self.action_space = Discrete(len(_ACTIONS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, dict[str, Any]]:
        """Restart the level."""
        super().reset(seed=seed)
        self._lab.reset(seed=int(self.np_random.integers(2**31)))
        self._view = self._lab.observations()[_VIEW]
        return self._view, {}

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, dict[str, Any]]:
        """Repeat ``action`` for ``frame_skip`` frames. A finished level has no view, so the last one is returned."""
        reward = float(self._lab.step(_ACTIONS[action], num_steps=self._frame_skip))
        running = bool(self._lab.is_running())
        if running:
            self._view = self._lab.observations()[_VIEW]
        return self._view, reward, not running, False, {}

    def render(self) -> Pixels | None:
        """Return the player's view, or None without a ``render_mode``."""
        return self._view if self.render_mode else None

    def close(self) -> None:
        """Close the level."""
        self._lab.close()
