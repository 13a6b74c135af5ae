"""Classify two parts of a structured observation with two parts of a structured action.

Observation: ``{"image": Box(-1, 1, (5, 5), float32), "flat": Box(-1, 1, (5,), int8)}``, random in each
episode. With ``nested`` the parts are nested deeper: ``{"parts": ({"image": ...}, flat)}``. With ``pixels`` it is the
image that ``render`` draws, scaled to that size.

Action: ``{"image": Discrete(2), "flat": Discrete(2)}``, nested in the same way (also with ``pixels``).

Reward: 0.5 for each part of the action that is right. The right value is 1 if the sum of the same part of
the observation is above 0, else 0. ``score`` and ``perf`` equal the reward.

Terminal: after every step.

Source: PufferLib's spaces. There the image is never negative, so 1 is always right for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from pufferlib.buffers import Array
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.ocean.pixels import as_observation, checked_pixels, pixel_space
from pufferlib.render.view import RENDER_MODES, View

__all__ = ["Spaces", "make"]

Parts = tuple[Any, Any]  # image and flat


class Spaces(gymnasium.Env[Any, Any]):
    """The Gymnasium environment. See the module's docstring for its rules.

    Args:
        nested: Whether to nest the parts in a Dict in a Tuple in a Dict.
        render_mode: Output of ``render``. None or "rgb_array": return an image. "ansi": return text for a terminal.
            "human": show every reset and step in a window.
        pixels: Height and width of the images that the agent observes instead of the parts, as uint8
            ``(3, height, width)``. Independent of ``render_mode``.

    Raises:
        APIUsageError: ``pixels`` is not a valid pair of ints.
        UnknownNameError: ``render_mode`` does not exist.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self, nested: bool = False, render_mode: str | None = None, pixels: Sequence[int] | None = None
    ) -> None:
        self.nested, self.render_mode = nested, render_mode
        self._size = checked_pixels("Spaces", pixels)
        self._view = View("Spaces", render_mode, self.metadata["render_fps"])
        parts = self._join(Box(-1, 1, (5, 5), np.float32), Box(-1, 1, (5,), np.int8))
        self.observation_space = pixel_space(self._size) if self._size else parts
        self.action_space = self._join(Discrete(2), Discrete(2))
        self._shown: Parts = (np.zeros((5, 5), np.float32), np.zeros(5, np.int8))
        self._correct: tuple[bool, bool] | None = None  # in the last step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode with a random observation."""
        super().reset(seed=seed)
        if seed is not None:
            self._correct = None  # so that a seed always gives the same images
        image = self.np_random.uniform(-1, 1, (5, 5)).astype(np.float32)
        self._shown = image, self.np_random.integers(-1, 2, 5, dtype=np.int8)
        if self._view.is_live:
            self.render()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Score the action and end the episode."""
        image, flat = self._split(action)
        self._correct = image == _is_positive(self._shown[0]), flat == _is_positive(self._shown[1])
        if self._view.is_live:
            self._view.wait()
            self.render()
        score = 0.5 * sum(self._correct)
        info = {"score": score, "perf": score, "episode_return": score, "episode_length": 1}
        return self._observation(), score, True, False, info

    def render(self) -> npt.NDArray[np.uint8] | str | None:
        """Render the observation as an image ``(200, 320, 3)``, output according to ``render_mode``.

        Each cell is a number, orange above 0 and blue below. The column at the right end of each part shows the sum of
        the part, up or down from the middle. The left edge of the image beside a part is green if its action was right
        in the last step, and red otherwise.
        """
        return self._view.show(self._draw())

    def close(self) -> None:
        """Close the window, if there is one."""
        self._view.close()

    def _draw(self) -> npt.NDArray[np.uint8]:
        picture = np.full((200, 320, 3), _NIGHT, np.uint8)
        for index, (part, top, rows) in enumerate(zip(self._shown, (10, 155), (5, 1), strict=True)):
            for cell, value in enumerate(part.flat):
                y, x = top + cell // 5 * 26, 40 + cell % 5 * 40
                picture[y : y + 24, x : x + 38] = _colour(float(value))
            _draw_sum(picture[top : top + rows * 26 - 2, 260:300], float(part.sum()))
            if self._correct is not None:
                picture[top : top + rows * 26 - 2, :20] = _GREEN if self._correct[index] else _RED
        return picture

    def _observation(self) -> Any:
        if self._size:
            return as_observation(self._draw(), self._size)
        image, flat = (part.copy() for part in self._shown)
        if self.nested:
            return {"parts": ({"image": image}, flat)}
        return {"image": image, "flat": flat}

    def _join(self, image: gymnasium.Space[Any], flat: gymnasium.Space[Any]) -> Dict:
        if self.nested:
            return Dict({"parts": Tuple((Dict({"image": image}), flat))})
        return Dict({"image": image, "flat": flat})

    def _split(self, action: Any) -> Parts:
        if self.nested:
            return action["parts"][0]["image"], action["parts"][1]
        return action["image"], action["flat"]


def make(
    buf: Mapping[str, Array] | None = None,
    seed: int = 0,
    nested: bool = False,
    render_mode: str | None = None,
    pixels: Sequence[int] | None = None,
) -> GymnasiumPufferEnv:
    """Return the environment with flat spaces."""
    return GymnasiumPufferEnv(env=Spaces(nested, render_mode, pixels), buf=buf, seed=seed)


def _is_positive(part: npt.NDArray[Any]) -> bool:
    return bool(part.sum() > 0)


_NIGHT, _SLATE, _WHITE = (6, 24, 32), (20, 48, 60), (241, 241, 241)
_ORANGE, _BLUE, _GREEN, _RED = (232, 140, 48), (74, 111, 214), (83, 166, 83), (214, 69, 69)


def _colour(value: float) -> npt.NDArray[np.float64]:
    """Return a color between slate for 0 and orange for 1 or blue for -1."""
    share = min(abs(value), 1.0)
    return share * np.array(_ORANGE if value > 0 else _BLUE) + (1 - share) * np.array(_SLATE)


def _draw_sum(column: npt.NDArray[np.uint8], value: float) -> None:
    """Fill ``column`` from its middle, upwards for positive and downwards for negative sums.

    A sum of 5 fills it. A small sum other than 0 stays visible.
    """
    column[:] = _SLATE
    middle = len(column) // 2
    reach = max(round(middle * min(abs(value) / 5, 1.0)), 5 * (value != 0))
    column[middle - reach if value > 0 else middle : middle if value > 0 else middle + reach] = _colour(np.sign(value))
    column[middle - 1 : middle + 1] = _WHITE
