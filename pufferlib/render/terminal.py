"""Pictures as text: two pixels to a character, in 24-bit colour, for any terminal that has it."""

import shutil

import numpy as np

from pufferlib.native._pictures import scale_picture
from pufferlib.render.video import Frame

__all__ = ["RESET", "fitting", "to_lines", "to_text"]

RESET = "\033[0m"
HALF_BLOCK = "▀"  # its upper half has the colour of the text, its lower half that of the background


def to_text(frame: Frame, columns: int | None = None, rows: int | None = None) -> str:
    """``frame`` as lines of half blocks, as large as fits.

    Args:
        frame: uint8 ``(height, width, 3)``.
        columns: Characters side by side; None: as many as the terminal has.
        rows: Lines; None: as many as the terminal has, but one, which the prompt needs.
    """
    size = shutil.get_terminal_size()
    return "\n".join(to_lines(frame, columns or size.columns, rows or size.lines - 1))


def to_lines(frame: Frame, columns: int, rows: int) -> list[str]:
    """``frame`` as at most ``rows`` lines of at most ``columns`` characters, which keep its proportions."""
    height, width = fitting(frame.shape[0], frame.shape[1], 2 * max(rows, 1), max(columns, 1))
    small = np.zeros((height + height % 2, width, 3), np.uint8)  # the last line may lack its lower half
    scale_picture(np.ascontiguousarray(frame), small[:height])
    packed = small.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    return [_line(upper, lower) for upper, lower in zip(packed[::2].tolist(), packed[1::2].tolist(), strict=True)]


def fitting(height: int, width: int, max_height: int, max_width: int) -> tuple[int, int]:
    """The largest height and width in the proportions of the first two that the last two have room for."""
    scale = min(max_height / height, max_width / width)
    return max(1, int(height * scale)), max(1, int(width * scale))


def _line(upper: list[int], lower: list[int]) -> str:
    """A line of half blocks. A colour is only named where it changes."""
    parts, above, below = [], -1, -1
    for top, bottom in zip(upper, lower, strict=True):
        if top != above:
            parts.append(f"\033[38;2;{top >> 16};{top >> 8 & 255};{top & 255}m")
        if bottom != below:
            parts.append(f"\033[48;2;{bottom >> 16};{bottom >> 8 & 255};{bottom & 255}m")
        parts.append(HALF_BLOCK)
        above, below = top, bottom
    return "".join([*parts, RESET])
