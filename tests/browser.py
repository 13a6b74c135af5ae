"""A real browser for tests of pages: Chromium without a window, driven through its debugging pipe."""

import base64
import io
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.render.video import Frame
from tests.conftest import BROWSER

__all__ = ["Browser"]

TIMEOUT_S = 30.0

KEYS = {  # names of keys: code on the keyboard, and the number that older pages read
    "ArrowLeft": ("ArrowLeft", 37),
    "ArrowUp": ("ArrowUp", 38),
    "ArrowRight": ("ArrowRight", 39),
    "ArrowDown": ("ArrowDown", 40),
    "Enter": ("Enter", 13),
    "Escape": ("Escape", 27),
    "Shift": ("ShiftLeft", 16),
    "Tab": ("Tab", 9),
    " ": ("Space", 32),
}


class Browser:
    """One page of a browser.

    Attributes:
        console: Errors and warnings of the page since it was opened, as text.

    Args:
        width: Width of the page in px.
        height: Height of the page in px.
        dark: True if the page is told that the user prefers dark colors.
        phone: True if the browser behaves like that of a phone, with touch instead of a mouse.
    """

    def __init__(self, width: int = 1280, height: int = 800, dark: bool = False, phone: bool = False) -> None:
        self.console: list[str] = []
        self._numbers = itertools.count(1)
        self._received = b""
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        # The browser reads its commands from descriptor 3, and writes the answers to descriptor 4.
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        arguments = [BROWSER, "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        arguments += [f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}"]
        bridge = f'exec 3<&{commands} 4>&{answers}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", bridge, "browser", *arguments],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self._call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        self.console.clear()
        failed = self._call("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page. Promises are waited for."""
        done = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, script: str, seconds: float = TIMEOUT_S) -> Any:
        """Return the value of a JavaScript expression as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(script)):
            assert time.monotonic() < deadline, f"{script} is not true after {seconds} s; console: {self.console}"
            time.sleep(0.02)
        return value

    def press(self, *keys: str, seconds: float = 0.0) -> None:
        """Hold keys down together, such as "ArrowLeft", "Shift" or "a", and let them go after some seconds."""
        for key in keys:
            self._key("keyDown", key)
        time.sleep(seconds)
        for key in reversed(keys):
            self._key("keyUp", key)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that a CSS selector finds, after scrolling to it."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; "
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        assert box, f"the page has no {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def screenshot(self) -> Frame:
        """Return what the page shows, as ``uint8 (height, width, 3)``."""
        from PIL import Image

        data = base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])
        pixels: npt.NDArray[np.uint8] = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        return pixels

    def _key(self, kind: str, key: str) -> None:
        code, number = KEYS.get(key, (f"Key{key.upper()}", ord(key[0].upper())))
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        if kind == "keyDown" and len(key) == 1:
            event["text"] = key
        self._call("Input.dispatchKeyEvent", type=kind, **event)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a method of the debugging protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], TIMEOUT_S)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, f"{BROWSER} has ended"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        """Keep the errors and warnings among the events."""
        about = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                self.console.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning", "assert"):
                self.console.append(" ".join(str(part.get("value", part)) for part in about["args"]))
            case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                self.console.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
