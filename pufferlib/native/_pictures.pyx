"""Pictures made smaller: those of a render, and the newest frames of a game. And the font of what is drawn."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memmove

from pufferlib.native.puffer_pixels cimport puffer_scale_once

from pufferlib.errors import APIUsageError

cdef extern from "puffer_font.h":
    enum: FONT_HEIGHT
    enum: FONT_WIDTH
    uint8_t font_row(char character, int32_t row)

cdef extern from "puffer_shrink.h":
    ctypedef struct PufferShrink:
        pass
    bint puffer_shrink_init(PufferShrink *shrink, int height, int width, int small_height, int small_width)
    void puffer_shrink(const PufferShrink *shrink, const uint8_t *newer, const uint8_t *older, uint8_t *small) noexcept


def font_dots():
    """Dots of the font: bool ``(256, 9, 5)``, by the code of the character, row from the top and column."""
    dots = np.zeros((256, FONT_HEIGHT, FONT_WIDTH), np.bool_)
    for code in range(128):
        for row in range(FONT_HEIGHT):
            dots[code, row] = [font_row(<char>code, row) >> (FONT_WIDTH - 1 - column) & 1 for column in range(FONT_WIDTH)]
    return dots


def scale_picture(const uint8_t[:, :, ::1] picture, uint8_t[:, :, ::1] small):
    """Bring ``picture`` to the size of ``small``, both uint8 ``(height, width, 3)``: means of areas."""
    large_shape, small_shape = [picture.shape[i] for i in range(3)], [small.shape[i] for i in range(3)]
    if min(large_shape + small_shape) < 1 or large_shape[2] != 3 or small_shape[2] != 3:
        raise APIUsageError(
            f"scale_picture: both pictures must have the shape (height, width, 3), got {large_shape} and {small_shape}")
    if not puffer_scale_once(&picture[0, 0, 0], <int32_t>picture.shape[0], <int32_t>picture.shape[1],
                             &small[0, 0, 0], <int32_t>small.shape[0], <int32_t>small.shape[1]):
        raise MemoryError("scale_picture: no memory for a row of the picture")


cdef class FrameStack:
    """The last frames of a game, each the lighter of two screens, shrunk as cv2.INTER_AREA does.

    Args:
        newer: The screen, uint8 ``(height, width)``, read by every ``push``,
        older: and the one before it.
        frames: Where the small frames go, uint8 ``(stack, small height, small width)``, oldest first.

    Raises:
        ValueError: Sizes that it cannot do; cv2 can.
    """

    cdef const uint8_t[:, ::1] newer, older
    cdef uint8_t[:, :, ::1] frames
    cdef PufferShrink shrink

    def __init__(self, newer, older, frames):
        self.newer, self.older, self.frames = newer, older, frames
        if self.newer.shape[0] != self.older.shape[0] or self.newer.shape[1] != self.older.shape[1]:
            raise ValueError(f"FrameStack: expected two screens of one shape, got {newer.shape} and {older.shape}")
        if self.frames.shape[0] < 1 or not puffer_shrink_init(
            &self.shrink, self.newer.shape[0], self.newer.shape[1], self.frames.shape[1], self.frames.shape[2]
        ):
            raise ValueError(f"FrameStack: cannot shrink {newer.shape} to {frames.shape[1:]}; use cv2.resize")

    def push(self, bint both):
        """Drop the oldest frame and add a new one, of both screens or of the newer."""
        cdef Py_ssize_t size = self.frames.shape[1] * self.frames.shape[2]
        cdef Py_ssize_t last = self.frames.shape[0] - 1
        cdef uint8_t *start = &self.frames[0, 0, 0]
        memmove(start, start + size, last * size)
        cdef const uint8_t *newer = &self.newer[0, 0]
        puffer_shrink(&self.shrink, newer, &self.older[0, 0] if both else newer, start + last * size)
