"""The terminal as a screen with a keyboard: pictures in half blocks, lines of text, keys one by one."""

import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Sequence

from pufferlib.errors import PufferError
from pufferlib.render.terminal import RESET, to_lines
from pufferlib.render.text import wrapped
from pufferlib.render.video import Frame

__all__ = ["Screen", "is_terminal", "parse_keys"]

# A terminal tells when a key goes down, and again and again while it stays so, but not when it comes up.
HELD_S = 0.2
# What it sends for one key comes at once, so that an escape after which nothing comes was the key of that name.
PARTS_S = 0.1

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_PLAIN = {"\r": "enter", "\n": "enter", " ": "space", "\t": "tab", "\x7f": "backspace", "\b": "backspace"}
_KEY = re.compile(r"\x1b[\[O][0-9;]*(?P<code>[A-Za-z~])|\x1b[^\x1b\[O]|(?P<plain>[^\x1b])", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b([\[O][0-9;]*)?$")

_OPEN = "\033[?1049h\033[?25l\033[2J"  # the other screen, without a cursor
_CLOSE = f"{RESET}\033[?25h\033[?1049l"


def is_terminal() -> bool:
    """True if there is a terminal, on both sides, for pictures and keys."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Screen:
    """Takes the terminal until it is closed.

    Attributes:
        closed: The terminal has gone, or ``close`` was called.

    Raises:
        PufferError: There is no terminal.
    """

    has_mouse = False

    def __init__(self) -> None:
        if not is_terminal():
            raise PufferError("Screen: expected a terminal for input and output; run this in one, without pipes")
        self.closed = False
        self._input = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._input)
        self._size = (0, 0)
        self._last: tuple[Frame, Sequence[str]] | None = None  # what is shown
        self._unread, self._read_at = "", 0.0
        self._seen: dict[str, float] = {}
        tty.setcbreak(self._input)  # keys at once and without an echo; Ctrl-C still interrupts
        self._write(_OPEN)

    @property
    def held(self) -> set[str]:
        """Names of the keys that are probably down."""
        since = time.monotonic() - HELD_S
        return {name for name, last in self._seen.items() if last > since}

    def pressed(self) -> list[str]:
        """Names of the keys that were pressed since the last call: "left", "space", "a", "1"."""
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
            self.show(*self._last)  # a game that waits for a key shows nothing new by itself
        names, self._unread = parse_keys(self._unread)
        self._seen.update(dict.fromkeys(names, time.monotonic()))
        return names

    def clicks(self) -> list[tuple[float, float]]:
        """None: a terminal has keys only."""
        return []

    def show(self, frame: Frame, lines: Sequence[str] = ()) -> None:
        """Show ``frame``, uint8 ``(height, width, 3)``, above ``lines``."""
        self._last = frame, lines
        columns, rows = shutil.get_terminal_size()
        text = wrapped(lines, columns)[: rows // 2]
        picture = to_lines(frame, columns, rows - len(text))
        cleared = "" if self._size == (columns, rows) else "\033[2J"
        self._size = (columns, rows)
        self._write(f"{cleared}\033[H" + "\n".join(f"\033[K{line}" for line in [*picture, *text]) + "\033[J")

    def close(self) -> None:
        """Give the terminal back as it was; twice is fine."""
        if self._before:
            self._write(_CLOSE)
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
            self._before = []
        self.closed = True

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def parse_keys(text: str) -> tuple[list[str], str]:
    """Names of the keys that a terminal sent as ``text``, and the beginning of one that is not all there yet."""
    unfinished = _UNFINISHED.search(text)
    rest = unfinished[0] if unfinished else ""
    names = []
    for found in _KEY.finditer(text.removesuffix(rest)):
        name = _ARROWS.get(found["code"]) if found["code"] else _PLAIN.get(found["plain"], found["plain"])
        if name:
            names.append(name.lower())
    return names, rest
