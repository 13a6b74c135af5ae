"""Frame rate of a rendered environment, and the frames between two steps."""

import math
from collections.abc import Iterator
from typing import Any

from pufferlib.render.video import Frame

__all__ = ["Motion"]

DEFAULT_FPS = 30.0  # steps per second if the environment declares no rate
SMOOTH_FPS = 30.0  # lowest frame rate that looks smooth


def _rate(fps: Any) -> float:
    """Convert a declared ``render_fps`` to a float. Return the default unless it is positive and finite."""
    try:
        rate = float(fps)
    except (TypeError, ValueError):
        return DEFAULT_FPS
    return rate if 0 < rate < math.inf else DEFAULT_FPS


class Motion:
    """Frame rate and intermediate frames of an environment.

    If a step consists of several frames and the environment can draw them (``OceanEnv.frames``), one of every n frames
    is drawn. The largest n is used that still looks smooth.

    Attributes:
        fps: Frames per second.
        pictures_per_step: Number of frames per step.

    Args:
        env: Single environment, or the driver environment of a batch.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        metadata = getattr(env, "metadata", None) or {}
        frames = getattr(env, "frames_per_step", 1)
        steps_per_second = _rate(metadata.get("render_fps"))
        counts = (n for n in range(1, frames + 1) if frames % n == 0)
        self.pictures_per_step = next((n for n in counts if n * steps_per_second >= SMOOTH_FPS), frames)
        self.fps = steps_per_second * self.pictures_per_step
        self._every = frames // self.pictures_per_step

    def between(self, actions: Any, **agent: int) -> Iterator[Frame]:
        """Yield the frames between now and the end of a step with ``actions``, uint8 ``(height, width, 3)``.

        Args:
            actions: Actions of all agents of the environment.
            agent: Keyword argument for ``render``, for example ``agent=2`` for the view of the third agent.
        """
        if self.pictures_per_step > 1:
            yield from self._env.frames(actions, every=self._every, **agent)
