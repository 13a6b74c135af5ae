"""Viewers of pictures: a window where there is a display, or else the terminal."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Protocol

from pufferlib.errors import UsageError
from pufferlib.render.screen import Screen, is_terminal
from pufferlib.render.video import Frame
from pufferlib.render.window import Window, has_display, needed_for_windows

__all__ = ["Viewer", "choose_viewer"]


class Viewer(Protocol):
    """Shows pictures and hears keys: a window or a terminal."""

    closed: bool
    has_mouse: bool

    @property
    def held(self) -> set[str]:
        """Names of the keys that are down."""

    def pressed(self) -> list[str]:
        """Names of the keys that were pressed since the last call."""

    def clicks(self) -> list[tuple[float, float]]:
        """Points that the person has clicked since the last call, px of the picture."""

    def show(self, frame: Frame, lines: Sequence[str] = ()) -> None:
        """Show a picture above lines of text."""

    def close(self) -> None:
        """Give back what it took."""


def choose_viewer(prog: str, in_terminal: bool, advice: str) -> Callable[[str], Viewer]:
    """Choose between window and terminal; returns what opens it, given a title.

    Args:
        prog: The command, for messages.
        in_terminal: Take the terminal even where windows can be opened.
        advice: What to do where there is neither.

    Raises:
        UsageError: There is neither a display nor a terminal.
    """
    if not in_terminal and has_display() and importlib.util.find_spec("pygame") is not None:
        return lambda title: Window(title, f"use {prog} --terminal")
    if is_terminal():
        return lambda title: Screen()
    raise UsageError(
        f"{prog}: there is neither a display nor a terminal to show it in; {advice}, or run it where "
        f"{needed_for_windows()}"
    )
