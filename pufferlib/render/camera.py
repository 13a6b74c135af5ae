"""Video recording of an environment during evaluation or training."""

import warnings
from collections.abc import Callable
from typing import Any

from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame

__all__ = ["Camera", "Record"]

#: Function of a frame, or None if the environment cannot be drawn, and the frame rate in 1/s.
Record = Callable[[Frame | None, float], None]


class Camera:
    """Recorder of frames of an environment. If rendering or recording fails, it warns and stops recording.

    Args:
        env: Environment, or the driver environment of a batch.
        record: Function that receives the frames. None disables recording.
    """

    def __init__(self, env: Any, record: Record | None) -> None:
        self._env, self._record = env, record
        self._motion = Motion(env)

    def shoot(self, actions: Any, **agent: int) -> None:
        """Record the current frame, and the frames between now and the end of a step with ``actions``."""
        if self._record is None:
            return
        try:
            self._record(picture_of(self._env, **agent), self._motion.fps)
            for picture in self._motion.between(actions, **agent):
                self._record(picture, self._motion.fps)
        except Exception as error:  # a failure to draw must not lose the scores
            self._record = None
            name = type(getattr(self._env, "unwrapped", self._env)).__name__
            warnings.warn(
                f"{name}: recording stopped: {type(error).__name__}: {error}; the episode continues", stacklevel=3
            )
