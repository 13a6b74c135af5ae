"""Implementation of the render modes."""

from pufferlib.errors import UnknownNameError
from pufferlib.machine.signals import RequestedExit
from pufferlib.render.pace import Pace
from pufferlib.render.terminal import to_text
from pufferlib.render.video import Frame
from pufferlib.render.window import INSTEAD, Window

__all__ = ["RENDER_MODES", "View"]

RENDER_MODES = ("human", "rgb_array", "ansi")


class View:
    """Output of an environment's frames according to its ``render_mode``.

    Attributes:
        window: Window of mode "human", opened by the first frame. None in other modes.
        is_live: True if every reset and step must show a frame ("human", until the window is closed).

    Args:
        name: Name of the environment class.
        render_mode: One of RENDER_MODES, or None for "rgb_array".
        fps: Steps per second.
        instead: Advice in the error message if a window cannot be opened.

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
        """Return the image ("rgb_array") or terminal text ("ansi"), or show it in the window and return None ("human").

        Raises:
            BindingMissing: A window is needed, but pygame is not installed.
            PufferError: A window is needed, but there is no display.
            SystemExit: The user closed the window. If you catch this, the environment continues without a window.
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
                raise RequestedExit(0)
        return None

    def wait(self) -> None:
        """Sleep until the next step is due."""
        self._pace.wait()

    def close(self) -> None:
        """Close the window. It is not opened again. Closing twice is harmless."""
        self.is_live = False
        if self.window is not None:
            self.window.close()
