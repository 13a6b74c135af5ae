"""The film of an episode, and what is said of it."""

import math
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from pufferlib.render.video import Frame, VideoWriter
from pufferlib.training.text import duration

__all__ = ["Film"]


class Film:
    """Takes the pictures of an episode; the mp4 file appears when it is complete, if there was a picture.

    Args:
        path: The file.
        max_seconds: It is cut after that; 0 is no limit.
    """

    def __init__(self, path: Path, max_seconds: float) -> None:
        self.path, self._max_seconds = path, max_seconds or math.inf
        self._file = path.absolute()  # whatever the working directory becomes
        self._writer: VideoWriter | None = None
        self._shape = (0, 0)

    def __call__(self, picture: Frame | None, fps: float) -> None:
        """Append a picture; ``fps`` of them make a second."""
        if picture is None:  # of an environment that draws none
            return
        if self._writer is None:
            self._writer = VideoWriter(self._file, max(1.0, fps), self._max_seconds)
            self._shape = picture.shape[:2]
        self._writer.write(picture if picture.shape[:2] == self._shape else _cut_or_padded(picture, self._shape))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
        except Exception as failure:  # a full disk for example: the evaluation matters more
            warnings.warn(f"{self.path}: the video could not be written: {failure}", stacklevel=2)

    def about(self) -> str:
        """Text on what it shows; empty if there is none."""
        if self._writer is None:
            return ""
        length = duration(self._writer.frames / self._writer.fps)
        shown = f"the first episode of the evaluation, {length} at {self._writer.fps:g} pictures a second"
        if not self._writer.dropped:
            return shown
        whole = duration((self._writer.frames + self._writer.dropped) / self._writer.fps)
        return f"{shown}; cut, for it lasts {whole}: --eval.video-seconds 0 films all of it"

    def as_dict(self) -> dict[str, Any]:
        """Length, pictures per second and completeness, by the names that ``summary.json`` has for them."""
        writer = self._writer
        if writer is None:
            return {"video_s": None, "video_fps": None, "video_is_whole": None}
        return {
            "video_s": round(writer.frames / writer.fps, 3),
            "video_fps": writer.fps,
            "video_is_whole": writer.dropped == 0,
        }


def _cut_or_padded(picture: Frame, shape: tuple[int, ...]) -> Frame:
    """Return ``picture`` at the size of the first one: cut, or padded by black, at its right and lower sides."""
    height, width = shape
    found = np.zeros((height, width, 3), np.uint8)
    part = picture[:height, :width]
    found[: part.shape[0], : part.shape[1]] = part
    return found
