"""Tests of the cursor, which chooses among actions that have a place in the image."""

import numpy as np

from pufferlib.play.controls import Cursor

GRID = {3 * row + column: (40 * column, 40 * row, 30, 30) for row in range(3) for column in range(3)}


def test_arrow_keys_move_cursor():
    cursor = Cursor()
    assert cursor.choose({}, ["enter"], []) is None
    for moves, action in (("", 0), ("right right", 2), ("right", 2), ("down", 5), ("left down", 7), ("up up up", 1)):
        assert cursor.choose(GRID, moves.split(), []) is None
        assert cursor.choose(GRID, ["enter"], []) == cursor.action == action
    del (rest := dict(GRID))[1]
    assert cursor.choose(rest, ["enter"], []) in (0, 2, 4), "moves to the nearest action"


def test_click_chooses_action():
    cursor = Cursor()
    assert cursor.choose(GRID, [], [(35, 35)]) is None
    assert cursor.choose(GRID, [], [(45.5, 29.5)]) == 1
    assert cursor.choose(GRID, ["down", "enter"], []) == 4


def test_marked_draws_cursor_on_copy():
    cursor, picture = Cursor(), np.zeros((120, 120, 3), np.uint8)
    cursor.choose(GRID, ["down", "right"], [])
    marked = cursor.marked(picture, GRID)
    assert not picture.any()
    rows, columns = np.nonzero(marked.any(axis=2))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (40, 69, 40, 69)
    assert not marked[41:69, 41:69].any()
