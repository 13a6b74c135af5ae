"""Render modes: what is returned and shown in each, for every environment that draws pictures."""

from pufferlib.errors import UnknownNameError
from pufferlib.render.pace import Pace
from pufferlib.render.terminal import to_text
from pufferlib.render.video import Frame
from pufferlib.render.window import INSTEAD, Window

__all__ = ["RENDER_MODES", "View"]

RENDER_MODES = ("human", "rgb_array", "ansi")


class View:
    """Hands pictures on as ``render_mode`` says, and opens a window for "human" when the first one comes.

    Attributes:
        window: None before the first picture, and in other modes.
        is_live: Pictures are due after every reset and step, because a person watches.

    Args:
        name: Of the environment's class.
        render_mode: One of RENDER_MODES, or None for "rgb_array".
        fps: Steps in a second of the game.
        instead: What an error says to do where there can be no window.

    Raises:
        UnknownNameError: There is no such mode.
    """

    def __init__(self, name: str, render_mode: str | None, fps: float, instead: str = INSTEAD) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise UnknownNameError.of(name, "render_mode", render_mode, RENDER_MODES)
        self.window: Window | None = None
        self.is_live = render_mode == "human"
        self._name, self._mode, self._instead = name, render_mode, instead
        self._pace = Pace(fps)

    def show(self, picture: Frame) -> Frame | str | None:
        """``picture`` as it is, as text for a terminal, or in the window, which is nothing to return.

        Raises:
            BindingMissing: A window needs pygame.
            PufferError: A window needs a display.
            SystemExit: The person has closed the window. Who catches it goes on without one.
        """
        if self._mode == "ansi":
            return to_text(picture)
        if self._mode != "human":
            return picture
        if self.is_live:
            self.window = self.window or Window(f"pufferlib: {self._name}", self._instead)
            self.window.show(picture)
            if self.window.closed:
                self.close()
                raise SystemExit(0)
        return None

    def wait(self) -> None:
        """Sleep until the next step is due."""
        self._pace.wait()

    def close(self) -> None:
        """Close the window for good; twice is fine."""
        self.is_live = False
        if self.window is not None:
            self.window.close()
