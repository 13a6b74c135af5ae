"""Tests of images as terminal text, and of keys that a terminal sends."""

import os
import pty
import re
import select

import numpy as np
import pytest

from pufferlib.render.terminal import HALF_BLOCK, fitting, to_lines, to_text
from pufferlib.render.viewer import Screen, parse_keys

TOKEN = re.compile(rf"\x1b\[(?P<ground>[34]8);2;(?P<red>\d+);(?P<green>\d+);(?P<blue>\d+)m|\x1b\[0m|{HALF_BLOCK}")


def pixels_of(lines):
    """Return the image that a terminal shows, uint8 of shape ``(2 * lines, columns, 3)``."""
    rows = []
    for line in lines:
        colours, upper, lower = {}, [], []
        assert TOKEN.sub("", line) == ""
        assert line.endswith("\x1b[0m")
        for token in TOKEN.finditer(line):
            if token["ground"]:
                colours[token["ground"]] = [int(token[colour]) for colour in ("red", "green", "blue")]
            elif token[0] == HALF_BLOCK:
                upper.append(colours["38"])
                lower.append(colours["48"])
        rows += [upper, lower]
    return np.array(rows, np.uint8)


def test_small_picture_is_shown_pixel_by_pixel():
    picture = np.random.default_rng(0).integers(0, 256, (12, 30, 3), np.uint8)
    np.testing.assert_array_equal(pixels_of(to_lines(picture, 30, 6)), picture)


def test_color_codes_are_written_only_on_change():
    line = to_lines(np.zeros((2, 50, 3), np.uint8), 50, 1)[0]
    assert line == f"\x1b[38;2;0;0;0m\x1b[48;2;0;0;0m{HALF_BLOCK * 50}\x1b[0m"


@pytest.mark.parametrize("shape", [(64, 64), (330, 576), (640, 540), (3, 400), (400, 3), (1, 1)])
@pytest.mark.parametrize("room", [(80, 24), (200, 60), (1, 1), (13, 50)])
def test_picture_fits_and_keeps_aspect_ratio(shape, room):
    columns, rows = room
    lines = to_lines(np.full((*shape, 3), 200, np.uint8), columns, rows)
    height, width, _ = pixels_of(lines).shape
    assert len(lines) <= rows
    assert width <= columns
    assert width == columns or height >= 2 * rows - 1 or min(shape) == 1, "could be larger"
    assert (pixels_of(lines)[: height - 1] == 200).all()
    assert abs(width * shape[0] / shape[1] - height) <= max(2, shape[0] / shape[1] + 1) or 1 in (width, height)


def test_to_text_uses_terminal_size(monkeypatch):
    monkeypatch.setenv("COLUMNS", "33")
    monkeypatch.setenv("LINES", "12")
    text = to_text(np.zeros((50, 50, 3), np.uint8))
    assert text.count("\n") == 10
    assert all(line.count(HALF_BLOCK) == 22 for line in text.split("\n"))
    assert to_text(np.zeros((50, 50, 3), np.uint8), columns=10).count("\n") == 4


def test_fitting_uses_all_space():
    assert fitting(100, 200, 50, 50) == (25, 50)
    assert fitting(100, 200, 1000, 800) == (400, 800)
    assert fitting(1, 5000, 10, 100) == (1, 100)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("aA1 ", ["a", "a", "1", "space"]),
        ("\x1b[A\x1b[B\x1b[C\x1b[D", ["up", "down", "right", "left"]),
        ("\x1bOAx\x1b[1;5C", ["up", "x", "right"]),
        ("\r\n\t\x7f\b", ["enter", "enter", "tab", "backspace", "backspace"]),
        ("\x1b[3~\x1b[15~q", ["q"]),
        ("\x1b[18~\x1b[19~\x1b[20~\x1b[20;5~", ["f7", "f8", "f9"]),
        ("\x1b\x1b[Aab", ["up", "a", "b"]),
        ("\x1bqr", ["r"]),
    ],
)
def test_parse_keys_returns_key_names(text, names):
    assert parse_keys(text) == (names, "")


def test_parse_keys_keeps_incomplete_sequence():
    assert parse_keys("a\x1b") == (["a"], "\x1b")
    assert parse_keys("\x1b[") == ([], "\x1b[")
    assert parse_keys("\x1b[1;5") == ([], "\x1b[1;5")
    assert parse_keys("\x1b[A") == (["up"], "")


def test_escape_does_not_swallow_next_key(monkeypatch):
    now = 100.0
    monkeypatch.setattr("pufferlib.render.viewer.time.monotonic", lambda: now)
    keyboard, terminal = pty.openpty()
    with open(terminal) as stdin, open(os.dup(terminal), "w") as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        screen = Screen()
        names = []
        for typed, pause in ((b"\x1b", 0), (b"[A", 0), (b"\x1b", 1), (b"q", 0)):
            os.write(keyboard, typed)
            assert select.select([terminal], [], [], 60)[0]
            names.append(screen.pressed())
            now += pause
        screen.close()
    os.close(keyboard)
    assert names == [[], ["up"], [], ["q"]]
