"""Image scaling for renders and for stacks of game frames, and access to the bitmap font."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memmove

from pufferlib.native.puffer_pixels cimport puffer_scale_once

from pufferlib.errors import APIUsageError

cdef extern from "puffer_font.h":
    enum: FONT_HEIGHT
    enum: FONT_WIDTH
    uint8_t font_row(char character, int32_t row)

cdef extern from "puffer_screens.h":
    ctypedef struct PufferScreens:
        bint has_frame
    bint puffer_screens_init(
        PufferScreens *screens, int height, int width, int small_height, int small_width, uint8_t *memory)
    bint puffer_screens_take(PufferScreens *screens, int which, const uint8_t *colors) noexcept
    void puffer_screens_learn(PufferScreens *screens, int which, const uint8_t *greys) noexcept
    void puffer_screens_show(PufferScreens *screens, bint both, uint8_t *small) noexcept


def font_dots():
    """Return the pixels of the font as bool ``(256, 9, 5)``: character code, row from the top, column."""
    dots = np.zeros((256, FONT_HEIGHT, FONT_WIDTH), np.bool_)
    for code in range(128):
        for row in range(FONT_HEIGHT):
            dots[code, row] = [font_row(<char>code, row) >> (FONT_WIDTH - 1 - column) & 1 for column in range(FONT_WIDTH)]
    return dots


def scale_picture(const uint8_t[:, :, ::1] picture, uint8_t[:, :, ::1] small):
    """Scale ``picture`` to the size of ``small`` by area averaging. Both are uint8 ``(height, width, 3)``."""
    large_shape, small_shape = [picture.shape[i] for i in range(3)], [small.shape[i] for i in range(3)]
    if min(large_shape + small_shape) < 1 or large_shape[2] != 3 or small_shape[2] != 3:
        raise APIUsageError(
            f"scale_picture: both pictures must have the shape (height, width, 3), got {large_shape} and {small_shape}")
    if not puffer_scale_once(&picture[0, 0, 0], <int32_t>picture.shape[0], <int32_t>picture.shape[1],
                             &small[0, 0, 0], <int32_t>small.shape[0], <int32_t>small.shape[1]):
        raise MemoryError("scale_picture: no memory for a row of the picture")


cdef class FrameStack:
    """A stack of the latest game frames in grayscale.

    Each frame is the pixel-wise maximum of two screens, shrunk like ``cv2.INTER_AREA`` does.

    Args:
        screens: Screens of the console, uint8 ``(2, height, width)``, the newer one first. Each value is a palette
            color, which has one gray level.
        frames: Output array, uint8 ``(stack, small height, small width)``, oldest frame first. If you write into the
            newest frame yourself, call ``forget``.

    Raises:
        ValueError: The sizes are not supported. Use cv2 instead.
    """

    cdef const uint8_t[:, :, ::1] screens
    cdef uint8_t[:, :, ::1] frames
    cdef uint8_t[:, :, :, ::1] memory
    cdef PufferScreens state

    def __init__(self, screens, frames):
        self.screens, self.frames = screens, frames
        if self.screens.shape[0] != 2:
            raise ValueError(f"FrameStack: expected two screens of one shape, got {screens.shape}")
        self.memory = np.zeros((2, *screens.shape), np.uint8)
        if not min(self.frames.shape[0], self.screens.shape[1], self.screens.shape[2]) or not puffer_screens_init(
            &self.state, self.screens.shape[1], self.screens.shape[2], self.frames.shape[1], self.frames.shape[2],
            &self.memory[0, 0, 0, 0]
        ):
            raise ValueError(f"FrameStack: cannot shrink {screens.shape[1:]} to {frames.shape[1:]}; use cv2.resize")

    def take(self, Py_ssize_t which):
        """Read the newer screen (0) or the older one (1).

        Return False if the screen has colors whose gray level is unknown. In this case, call ``learn`` for it.
        """
        self._check(which)
        return puffer_screens_take(&self.state, <int>which, &self.screens[which, 0, 0])

    def learn(self, Py_ssize_t which, const uint8_t[:, ::1] greys):
        """Learn the gray levels of the colors of the screen that was just read: uint8 ``(height, width)``."""
        self._check(which)
        if greys.shape[0] != self.screens.shape[1] or greys.shape[1] != self.screens.shape[2]:
            expected, got = (self.screens.shape[1], self.screens.shape[2]), (greys.shape[0], greys.shape[1])
            raise ValueError(f"FrameStack.learn: expected greys of the shape {expected}, got {got}")
        puffer_screens_learn(&self.state, <int>which, &greys[0, 0])

    cdef int _check(self, Py_ssize_t which) except -1:
        if which != 0 and which != 1:
            raise ValueError(f"FrameStack: expected the screen 0 or 1, got {which}")
        return 0

    def push(self, bint both):
        """Drop the oldest frame and append a new one, from both screens or only the newer one."""
        cdef Py_ssize_t size = self.frames.shape[1] * self.frames.shape[2]
        cdef Py_ssize_t last = self.frames.shape[0] - 1
        cdef uint8_t *start = &self.frames[0, 0, 0]
        memmove(start, start + size, last * size)  # the newest frame also stays in place: its unchanged rows are reused
        puffer_screens_show(&self.state, both, start + last * size)

    def forget(self):
        """Discard the cached newest frame, because it was overwritten from outside."""
        self.state.has_frame = False
