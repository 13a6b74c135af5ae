"""Choice of the viewer: a window if there is a display, or else the terminal."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Protocol

from pufferlib.errors import UsageError
from pufferlib.render.screen import Screen, is_terminal
from pufferlib.render.video import Frame
from pufferlib.render.window import Window, has_display, needed_for_windows

__all__ = ["Viewer", "choose_viewer"]


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

    def show(self, frame: Frame, lines: Sequence[str] = ()) -> None:
        """Show an image above lines of text."""

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
