"""Pace of an environment that is watched, and the frames between two of its steps."""

import math
from collections.abc import Iterator
from typing import Any

from pufferlib.render.video import Frame

__all__ = ["Motion"]

DEFAULT_FPS = 30.0  # steps in a second, where an environment does not say
SMOOTH_FPS = 30.0  # with less, pictures do not flow


def _rate(fps: Any) -> float:
    """Return the steps in a second that metadata declare, or the default if they declare no positive number."""
    try:
        rate = float(fps)
    except (TypeError, ValueError):
        return DEFAULT_FPS
    return rate if 0 < rate < math.inf else DEFAULT_FPS


class Motion:
    """The pictures of an environment in time.

    Where a step plays several frames, and the environment can show them (``OceanEnv.frames``), every frame is shown,
    or one of two, one of three, ..., as long as they flow.

    Attributes:
        fps: Pictures in a second.
        pictures_per_step: How many of them a step has.

    Args:
        env: One environment, or one that describes a batch.
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
        """The pictures between now and the end of a step with ``actions``, uint8 ``(height, width, 3)``.

        Args:
            actions: Of all agents of the environment.
            agent: ``agent=2`` where the pictures are for the third agent, as ``render`` takes it.
        """
        if self.pictures_per_step > 1:
            yield from self._env.frames(actions, every=self._every, **agent)
