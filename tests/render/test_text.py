"""Tests of text screens rendered as images."""

import numpy as np

from pufferlib.render.text import draw_terminal, draw_text, with_lines, wrapped


def screen(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8).reshape(1, -1)


def test_printable_characters_look_different() -> None:
    text = "".join(map(chr, range(32, 127)))
    picture = draw_terminal(screen(text), np.full((1, len(text)), 15))
    assert picture.shape == (20, len(text) * 12, 3)
    assert picture.dtype == np.uint8
    cells = picture.reshape(20, len(text), 12, 3).swapaxes(0, 1)
    assert len({cell.tobytes() for cell in cells}) == len(text)
    assert not cells[0].any(), "space is black"


def test_colors_match_terminal_palette() -> None:
    picture = draw_terminal(screen("####"), np.array([[0, 1, 2, 12]]))
    grey, red, green, blue = (picture[:, 12 * column : 12 * column + 12].reshape(-1, 3).max(0) for column in range(4))
    assert grey[0] == grey[1] == grey[2] > 100
    assert red[0] > 2 * max(red[1:])
    assert green[1] > 2 * max(green[0], green[2])
    assert blue[2] > 1.5 * max(blue[:2])


def test_reverse_video_and_cursor_are_drawn() -> None:
    plain, reverse = draw_terminal(screen("aa"), np.array([[7, 7 + 16]])).reshape(20, 2, 12, 3).swapaxes(0, 1)
    assert ((plain > 0) != (reverse > 0)).all()
    blank, underlined = draw_terminal(screen("  "), np.zeros((1, 2), int), (0, 1)).reshape(20, 2, 12, 3).swapaxes(0, 1)
    assert not blank.any()
    assert underlined[-1].all()
    assert not underlined[:10].any()


def test_text_is_drawn_with_its_ansi_colors() -> None:
    picture = draw_text("\x1b[31m##\x1b[0m#\x1b[42m \x1b[m\n\x1b[94;7m \x1b[27m#\tabc")
    assert picture.shape == (2 * 20, 11 * 12, 3)
    colored = draw_terminal(screen("### "), np.array([[1, 1, 0, 2 + 16]]))
    np.testing.assert_array_equal(picture[:20, : 4 * 12], colored)
    below = draw_terminal(screen(" #      abc"), np.array([[12 + 16, *[12] * 10]]))
    np.testing.assert_array_equal(picture[20:], below)
    assert draw_text("").shape == (20, 12, 3)


def test_wrapped_breaks_between_items() -> None:
    lines = ["left: move left   right: move right   q: quit", "one   two"]
    assert wrapped(lines, 33) == ["left: move left", "right: move right   q: quit", "one   two"]
    assert wrapped(["a very long item that fits nowhere"], 10) == ["a very", "long item", "that fits", "nowhere"]
    assert max(map(len, wrapped(["averylongitemthatfitsnowhere"], 10))) <= 10


def test_with_lines_puts_text_below_picture() -> None:
    picture = np.full((50, 100, 3), 77, np.uint8)
    shown = with_lines(picture, ["state", "keys   more keys"])
    assert shown.shape[1] == 500
    assert (shown[:250] == 77).all()
    assert shown[250:].any()
    assert not (shown[250:] == 77).any()
    wide = with_lines(np.zeros((10, 1000, 3), np.uint8), ["x"])
    assert wide.shape == (10 + 20 + 8, 1000, 3)
