"""Text screens as pictures: characters and colours in, pixels out, with a font of its own."""

import re
import textwrap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["draw_terminal", "with_lines", "wrapped"]

Pixels = npt.NDArray[np.uint8]

WIDTH = 5  # of a character
HEIGHT = 9  # the last two rows are for what hangs below the line
SCALE = 2  # a dot is so many pixels wide and high

LEAST_WIDTH = 480  # px, of a picture with lines of text below

# The characters from "!" to "~": HEIGHT digits each, the rows from the top, whose five bits are the
# dots (the highest is the left one).
_FONT = r"""
444440400 AAA000000 AAVAVAA00 4FKE5U400 OP248J300 CIK8LID00 448000000 248884200 842224800 04LEL4000 044V44000
00000C480 000V00000 00000CC00 11248GG00 EHJLPHE00 4C4444E00 EH168GV00 EH161HE00 26AIV2200 VGU11HE00 EGUHHHE00
V12448800 EHHEHHE00 EHHF11E00 0CC0CC000 0CC0C4800 248G84200 00V0V0000 842124800 EH1240400 EH1DLLE00 EHHVHHH00
UHHUHHU00 EHGGGHE00 UHHHHHU00 VGGUGGV00 VGGUGGG00 EHGNHHF00 HHHVHHH00 E44444E00 72222IC00 HIKOKIH00 GGGGGGV00
HRLLHHH00 HPLJHHH00 EHHHHHE00 UHHUGGG00 EHHHLID00 UHHUKIH00 FGGE11U00 V44444400 HHHHHHE00 HHHHHA400 HHHLLRH00
HHA4AHH00 HHA444400 V1248GV00 E88888E00 GG8421100 E22222E00 4AH000000 0000000V0 842000000 00E1FHF00 GGUHHHU00
00FGGGF00 11FHHHF00 00EHVGE00 68S888800 00FHHHF1E GGUHHHH00 40C444E00 2062222IC GGIKOKI00 C44444E00 00QLLLL00
00UHHHH00 00EHHHE00 00UHHHUGG 00FHHHF11 00MPGGG00 00FGE1U00 88S889600 00HHHHF00 00HHHA400 00HLLLA00 00HA4AH00
00HHHHF1E 00V248V00 244844200 444444444 844244800 008L20000
"""

# The sixteen colours of a terminal; 0 to 7, then the same, bright.
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


def draw_terminal(characters: Pixels, colors: npt.NDArray[np.integer], cursor: tuple[int, int] | None = None) -> Pixels:
    """A picture of a text screen.

    Args:
        characters: ``(rows, columns)``, codes of ASCII; others are left blank.
        colors: ``(rows, columns)``: 1 to 15 are those of a terminal, 0 is its usual grey, and 16 more
            is the same in reverse.
        cursor: Row and column of the cursor, which is underlined.

    Returns:
        uint8 ``(rows * 20, columns * 12, 3)``.
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


def with_lines(picture: Pixels, lines: Sequence[str]) -> Pixels:
    """``picture``, enlarged by a whole number where it is small, above ``lines``, broken where they are too long."""
    factor = -(-LEAST_WIDTH // picture.shape[1])
    picture = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    columns = picture.shape[1] // _ATLAS.shape[2] - 2  # one is left free on either side
    first, rest = wrapped(lines[:1], columns), wrapped(lines[1:], columns)
    text = "".join(f" {line:<{columns + 1}}" for line in first + rest).encode("ascii", "replace")
    characters = np.frombuffer(text, np.uint8).reshape(-1, columns + 2)
    colors = np.full(characters.shape, _GREY)
    colors[: len(first)] = _WHITE
    panel = draw_terminal(characters, colors)
    return np.vstack([picture, np.pad(panel, ((4, 4), (0, picture.shape[1] - panel.shape[1]), (0, 0)))])


def wrapped(lines: Sequence[str], columns: int) -> list[str]:
    """``lines``, broken to ``columns`` characters, where possible between the items that three spaces divide."""
    glued = [re.sub(r"\S+( \S+)*", lambda item: _whole(item[0], columns), line) for line in lines]
    return [part.replace(_GLUE, " ") for line in glued for part in textwrap.wrap(line, columns)]


def _whole(item: str, columns: int) -> str:
    """``item`` so that it is not broken, unless it is longer than a line."""
    return item.replace(" ", _GLUE) if len(item) <= columns else item


def _atlas() -> npt.NDArray[np.bool_]:
    """Pixels that each of the 256 codes lights: ``(256, height of a line, width of a column)``."""
    dots = np.zeros((256, HEIGHT + 1, WIDTH + 1), np.bool_)
    for code, digits in enumerate(_FONT.split(), start=ord("!")):
        rows = np.array([int(digit, 32) for digit in digits])
        dots[code, :HEIGHT, :WIDTH] = rows[:, None] >> np.arange(WIDTH)[::-1] & 1
    return dots.repeat(SCALE, axis=1).repeat(SCALE, axis=2)


_ATLAS = _atlas()
