"""Text to people: results on the standard output, complaints on the standard error."""

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["complain", "highlight", "note", "outliving_readers", "plain_warnings", "progress", "say", "style"]

_STYLES = {"bold": "1", "muted": "90", "accent": "96", "good": "32", "warning": "33", "bad": "31"}


def say(text: str = "") -> None:
    """Print a result."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print what went wrong."""
    note(f"{style('error:', 'bad', sys.stderr.isatty())} {text}")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """While this holds, warnings of ours are shown as sentences, without the line of code that they come from."""
    before = warnings.formatwarning

    def shown(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
        text = f"{style('warning:', 'warning', sys.stderr.isatty())} {message}\n"
        return text if category is UserWarning else before(message, category, *place, **line)

    warnings.formatwarning = shown
    try:
        yield
    finally:
        warnings.formatwarning = before


class _LastingStream:
    """Text stream that drops what cannot be written, and everything once its reader is gone."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EIO):  # EIO: the terminal is closed
                with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError):
                    os.dup2(nowhere.fileno(), self._stream.fileno())


@contextmanager
def outliving_readers() -> Iterator[None]:
    """While this holds, the end of what reads the output (a pipe, a terminal) or a full disk raises no error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _LastingStream(sys.stdout), _LastingStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def note(text: str) -> None:
    """Print what a person should know that is neither a result nor an error."""
    print(text, file=sys.stderr, flush=True)


def progress(share: float, text: str) -> None:
    """Show, on a terminal, that ``share`` of the work is done, over what was shown before; "" takes it away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{share:4.0%}  {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def style(text: str, name: str, terminal: bool | None = None) -> str:
    """``text`` in a style of the palette where the output is a terminal and ``NO_COLOR`` is not set.

    Args:
        text: What is printed.
        name: "bold", "muted", "accent", "good", "warning" or "bad".
        terminal: Whether it goes to a terminal; by default, whether the standard output is one.
    """
    terminal = sys.stdout.isatty() if terminal is None else terminal
    return f"\033[{_STYLES[name]}m{text}\033[0m" if terminal and not os.environ.get("NO_COLOR") else text


def highlight(text: str, part: str) -> str:
    """``text`` with ``part`` of it, a good result, in colour."""
    return text.replace(part, style(part, "good"), 1)
