"""Frames of an Atari game, small, grey or in color: the last ones are what an agent sees."""

from typing import Protocol

import ale_py
import cv2
import numpy as np
import numpy.typing as npt

from pufferlib.native._pictures import FrameStack

__all__ = ["NEWER", "OLDER", "Pictures", "make_pictures"]

Pixels = npt.NDArray[np.uint8]
Ale = ale_py.ALEInterface

# The two screens that a frame is made of.
NEWER = 0
OLDER = 1


class Pictures(Protocol):
    """The last frames of a game.

    Attributes:
        frames: uint8 ``(stack, height, width)``, oldest first; in color ``(stack, 3, height, width)``.
    """

    frames: Pixels

    def look(self, which: int) -> None:
        """Take the screen as it is now, as ``NEWER`` or ``OLDER``."""

    def push(self, both: bool) -> None:
        """Drop the oldest frame and add a new one: of both screens, of each pixel the lighter, or of the newer."""

    def forget(self) -> None:
        """Forget what was made last, because somebody wrote into ``frames``."""


def make_pictures(ale: Ale, stack: int, size: tuple[int, int], grey: bool, area_resize: bool) -> Pictures:
    """Make the frames of a game.

    Args:
        ale: The emulator, with the game.
        stack: How many.
        size: Their height and width, px.
        grey: Grey rather than in color.
        area_resize: A pixel is the mean of the area that it covers, else of the four that are nearest to its middle.
    """
    if grey and area_resize:
        try:
            return _FastPictures(ale, stack, size)
        except ValueError:
            pass
    return _CvPictures(ale, stack, size, grey, cv2.INTER_AREA if area_resize else cv2.INTER_LINEAR)


class _FastPictures:
    """Grey frames of the usual sizes, made of what has changed since the last one: the bytes of cv2 in less time."""

    def __init__(self, ale: Ale, stack: int, size: tuple[int, int]) -> None:
        self.frames = np.zeros((stack, *size), np.uint8)
        self._ale = ale
        screens = np.zeros((2, *ale.getScreenDims()), np.uint8)
        self._greys = np.zeros_like(screens[0])
        self._screens = tuple(screens)
        self._compiled = FrameStack(screens, self.frames)
        self.push, self.forget = self._compiled.push, self._compiled.forget

    def look(self, which: int) -> None:
        # Colors come by their numbers, which is a copy; greys would be looked up pixel by pixel.
        self._ale.getScreen(self._screens[which])
        if not self._compiled.take(which):
            self._ale.getScreenGrayscale(self._greys)
            self._compiled.learn(which, self._greys)


class _CvPictures:
    """Frames of any size, by OpenCV."""

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
