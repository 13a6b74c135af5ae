"""Viewers of images and keys: the terminal, and the choice between it and a window."""

import importlib.util
import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Sequence
from typing import Protocol

from pufferlib.errors import PufferError, UsageError
from pufferlib.render.terminal import RESET, to_lines
from pufferlib.render.text import wrapped
from pufferlib.render.video import Frame
from pufferlib.render.window import Window, has_display, needed_for_windows

__all__ = ["Screen", "Viewer", "choose_viewer", "is_terminal", "parse_keys"]


# A terminal repeats a key while it is held and does not report its release. A key counts as held for this long.
HELD_S = 0.2
# The bytes of one key arrive together. If nothing follows an escape byte for this long, it was the Escape key.
PARTS_S = 0.1

# Final characters of key codes, with the number before "~".
_CODES = {"A": "up", "B": "down", "C": "right", "D": "left", "18~": "f7", "19~": "f8", "20~": "f9"}
_PLAIN = {"\r": "enter", "\n": "enter", " ": "space", "\t": "tab", "\x7f": "backspace", "\b": "backspace"}
_KEY = re.compile(r"\x1b[\[O][0-9;]*?(?P<code>[0-9]*~|[A-Za-z])|\x1b[^\x1b\[O]|(?P<plain>[^\x1b])", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b([\[O][0-9;]*)?$")

_OPEN = "\033[?1049h\033[?25l\033[?7l\033[2J"  # the alternate screen, without a cursor, cutting long lines
_CLOSE = f"{RESET}\033[?7h\033[?25h\033[?1049l"


def is_terminal() -> bool:
    """Return True if both standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Screen:
    """Terminal in full-screen mode. Images are drawn with half-block characters.

    Attributes:
        closed: True after ``close()``, or if the terminal is gone.

    Raises:
        PufferError: There is no terminal.
    """

    has_mouse = False

    def __init__(self) -> None:
        if not is_terminal():
            raise PufferError("Screen: expected a terminal for input and output; run this in a terminal, without pipes")
        self.closed = False
        self._input = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._input)
        self._size = (0, 0)
        self._last: tuple[Frame | str, Sequence[str]] | None = None  # frame and lines on the screen
        self._unread, self._read_at = "", 0.0
        self._seen: dict[str, float] = {}
        tty.setcbreak(self._input)  # unbuffered keys without echo; Ctrl-C still interrupts
        self._write(_OPEN)

    @property
    def held(self) -> set[str]:
        """Names of the keys that are probably held down."""
        since = time.monotonic() - HELD_S
        return {name for name, last in self._seen.items() if last > since}

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call: "left", "space", "a", "1"."""
        if time.monotonic() - self._read_at > PARTS_S:
            self._unread = ""
        while select.select([self._input], [], [], 0)[0]:
            data = os.read(self._input, 1024)
            if not data:
                self.closed = True
                break
            self._unread += data.decode(errors="ignore")
            self._read_at = time.monotonic()
        if self._last and self._size != tuple(shutil.get_terminal_size()):
            self.show(*self._last)  # redraw after a resize, since a game that waits for a key does not
        names, self._unread = parse_keys(self._unread)
        self._seen.update(dict.fromkeys(names, time.monotonic()))
        return names

    def clicks(self) -> list[tuple[float, float]]:
        """Return an empty list, because a terminal has no mouse."""
        return []

    def show(self, frame: Frame | str, lines: Sequence[str] = ()) -> None:
        """Show ``frame``, uint8 ``(height, width, 3)`` or text, above ``lines``."""
        self._last = frame, lines
        columns, rows = shutil.get_terminal_size()
        text = wrapped(lines, columns)[: rows // 2]
        if isinstance(frame, str):
            picture = [line + RESET for line in frame.splitlines()[: rows - len(text)]]
        else:
            picture = to_lines(frame, columns, rows - len(text))
        cleared = "" if self._size == (columns, rows) else "\033[2J"
        self._size = (columns, rows)
        self._write(f"{cleared}\033[H" + "\n".join(f"\033[K{line}" for line in [*picture, *text]) + "\033[J")

    def close(self) -> None:
        """Restore the terminal. Closing twice is harmless."""
        if self._before:
            self._write(_CLOSE)
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
            self._before = []
        self.closed = True

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def parse_keys(text: str) -> tuple[list[str], str]:
    """Return the names of the keys in ``text`` from a terminal, and the incomplete escape sequence at its end."""
    unfinished = _UNFINISHED.search(text)
    rest = unfinished[0] if unfinished else ""
    names = []
    for found in _KEY.finditer(text.removesuffix(rest)):
        name = _CODES.get(found["code"]) if found["code"] else _PLAIN.get(found["plain"], found["plain"])
        if name:
            names.append(name.lower())
    return names, rest


class Viewer(Protocol):
    """Interface of a window or terminal that shows images and reads keys."""

    closed: bool
    has_mouse: bool

    @property
    def held(self) -> set[str]:
        """Names of the keys that are held down."""

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call."""

    def clicks(self) -> list[tuple[float, float]]:
        """Return the points clicked since the last call, in px of the image."""

    def show(self, frame: Frame | str, lines: Sequence[str] = ()) -> None:
        """Show an image, or the text of an environment, above lines of text.

        The items of a line are separated by three spaces. The first line is the state. An item "left: move left" in
        another one describes a key.
        """

    def close(self) -> None:
        """Close the window, or restore the terminal."""


def choose_viewer(prog: str, in_terminal: bool, advice: str) -> Callable[[str], Viewer]:
    """Choose between window and terminal, and return a function that opens the viewer with a given title.

    Args:
        prog: Name of the command, for error messages.
        in_terminal: True to use the terminal even if windows can be opened.
        advice: Advice in the error message if there is neither.

    Raises:
        UsageError: There is neither a display nor a terminal.
    """
    if not in_terminal and has_display() and importlib.util.find_spec("pygame") is not None:
        return lambda title: Window(title, f"use {prog} --terminal")
    if is_terminal():
        return lambda title: Screen()
    raise UsageError(
        f"{prog}: there is neither a display nor an interactive terminal; {advice}, or run it where "
        f"{needed_for_windows()}"
    )
