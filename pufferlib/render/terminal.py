"""Images as terminal text, with two pixels per character in 24-bit colour."""

import shutil

import numpy as np

from pufferlib.native._pictures import scale_picture
from pufferlib.render.video import Frame

__all__ = ["RESET", "fitting", "to_lines", "to_text"]

RESET = "\033[0m"
HALF_BLOCK = "▀"  # the upper half has the text colour, the lower half the background colour


def to_text(frame: Frame, columns: int | None = None, rows: int | None = None) -> str:
    """Render ``frame`` as half-block characters, scaled to fit the terminal.

    Args:
        frame: Image, uint8 ``(height, width, 3)``.
        columns: Maximum width in characters, by default the width of the terminal.
        rows: Maximum number of lines, by default the height of the terminal less one line for the prompt.
    """
    size = shutil.get_terminal_size()
    return "\n".join(to_lines(frame, columns or size.columns, rows or size.lines - 1))


def to_lines(frame: Frame, columns: int, rows: int) -> list[str]:
    """Render ``frame`` as up to ``rows`` lines of up to ``columns`` characters, with its aspect ratio."""
    height, width = fitting(frame.shape[0], frame.shape[1], 2 * max(rows, 1), max(columns, 1))
    small = np.zeros((height + height % 2, width, 3), np.uint8)  # the last line may lack its lower half
    scale_picture(np.ascontiguousarray(frame), small[:height])
    packed = small.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    return [_line(upper, lower) for upper, lower in zip(packed[::2].tolist(), packed[1::2].tolist(), strict=True)]


def fitting(height: int, width: int, max_height: int, max_width: int) -> tuple[int, int]:
    """Return the largest ``(height, width)`` with the given aspect ratio that fits the given maximum."""
    scale = min(max_height / height, max_width / width)
    return max(1, int(height * scale)), max(1, int(width * scale))


def _line(upper: list[int], lower: list[int]) -> str:
    """Return one line of half blocks. A colour code is only written where the colour changes."""
    parts, above, below = [], -1, -1
    for top, bottom in zip(upper, lower, strict=True):
        if top != above:
            parts.append(f"\033[38;2;{top >> 16};{top >> 8 & 255};{top & 255}m")
        if bottom != below:
            parts.append(f"\033[48;2;{bottom >> 16};{bottom >> 8 & 255};{bottom & 255}m")
        parts.append(HALF_BLOCK)
        above, below = top, bottom
    return "".join([*parts, RESET])
