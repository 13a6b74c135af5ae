"""Frames of an Atari game: small images, grayscale or color, of which the last few form an observation."""

from typing import Protocol

import ale_py
import cv2
import numpy as np
import numpy.typing as npt

from pufferlib.native._pictures import FrameStack

__all__ = ["NEWER", "OLDER", "Pictures", "make_pictures"]

Pixels = npt.NDArray[np.uint8]
Ale = ale_py.ALEInterface

# Indices of the two screens that are merged into a frame.
NEWER = 0
OLDER = 1


class Pictures(Protocol):
    """The last frames of a game.

    Attributes:
        frames: Frames, uint8 ``(stack, height, width)``, oldest first. In color, ``(stack, 3, height, width)``.
    """

    frames: Pixels

    def look(self, which: int) -> None:
        """Read the current screen as ``NEWER`` or ``OLDER``."""

    def push(self, both: bool) -> None:
        """Drop the oldest frame and append a new one: the pixel-wise maximum of both screens, or the newer screen."""

    def forget(self) -> None:
        """Discard the cached newest frame, because ``frames`` was written from outside."""


def make_pictures(ale: Ale, stack: int, size: tuple[int, int], grey: bool, area_resize: bool) -> Pictures:
    """Make the frames of a game.

    Args:
        ale: Emulator with the game loaded.
        stack: Number of frames.
        size: Height and width of the frames in px.
        grey: Whether frames are grayscale.
        area_resize: Whether to resize by area averaging. Otherwise each pixel averages its four nearest screen pixels.
    """
    if grey and area_resize:
        try:
            return _FastPictures(ale, stack, size)
        except ValueError:
            pass
    return _CvPictures(ale, stack, size, grey, cv2.INTER_AREA if area_resize else cv2.INTER_LINEAR)


class _FastPictures:
    """Grayscale frames of common sizes, updated incrementally. The result is identical to cv2's, in less time."""

    def __init__(self, ale: Ale, stack: int, size: tuple[int, int]) -> None:
        self.frames = np.zeros((stack, *size), np.uint8)
        self._ale = ale
        screens = np.zeros((2, *ale.getScreenDims()), np.uint8)
        self._greys = np.zeros_like(screens[0])
        self._screens = tuple(screens)
        self._compiled = FrameStack(screens, self.frames)
        self.push, self.forget = self._compiled.push, self._compiled.forget

    def look(self, which: int) -> None:
        # Reading palette indices is a plain copy. ALE would convert gray levels pixel by pixel.
        self._ale.getScreen(self._screens[which])
        if not self._compiled.take(which):
            self._ale.getScreenGrayscale(self._greys)
            self._compiled.learn(which, self._greys)


class _CvPictures:
    """Frames of any size, resized by OpenCV."""

    def __init__(self, ale: Ale, stack: int, size: tuple[int, int], grey: bool, interpolation: int) -> None:
        self.frames = np.zeros((stack, *size) if grey else (stack, 3, *size), np.uint8)
        self._size, self._interpolation = size[::-1], interpolation
        self._copy = ale.getScreenGrayscale if grey else ale.getScreenRGB
        dims = ale.getScreenDims()
        self._screens = np.zeros((2, *dims) if grey else (2, *dims, 3), np.uint8)

    def look(self, which: int) -> None:
        self._copy(self._screens[which])

    def push(self, both: bool) -> None:
        screen = np.maximum(*self._screens) if both else self._screens[NEWER]
        small = cv2.resize(screen, self._size, interpolation=self._interpolation)
        self.frames[:-1] = self.frames[1:]
        self.frames[-1] = small if small.ndim == 2 else small.transpose(2, 0, 1)

    def forget(self) -> None:
        pass
