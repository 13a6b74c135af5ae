"""Terminal output: results go to standard output, errors and notes to standard error."""

import contextlib
import errno
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = [
    "cell_width",
    "complain",
    "highlight",
    "note",
    "outliving_readers",
    "plain_warnings",
    "print_table",
    "progress",
    "say",
    "style",
]


_STYLES = {"bold": "1", "muted": "90", "accent": "96", "good": "32", "warning": "33", "bad": "31"}
GAP = "  "
_STYLED = re.compile(r"\x1b\[[0-9;]*m")


def say(text: str = "") -> None:
    """Print a result."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print an error."""
    note(f"{style('error:', 'bad', sys.stderr.isatty())} {text}")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show our warnings as plain messages, without the line of code that they come from."""
    before = warnings.formatwarning

    def shown(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
        text = f"{style('warning:', 'warning', sys.stderr.isatty())} {message}\n"
        return text if category is UserWarning else before(message, category, *place, **line)

    warnings.formatwarning = shown
    try:
        yield
    finally:
        warnings.formatwarning = before


class _TolerantStream:
    """Text stream that ignores write errors, and discards all output after its reader has exited."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._ignoring_errors():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._ignoring_errors():
            self._stream.flush()

    @contextmanager
    def _ignoring_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EIO):  # EIO: the terminal is closed
                with open(os.devnull, "w") as null, contextlib.suppress(OSError):
                    os.dup2(null.fileno(), self._stream.fileno())


@contextmanager
def outliving_readers() -> Iterator[None]:
    """Suppress output errors, such as a closed pipe or terminal or a full disk."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _TolerantStream(sys.stdout), _TolerantStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def note(text: str) -> None:
    """Print a note for the user that is neither a result nor an error."""
    print(text, file=sys.stderr, flush=True)


def progress(share: float, text: str) -> None:
    """Show progress on a terminal, in place of the last progress. An empty ``text`` removes it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{share:4.0%}  {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def style(text: str, name: str, terminal: bool | None = None) -> str:
    """Return ``text`` with terminal colours, unless the output is not a terminal or ``NO_COLOR`` is set.

    Args:
        text: Text to print.
        name: Name of the style: "bold", "muted", "accent", "good", "warning" or "bad".
        terminal: True if the output is a terminal. By default this is checked for standard output.
    """
    terminal = sys.stdout.isatty() if terminal is None else terminal
    return f"\033[{_STYLES[name]}m{text}\033[0m" if terminal and not os.environ.get("NO_COLOR") else text


def highlight(text: str, part: str) -> str:
    """Return ``text`` with ``part`` in the style "good"."""
    return text.replace(part, style(part, "good"), 1)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> None:
    """Print a table with aligned columns.

    Args:
        heads: Headers of the columns.
        rows: Cells of each row, which may contain styles.
        right: Headers of the right-aligned columns.
    """
    widths = [max([len(head), *(cell_width(row[i]) for row in rows)]) for i, head in enumerate(heads)]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for cell, width, head in zip(cells, widths, heads, strict=True):
            room = " " * (width - cell_width(cell))
            padded.append(room + cell if head in right else cell + room)
        return GAP.join(padded).rstrip()

    print(line([style(head, "bold") for head in heads]))
    for row in rows:
        print(line(row))


def cell_width(cell: str) -> int:
    """Return the number of characters that a terminal shows of ``cell``, which may contain styles."""
    return len(_STYLED.sub("", cell))
