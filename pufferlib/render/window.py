"""Window for images, with keyboard and mouse input, based on pygame."""

import contextlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferlib.errors import BindingMissing, PufferError
from pufferlib.machine.commands import way_to_install
from pufferlib.render.terminal import fitting
from pufferlib.render.text import draw_text, with_lines
from pufferlib.render.video import Frame

if TYPE_CHECKING:
    import pygame

__all__ = ["INSTEAD", "Window", "drawn_unseen", "has_display", "needed_for_windows"]

# Images are enlarged by a whole factor until the longer side reaches the first, and shrunk to the second.
LEAST_PX, MOST_PX = 480, 960

INSTEAD = "use render_mode='ansi' for images in the terminal, or 'rgb_array'"

UNSEEN = ("offscreen", "dummy")  # drivers that SDL silently falls back to if the display does not answer

_windows: list["Window"] = []  # pygame has one event queue for all windows


class Window:
    """Window that shows images. It opens with the first image.

    Attributes:
        closed: True if the user has closed the window.
        held: Names of the keys that are held down: "left", "space", "a", "1".

    Args:
        title: Title of the window.
        instead: Advice in the error message if a window cannot be opened.

    Raises:
        BindingMissing: pygame is not installed.
        PufferError: There is no display.
    """

    has_mouse = True

    def __init__(self, title: str, instead: str = INSTEAD) -> None:
        self._pygame = _pygame(instead)
        self._title, self._instead = title, instead
        self._window: pygame.Window | None = None
        self._pressed: list[str] = []
        self._clicks: list[tuple[float, float]] = []
        self._last: tuple[Frame, Sequence[str]] | None = None  # frame and lines in the window
        self._corner, self._scale = (0, 0), 1.0  # corner of the image in window px, and window px per image px
        self.closed = False
        self.held: set[str] = set()

    def show(self, frame: Frame | str, lines: Sequence[str] = ()) -> None:
        """Show ``frame``, uint8 ``(height, width, 3)`` or text, above ``lines``, scaled to fit the window."""
        if self.closed:
            return
        if isinstance(frame, str):
            frame = draw_text(frame)
        self._last = frame, lines
        self._draw(frame, lines)
        self.pump()

    def pump(self) -> None:
        """Process the pending keyboard, mouse and window events."""
        pygame = self._pygame
        for event in pygame.event.get():
            source = getattr(event, "window", None)
            for window in _windows:
                if source in (None, window._window):
                    window._note(event)

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call."""
        self.pump()
        pressed, self._pressed = self._pressed, []
        return pressed

    def clicks(self) -> list[tuple[float, float]]:
        """Return the points clicked since the last call, in image px from the upper left corner."""
        self.pump()
        clicks, self._clicks = self._clicks, []
        return clicks

    def close(self) -> None:
        """Close the window. Closing twice is harmless."""
        self.closed = True
        if self._window is not None:
            _windows.remove(self)
            self._window.destroy()
            self._window = None

    def _draw(self, frame: Frame, lines: Sequence[str]) -> None:
        original_width = frame.shape[1]
        if lines:
            frame = with_lines(frame, lines)
        height, width = frame.shape[:2]
        window = self._window or self._opened(height, width)
        surface = window.get_surface()
        high, wide = fitting(height, width, surface.get_height(), surface.get_width())
        pygame = self._pygame
        picture = pygame.image.frombuffer(np.ascontiguousarray(frame), (width, height), "RGB")
        scale = pygame.transform.scale if wide % width == 0 else pygame.transform.smoothscale
        # Center the image, and remember its position for mouse clicks.
        surface.fill((0, 0, 0))
        self._corner = ((surface.get_width() - wide) // 2, (surface.get_height() - high) // 2)
        self._scale = wide / original_width
        surface.blit(scale(picture, (wide, high)), self._corner)
        window.flip()

    def _opened(self, height: int, width: int) -> "pygame.Window":
        pygame = self._pygame
        size = _size(height, width)
        # With OpenGL, SDL's window and the off-screen images of MuJoCo in one thread end the program.
        os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
        try:
            pygame.display.init()
            if pygame.display.get_driver() in UNSEEN and not os.environ.get("SDL_VIDEODRIVER"):
                raise pygame.error("no display answers")
            self._window = pygame.Window(self._title, size[::-1], resizable=True)
        except pygame.error as error:
            raise PufferError(f"Window: cannot open a window: {error}; {self._instead}") from error
        _windows.append(self)
        return self._window

    def _note(self, event: "pygame.Event") -> None:
        pygame = self._pygame
        if event.type in (pygame.WINDOWCLOSE, pygame.QUIT):
            self.closed = True
        elif event.type == pygame.KEYDOWN:
            name = _key_name(pygame.key.name(event.key))
            self._pressed.append(name)
            self.held.add(name)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == pygame.BUTTON_LEFT:
            x, y = (at - corner for at, corner in zip(event.pos, self._corner, strict=True))
            self._clicks.append((x / self._scale, y / self._scale))
        elif event.type == pygame.KEYUP:
            self.held.discard(_key_name(pygame.key.name(event.key)))
        elif event.type == pygame.WINDOWFOCUSLOST:
            self.held.clear()
        elif event.type in (pygame.WINDOWSIZECHANGED, pygame.WINDOWEXPOSED) and self._last:
            self._draw(*self._last)  # redraw, since a game that waits for a key does not


def _size(height: int, width: int) -> tuple[int, int]:
    """Return the height and width of a window for images of this size."""
    factor = max(1, -(-LEAST_PX // max(height, width)))
    return fitting(height, width, min(height * factor, MOST_PX), min(width * factor, MOST_PX))


def _key_name(name: str) -> str:
    return {"return": "enter"}.get(name, name)


def has_display() -> bool:
    """Return True if windows can be opened. Without a display, SDL would silently draw nothing."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"))


@contextlib.contextmanager
def drawn_unseen() -> Iterator[None]:
    """Let environments render to arrays with pygame when there is no display."""
    if has_display():
        yield
        return
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        yield
    finally:
        del os.environ["SDL_VIDEODRIVER"]


def needed_for_windows() -> str:
    """Return the conditions for opening a window, for error messages."""
    has_pygame = importlib.util.find_spec("pygame") is not None
    missing = "" if has_pygame else f" and pygame is installed ({way_to_install('render')})"
    return f"DISPLAY or WAYLAND_DISPLAY is set{missing}"


def _pygame(instead: str) -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise BindingMissing(f"Window: windows need pygame; {way_to_install('render')}, or {instead}") from error
    if not hasattr(pygame, "Window"):
        raise BindingMissing(
            f"Window: windows need pygame-ce, got pygame {pygame.ver}; pip uninstall pygame; {way_to_install('render')}"
        )
    if not has_display():
        raise PufferError(f"Window: there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set; {instead}")
    return pygame
