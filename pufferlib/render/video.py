"""Writer of H.264 mp4 videos that play in every browser."""

import math
import os
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream

__all__ = ["Frame", "VideoWriter", "check_video_path"]

Frame = npt.NDArray[np.uint8]

# Small frames (Atari: 160 x 210) are enlarged by a whole factor until they have at least this height.
MIN_HEIGHT_PX = 320


def check_video_path(where: str, path: Path) -> None:
    """Raise APIUsageError unless ``path`` ends with ``.mp4``."""
    if path.suffix.lower() != ".mp4":
        raise APIUsageError(
            f"{where}: a video must be a file NAME.mp4, got {path}; for a GIF, convert it: ffmpeg -i NAME.mp4 NAME.gif"
        )


class VideoWriter:
    """Video writer that encodes frame by frame, in constant memory.

    The file appears when it is complete. All frames must have the shape of the first one. Small frames are enlarged by
    a whole factor. Odd sizes are padded by a black line, because the pixel format yuv420p, which browsers need,
    requires even sizes.

    Args:
        path: Path of the mp4 file. Its folder must exist.
        fps: Frames per second of the video, at least 1.
        max_seconds: Maximum length of the video. Further frames are dropped.

    Attributes:
        frames: Number of frames written.
        dropped: Number of frames dropped.

    Raises:
        APIUsageError: ``fps`` is below 1.
        BindingMissing: PyAV is not installed.
        OSError: The file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], fps: float = 30.0, max_seconds: float = math.inf) -> None:
        check_video_path("VideoWriter", Path(path))
        if fps < 1:
            raise APIUsageError(f"VideoWriter: fps must be at least 1, got {fps}; 30 suits most games")
        try:
            import av
        except ImportError as error:
            raise BindingMissing(f"VideoWriter: videos need PyAV; {way_to_install('train')}") from error
        self.path = Path(path)
        self.frames = self.dropped = 0
        self.fps, self.max_frames = fps, fps * max_seconds
        self._rate = Fraction(fps).limit_denominator(1000)
        self._shape: tuple[int, ...] = ()
        self._is_broken = False  # a write failed
        self._stream: VideoStream | None = None
        self._partial = self.path.with_name(self.path.name + ".part")
        self._partial.touch()  # fail now if the folder is not writable, not after a minute of frames
        # faststart writes the index first, so that a browser can start before it has loaded the whole file.
        self._container: OutputContainer | None = av.open(
            str(self._partial), "w", format="mp4", options={"movflags": "+faststart"}
        )

    @property
    def full(self) -> bool:
        """True if the video has reached its maximum length. Further frames are dropped."""
        return self.frames >= self.max_frames

    def write(self, frame: Frame) -> None:
        """Append ``frame``, uint8 ``(height, width, 3)`` RGB.

        Raises:
            APIUsageError: The frame is not an RGB image, its shape differs from the first one, or the writer is
                closed.
        """
        import av

        if self._container is None:
            raise APIUsageError(f"VideoWriter.write: {self.path} is closed; open a new writer")
        self._check(frame)
        if self.full:
            self.dropped += 1
            return
        picture = av.VideoFrame.from_ndarray(_fit(frame), format="rgb24")
        stream = self._stream or self._open_stream(self._container, picture.width, picture.height)
        try:
            self._container.mux(stream.encode(picture))
        except OSError:
            self._is_broken = True
            raise
        self.frames += 1

    def close(self) -> None:
        """Finish the file and move it to ``path``. Without frames there is no file. Closing twice is harmless."""
        if self._container is None:
            return
        container, self._container = self._container, None
        stream, self._stream = self._stream, None  # a closed writer can be pickled, as part of the result of a training
        try:
            if stream is not None and not self._is_broken:  # a part is missing, and PyAV crashed here once
                container.mux(stream.encode())
            container.close()
            if self.frames:
                self._partial.replace(self.path)
        finally:
            self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, frame: Frame) -> None:
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            got = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else repr(frame)
            raise APIUsageError(
                f"VideoWriter.write: a frame must be uint8 (height, width, 3), got {got}; is render_mode 'rgb_array'?"
            )
        self._shape = self._shape or frame.shape
        if frame.shape != self._shape:
            raise APIUsageError(
                f"VideoWriter.write: every frame must have the shape of the first, {self._shape}, got {frame.shape}"
            )

    def _open_stream(self, container: "OutputContainer", width: int, height: int) -> "VideoStream":
        self._stream = container.add_stream("libx264", rate=self._rate)
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"crf": "20", "preset": "veryfast"}
        return self._stream


def _fit(frame: Frame) -> Frame:
    """Enlarge ``frame`` by a whole factor to at least ``MIN_HEIGHT_PX``, then pad it to an even width and height."""
    factor = max(1, -(-MIN_HEIGHT_PX // frame.shape[0]))
    if factor > 1:
        frame = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    height, width, _ = frame.shape
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)))
