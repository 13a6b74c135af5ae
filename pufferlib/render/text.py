"""Rendering of text to images, in the font of the C environments."""

import re
import textwrap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pufferlib.native._pictures import font_dots

__all__ = ["ITEM_GAP", "draw_terminal", "draw_text", "with_lines", "wrapped"]

Pixels = npt.NDArray[np.uint8]

SCALE = 2  # px per dot of the font

ITEM_GAP = "   "  # between items of a line

LEAST_WIDTH = 480  # px, minimum width of an image with lines of text below

# The sixteen terminal colours: 0 to 7, then their bright variants.
_COLORS = np.array(
    [
        *([0, 0, 0], [190, 40, 40], [40, 160, 40], [170, 110, 40], [60, 90, 210], [170, 60, 170], [40, 160, 170]),
        *([180, 180, 180], [100, 100, 100], [255, 110, 60], [90, 230, 90], [255, 240, 90], [110, 150, 255]),
        *([240, 110, 240], [100, 230, 240], [255, 255, 255]),
    ],
    np.uint8,
)
_BLACK = 0
_GREY = 7
_WHITE = 15
_REVERSE = 16
_GLUE = "\N{NO-BREAK SPACE}"
_SPACE, _TAB = b" \t"
_COLOR = re.compile(r"\x1b\[([0-9;]*)[A-Za-z]")


def draw_terminal(characters: Pixels, colors: npt.NDArray[np.integer], cursor: tuple[int, int] | None = None) -> Pixels:
    """Draw a text screen.

    Args:
        characters: ASCII codes, shape ``(rows, columns)``. Other codes are left blank.
        colors: Colours, shape ``(rows, columns)``: 0 is the default grey, and 1 to 15 are terminal colours. Add 16 for
            reverse video.
        cursor: Row and column of the cursor, which is drawn as an underline.

    Returns:
        Image, uint8 ``(rows * 20, columns * 12, 3)``.
    """
    lit = _ATLAS[characters]
    lit ^= (colors & _REVERSE != 0)[:, :, None, None]
    if cursor is not None:
        lit[cursor][-SCALE:] = True
    ink = colors & (_REVERSE - 1)
    ink = np.where(ink == 0, _GREY, ink)[:, :, None, None]
    rows, columns, height, width = lit.shape
    dots = np.where(lit, ink, _BLACK).transpose(0, 2, 1, 3).reshape(rows * height, columns * width)
    picture: Pixels = _COLORS[dots]
    return picture


def draw_text(text: str) -> Pixels:
    """Draw lines of text, which may contain ANSI color codes, as an image.

    Returns:
        Image, uint8 ``(lines * 20, columns of the longest line * 12, 3)``.
    """
    cells, color = [], 0
    for line in text.splitlines() or [""]:
        row: list[tuple[int, int]] = []
        for index, part in enumerate(_COLOR.split(line)):  # text and the numbers of a color code, in turns
            if index % 2:
                color = _colored(color, part)
                continue
            for byte in part.encode("ascii", "replace"):
                row += [(byte, color)] if byte != _TAB else [(_SPACE, color)] * (8 - len(row) % 8)
        cells.append(row)
    width = max(1, *map(len, cells))
    grid = np.array([row + [(_SPACE, 0)] * (width - len(row)) for row in cells])
    return draw_terminal(grid[..., 0].astype(np.uint8), grid[..., 1])


def _colored(color: int, numbers: str) -> int:
    """Return the color after the ANSI code with these ``numbers``, separated by semicolons."""
    for number in (int(word or 0) for word in numbers.split(";")):
        if number == 0:
            color = 0
        elif number == 7:
            color |= _REVERSE
        elif number == 27:
            color &= ~_REVERSE
        elif 40 <= number <= 47:  # a background: draw_terminal has only its own, so reverse the text color
            color = (number - 40 or _GREY) | _REVERSE
        elif 30 <= number <= 37 or 90 <= number <= 97:
            color = color & _REVERSE | (number - 30 if number < 90 else number - 82)
    return color


def with_lines(picture: Pixels, lines: Sequence[str]) -> Pixels:
    """Draw ``lines`` below an image. A small image is enlarged by a whole factor, and long lines are wrapped."""
    factor = -(-LEAST_WIDTH // picture.shape[1])
    picture = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    columns = picture.shape[1] // _ATLAS.shape[2] - 2  # leave one column free on each side
    first, rest = wrapped(lines[:1], columns), wrapped(lines[1:], columns)
    text = "".join(f" {line:<{columns + 1}}" for line in first + rest).encode("ascii", "replace")
    characters = np.frombuffer(text, np.uint8).reshape(-1, columns + 2)
    colors = np.full(characters.shape, _GREY)
    colors[: len(first)] = _WHITE
    panel = draw_terminal(characters, colors)
    return np.vstack([picture, np.pad(panel, ((4, 4), (0, picture.shape[1] - panel.shape[1]), (0, 0)))])


def wrapped(lines: Sequence[str], columns: int) -> list[str]:
    """Wrap ``lines`` at ``columns`` characters, if possible between items, which are separated by three spaces."""
    glued = [re.sub(r"\S+( \S+)*", lambda item: _whole(item[0], columns), line) for line in lines]
    return [part.replace(_GLUE, " ") for line in glued for part in textwrap.wrap(line, columns)]


def _whole(item: str, columns: int) -> str:
    """Protect ``item`` from being wrapped, unless it is longer than a line."""
    return item.replace(" ", _GLUE) if len(item) <= columns else item


def _atlas() -> npt.NDArray[np.bool_]:
    """Return the glyph masks of all 256 codes, shape ``(256, line height, column width)``."""
    dots = np.pad(font_dots(), ((0, 0), (0, 1), (0, 1)))  # one row and one column between characters
    return dots.repeat(SCALE, axis=1).repeat(SCALE, axis=2)


_ATLAS = _atlas()
