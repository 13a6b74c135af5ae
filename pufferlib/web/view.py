"""Page that shows an environment, with keyboard and mouse: a viewer like the window and the terminal."""

import json
import threading
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferlib.render.text import ITEM_GAP
from pufferlib.render.video import Frame
from pufferlib.web.server import Reply, Request, Server, read_static, send_file

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

__all__ = ["Page", "encoded"]

FILES = {
    "view.html": "text/html; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
    **dict.fromkeys(("base.css", "view.css"), "text/css; charset=utf-8"),
}
VIDEOS = "/videos/"  # path of the folder of videos
LEVEL = 1  # of zlib. Higher levels take several times as long and make drawn images little smaller.
MOST_UNREAD = 64  # largest number of keys and of clicks that wait for the environment
QUIT = "q"  # a key of windows and terminals. A page does not end the session, because others may have it open too.


class Page:
    """Page that shows images or text, and reads keys and clicks.

    Any number of browsers can open it. All of them watch. The first one controls, until a key or the mouse is used in
    another one. While no browser has the page open, ``pressed`` waits, which pauses the session.

    A browser gets the newest frame when it has drawn the one before, so a slow one neither delays the environment nor
    fills the memory. A frame consists of the image rows that changed, as RGB, compressed with zlib.

    Attributes:
        closed: True after ``close``.
        url: Address of the page, with the token if there is one.

    Args:
        videos: Folder of recorded videos, which the page offers for download. No other files are served.
        host: Address to listen on. See ``Server``.
        port: Port to listen on. 0 chooses a free one.
        token: Secret in the address. None makes one, unless ``host`` is this machine only.

    Raises:
        BindingMissing: The package websockets is not installed.
        UsageError: The page cannot be served at this host and port.
    """

    has_mouse = True

    def __init__(self, videos: Path, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        self.closed = False
        self._videos = videos
        self._changed = threading.Condition()  # protects all attributes below
        self._frame: Frame | str = ""
        self._lines: Sequence[str] = ()
        self._version = 0  # number of calls of show
        self._browsers: list[_Browser] = []
        self._pressed: deque[str] = deque(maxlen=MOST_UNREAD)
        self._clicks: deque[tuple[float, float]] = deque(maxlen=MOST_UNREAD)
        self._server = Server(self._reply, socket=self._talk, host=host, port=port, token=token)
        self.url = self._server.url

    @property
    def held(self) -> set[str]:
        """Names of the keys that are held down in the browser that controls."""
        with self._changed:
            return set(self._browsers[0].held) if self._browsers else set()

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call. Wait while no browser has the page open."""
        with self._changed:
            self._changed.wait_for(lambda: self._browsers or self.closed)
            return _drained(self._pressed)

    def clicks(self) -> list[tuple[float, float]]:
        """Return the points clicked since the last call, in px of the image."""
        with self._changed:
            return _drained(self._clicks)

    def show(self, frame: Frame | str, lines: Sequence[str] = ()) -> None:
        """Show ``frame``, uint8 ``(height, width, 3)`` or text, with ``lines``."""
        with self._changed:
            self._frame = frame if isinstance(frame, str) else frame.copy()  # an environment may reuse its array
            self._lines = lines
            self._note_change()

    def close(self) -> None:
        """Stop serving the page. Closing twice is harmless."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._server.close()

    def _reply(self, request: Request) -> Reply:
        if request.path.startswith(VIDEOS):
            return send_file(self._videos, request.path.removeprefix(VIDEOS), request)
        name = "view.html" if request.path == "/" else request.path[1:]
        if name not in FILES:
            return Reply(b"There is no such page.\n", "text/plain", 404)
        return Reply(read_static(name), FILES[name])

    def _talk(self, connection: "ServerConnection") -> None:
        """Read the keys and clicks of a browser until it closes the page, while another thread sends frames."""
        browser = _Browser()
        sender = threading.Thread(target=self._send, args=(connection, browser), name="puffer-view", daemon=True)
        with self._changed:
            self._browsers.append(browser)
            self._note_change()
        sender.start()
        try:
            for message in connection:
                self._note(browser, json.loads(message))
        except ValueError:  # not from our page
            connection.close(1003)
        finally:
            with self._changed:
                self._browsers.remove(browser)
                self._note_change()

    def _note(self, browser: "_Browser", message: Any) -> None:
        """Process a message of a browser. Others than those of our page are ignored."""
        with self._changed:
            match message:
                case {"ready": True}:
                    browser.is_ready = True
                    self._changed.notify_all()
                case {"down": str(name)} if name != QUIT:
                    self._give_control(browser)
                    self._pressed.append(name)
                    browser.held.add(name)
                case {"up": str(name)}:
                    browser.held.discard(name)
                case {"click": [int() | float() as x, int() | float() as y]}:
                    self._give_control(browser)
                    self._clicks.append((x, y))

    def _give_control(self, browser: "_Browser") -> None:
        """Move a browser to the first place."""
        if self._browsers[0] is not browser:
            self._browsers.remove(browser)
            self._browsers.insert(0, browser)
            self._note_change()

    def _note_change(self) -> None:
        self._version += 1
        self._changed.notify_all()

    def _has_news(self, browser: "_Browser") -> bool:
        return browser not in self._browsers or (browser.is_ready and browser.version != self._version)

    def _send(self, connection: "ServerConnection", browser: "_Browser") -> None:
        """Send what has changed whenever the browser is ready, until it closes the page."""
        from websockets.exceptions import ConnectionClosed

        shown: Frame | str | None = None
        shown_caption: dict[str, Any] = {}
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_news(browser))
                if browser not in self._browsers:
                    return
                browser.version, frame = self._version, self._frame
                caption = _caption(self._lines, controls=self._browsers[0] is browser)
            image, data = encoded(shown, frame)
            if not image and caption == shown_caption:
                continue
            browser.is_ready = False
            try:
                connection.send(json.dumps({**image, **(caption if caption != shown_caption else {})}))
                if data:
                    connection.send(data)
            except ConnectionClosed:
                return
            shown, shown_caption = frame, caption


@dataclass(eq=False)
class _Browser:
    """Browser that has the page open.

    Attributes:
        held: Names of the keys that are held down in it.
        is_ready: True if it has drawn what was sent last.
        version: Version that was sent last.
    """

    held: set[str] = field(default_factory=set)
    is_ready: bool = False
    version: int = -1


def encoded(before: Frame | str | None, frame: Frame | str) -> tuple[dict[str, Any], bytes]:
    """Return the change from ``before`` to ``frame`` as a message, and the pixels that follow it.

    Returns:
        ``{"text": ...}``, or ``{"size": (width, height), "rows": [(first, end), ...]}`` with the rows that differ, or
        an empty dict if nothing differs. The pixels of these rows, RGB from left to right, compressed with zlib.
    """
    if isinstance(frame, str):
        return ({"text": frame}, b"") if frame != before else ({}, b"")
    if isinstance(before, np.ndarray) and before.shape == frame.shape:
        differs = (before != frame).any(axis=(1, 2))
    else:
        differs = np.ones(len(frame), bool)
    edges = np.flatnonzero(np.diff(differs, prepend=False, append=False)).reshape(-1, 2).tolist()
    if not edges:
        return {}, b""
    pixels = zlib.compress(frame[differs].tobytes(), LEVEL)
    return {"size": frame.shape[1::-1], "rows": edges}, pixels


def _caption(lines: Sequence[str], controls: bool) -> dict[str, Any]:
    """Return the lines below an image as a message."""
    groups = [line.split(ITEM_GAP) if line else [] for line in lines]
    keys = [[item.partition(": ")[::2] for item in group] for group in groups[1:]]
    return {
        "controls": controls,
        "state": groups[0] if groups else [],
        "keys": [[(name, about) for name, about in group if name != QUIT] for group in keys],
    }


def _drained(queue: deque[Any]) -> list[Any]:
    found = list(queue)
    queue.clear()
    return found
