"""Tests of the page of ``puffer view``, with a client that speaks its protocol."""

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
import zlib

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from pufferlib.play.loop import play
from pufferlib.play.session import Session
from pufferlib.web.view import Page


class Client:
    """Client that takes the place of a browser.

    Attributes:
        frame: Image or text that the page shows.
        caption: Last state, keys and controls.
        rows: Rows of the last image message.
        messages: Number of messages received, without pixels.
    """

    def __init__(self, connection):
        self.connection = connection
        self.frame, self.caption, self.rows, self.messages = None, {}, None, 0

    def send(self, **message):
        self.connection.send(json.dumps(message))

    def receive(self, timeout=10):
        """Ask for what is new, and wait for it."""
        self.send(ready=True)
        message = json.loads(self.connection.recv(timeout))
        self.messages += 1
        self.rows = message.get("rows")
        if self.rows:
            width, height = message["size"]
            if not isinstance(self.frame, np.ndarray) or self.frame.shape != (height, width, 3):
                self.frame = np.zeros((height, width, 3), np.uint8)
            pixels = np.frombuffer(zlib.decompress(self.connection.recv(timeout)), np.uint8).reshape(-1, width, 3)
            for first, end in self.rows:
                self.frame[first:end], pixels = pixels[: end - first], pixels[end - first :]
        self.frame = message.get("text", self.frame)
        self.caption |= {key: message[key] for key in ("state", "keys", "controls") if key in message}

    def receive_until(self, condition):
        """Receive until ``condition(caption)`` is true."""
        while not (self.caption and condition(self.caption)):
            self.receive()


@contextlib.contextmanager
def opened(page):
    """Yield a client that has the page open."""
    with connect(page.url.replace("http:", "ws:"), proxy=None) as connection:
        yield Client(connection)


@pytest.fixture
def page(tmp_path):
    page = Page(tmp_path / "videos")
    yield page
    page.close()


def get(page, path):
    """Return the status and the body of a reply."""
    address = urllib.parse.urlsplit(page.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request("GET", path)
    reply = connection.getresponse()
    status, body = reply.status, reply.read()
    connection.close()
    return status, body


def eventually(read, expected):
    deadline = time.monotonic() + 10
    while (value := read()) != expected:
        assert time.monotonic() < deadline, f"expected {expected!r}, got {value!r}"
        time.sleep(0.005)


def pictures(count):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (40, 30, 3), np.uint8)
    for _ in range(count):
        rows = rng.random(40) < 0.2
        picture[rows] = rng.integers(0, 256, (rows.sum(), 30, 3), np.uint8)
        yield picture  # in place, as some environments draw


def test_frames_arrive_exactly_with_only_their_changed_rows(page):
    with opened(page) as client:
        before = None
        for picture in pictures(5):
            page.show(picture, ["pong   step 1", "up: move up   click on a place", "r: restart   q: quit"])
            client.receive()
            np.testing.assert_array_equal(client.frame, picture)
            changed = [row for first, end in client.rows for row in range(first, end)]
            expected = range(40) if before is None else np.flatnonzero((before != picture).any((1, 2))).tolist()
            assert changed == list(expected)
            before = picture.copy()
        assert client.caption == {
            "controls": True,
            "state": ["pong", "step 1"],
            "keys": [[["up", "move up"], ["click on a place", ""]], [["r", "restart"]]],
        }
        page.show(np.ones((8, 4, 3), np.uint8))
        client.receive()
        np.testing.assert_array_equal(client.frame, np.ones((8, 4, 3)))


def test_slow_browser_gets_the_newest_frame_and_none_twice(page):
    with opened(page) as client:
        for picture in pictures(50):
            page.show(picture)
        client.receive()
        last = picture.copy()
        np.testing.assert_array_equal(client.frame, last)
        page.show(last)
        page.show(last, ["step 2"])
        client.receive()
        assert (client.rows, client.caption["state"], client.messages) == (None, ["step 2"], 2)


def test_text_is_sent_as_text(page):
    with opened(page) as client:
        page.show("\x1b[31mgo\x1b[0m →")
        client.receive()
        assert client.frame == "\x1b[31mgo\x1b[0m →"


def test_keys_and_clicks_reach_the_session(page):
    with opened(page) as client:
        client.send(down="left")
        client.send(down="q")  # the page does not end the session
        client.send(down="up")
        client.send(up="left")
        client.send(click=[3.5, 4])
        eventually(lambda: page.held, {"up"})
        eventually(page.clicks, [(3.5, 4)])
        assert page.pressed() == ["left", "up"]
        assert (page.pressed(), page.clicks()) == ([], [])


@pytest.mark.parametrize("message", ['{"down": 3}', '{"click": "here"}', "[]", '{"ready": "yes"}', "7"])
def test_messages_of_other_pages_are_ignored(message, page):
    with opened(page) as client:
        client.connection.send(message)
        client.send(down="a")
        eventually(page.pressed, ["a"])


def test_message_that_is_not_json_closes_the_connection(page):
    with opened(page) as client:
        client.connection.send("{")
        with pytest.raises(ConnectionClosed):
            client.connection.recv(10)


def test_all_pages_watch_and_the_last_one_used_controls(page):
    with opened(page) as first:
        page.show("text", ["state"])
        first.receive()
        with opened(page) as second:
            second.receive()
            assert (first.caption["controls"], second.caption["controls"]) == (True, False)
            first.send(down="left")
            eventually(lambda: page.held, {"left"})
            second.send(down="up")
            eventually(lambda: page.held, {"up"})
            first.receive()
            second.receive()
            assert (first.caption["controls"], second.caption["controls"]) == (False, True)
        eventually(lambda: page.held, {"left"})
        first.receive()
        assert first.caption["controls"]


def test_session_waits_while_no_page_is_open(page):
    calls = []
    waiting = threading.Thread(target=lambda: calls.append(page.pressed()))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    with opened(page):
        waiting.join(10)
    assert calls == [[]]
    closing = threading.Thread(target=page.pressed)
    closing.start()
    page.close()
    closing.join(10)
    assert not closing.is_alive()


def test_only_the_page_and_its_videos_are_served(page, tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "pong.mp4").write_bytes(b"film")
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (tmp_path / "videos" / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    assert b"<title>puffer view</title>" in get(page, "/")[1]
    assert {get(page, path)[0] for path in ("/view.js", "/view.css", "/base.css")} == {200}
    assert get(page, "/videos/pong.mp4") == (200, b"film")
    for path in ("/videos/link.mp4", "/videos/../secret.mp4", "/videos/%2e%2e/secret.mp4", "/server.py", "/../view.py"):
        assert get(page, path)[0] == 404


def test_wrong_token_is_refused(tmp_path):
    page = Page(tmp_path, token="abc")
    assert page.url.endswith("/?token=abc")
    page.url = page.url.replace("abc", "abd")
    assert get(page, "/?token=abd")[0] == 403
    with pytest.raises(InvalidStatus), opened(page):
        pass
    page.close()


def test_session_is_played_paused_stepped_and_recorded_from_the_page(page, tmp_path):
    pytest.importorskip("av", reason="the train extra is not installed")
    session = Session("pong", {}, seed=1)
    loop = threading.Thread(target=play, args=(session, page, 60, tmp_path / "videos"))
    with opened(page) as client:
        loop.start()
        client.receive_until(lambda caption: caption["state"][1:] and caption["state"][1] not in ("step 0", "step 1"))
        np.testing.assert_array_equal(client.frame.shape, session.picture().shape)
        client.send(down=",")
        client.send(down="f9")
        client.receive_until(lambda caption: any(item.startswith("recording") for item in caption["state"]))
        steps = session.steps
        client.send(down=".")
        client.receive_until(lambda caption: f"step {steps + 1}" in caption["state"])
        client.send(down="f9")
        client.receive_until(lambda caption: any(item.startswith("saved") for item in caption["state"]))
        assert session.steps == steps + 1
        np.testing.assert_array_equal(client.frame, session.picture())
        video = next(item for item in client.caption["state"] if item.startswith("saved")).rpartition("/")[2]
        assert get(page, f"/videos/{video}")[1][4:8] == b"ftyp"
    page.close()
    loop.join(10)
    assert not loop.is_alive()
    session.close()
