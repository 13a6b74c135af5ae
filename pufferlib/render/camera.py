"""Film of an environment that is played for other reasons."""

import warnings
from collections.abc import Callable
from typing import Any

from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame

__all__ = ["Camera", "Record"]

#: Takes a picture, or None from an environment that draws none, and the number of pictures in a second.
Record = Callable[[Frame | None, float], None]


class Camera:
    """Records the pictures of an environment. If drawing or recording one fails, it warns and records no more.

    Args:
        env: The environment, or one that describes a batch.
        record: Takes the pictures; None records nothing.
    """

    def __init__(self, env: Any, record: Record | None) -> None:
        self._env, self._record = env, record
        self._motion = Motion(env)

    def shoot(self, actions: Any, **agent: int) -> None:
        """Record the picture of now, and those on the way to the end of a step with ``actions``."""
        if self._record is None:
            return
        try:
            self._record(picture_of(self._env, **agent), self._motion.fps)
            for picture in self._motion.between(actions, **agent):
                self._record(picture, self._motion.fps)
        except Exception as error:  # whatever it is: the scores must not be lost with the pictures
            self._record = None
            name = type(getattr(self._env, "unwrapped", self._env)).__name__
            warnings.warn(
                f"{name} is filmed no further: {type(error).__name__}: {error}; it is played to the end", stacklevel=3
            )
