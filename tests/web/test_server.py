"""The web server of the pages: what it sends, and what it refuses."""

import http.client
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection

from pufferlib.errors import PufferError, UsageError
from pufferlib.web.server import Reply, Request, Server, read_static, send_file
from tests.browser import Browser


def pages(request: Request) -> Reply:
    if request.path == "/fails":
        raise PufferError("the run is gone")
    return Reply(f"<title>{request.path} {dict(request.query)}</title>".encode())


def repeat(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(pages, socket=repeat, port=0) as server:
        yield server


def get(url: str, path: str = "/", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Return the status, the body and the headers of a reply."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port or 0, timeout=10)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, body, dict(reply.headers)


def websocket(url: str) -> str:
    return url.replace("http:", "ws:")


def test_a_page_gets_its_path_and_arguments(server: Server) -> None:
    assert get(server.url, "/a%20b?x=1&y=&x=2")[:2] == (200, "<title>/a b {'x': '2', 'y': ''}</title>")


def test_the_message_of_an_error_is_the_reply(server: Server) -> None:
    assert get(server.url, "/fails")[:2] == (500, "the run is gone\n")


def test_a_websocket_talks_in_both_directions(server: Server) -> None:
    with connect(websocket(server.url), proxy=None) as client:
        client.send("left")
        assert client.recv(timeout=10) == "left"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.1", ""])
def test_foreign_hosts_are_refused(server: Server, host: str) -> None:
    status, body, _ = get(server.url, Host=host)
    assert status == 403
    assert f"no page for the host {host.partition(':')[0]!r}" in body


def test_websockets_of_foreign_pages_are_refused(server: Server) -> None:
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(websocket(server.url), origin="http://evil.example", proxy=None),  # type: ignore[arg-type]
    ):
        pass


def test_a_server_for_other_machines_needs_its_token() -> None:
    with Server(pages, socket=repeat, host="0.0.0.0", port=0) as server:
        page, _, token = server.url.partition("?token=")
        assert page.startswith("http://127.0.0.1:")
        assert len(token) > 20
        status, body, _ = get(server.url)
        assert status == 403
        assert "This page needs a token" in body
        assert "This token is wrong" in get(server.url, "/?token=guess")[1]
        status, _, headers = get(server.url, f"/?token={token}")
        assert status == 200
        assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        assert get(server.url, "/data", Cookie=headers["Set-Cookie"].partition(";")[0])[0] == 200
        with pytest.raises(InvalidStatus, match="403"), connect(websocket(page), proxy=None):
            pass
        with connect(websocket(server.url), proxy=None) as client:
            client.send("up")
            assert client.recv(timeout=10) == "up"


def test_two_servers_keep_their_own_tokens() -> None:
    with Server(pages, port=0, token="a b") as first, Server(pages, port=0, token="c") as second:
        assert first.url.endswith("?token=a%20b")
        cookies = [get(server.url, f"/?{server.url.partition('?')[2]}")[2]["Set-Cookie"] for server in (first, second)]
        both = "; ".join(cookie.partition(";")[0] for cookie in cookies)
        both = f'k={{"a":1}}; a/b=1; {both}'  # and those of other services
        assert [get(server.url, Cookie=both)[0] for server in (first, second)] == [200, 200]


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("127.0.0.1", 65536, "port 65536 does not exist; expected 1 to 65535"),
        ("192.0.2.1", 0, "'192.0.2.1': .*; expected an address of this machine"),
    ],
)
def test_an_address_that_does_not_work_is_one_error(host: str, port: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Server(pages, host=host, port=port)


def test_a_port_in_use_is_one_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="in use; try --port"):
        Server(pages, port=taken.getsockname()[1])


def test_close_ends_open_websockets() -> None:
    with Server(pages, socket=repeat, port=0) as server, connect(websocket(server.url), proxy=None) as client:
        server.close()
        assert not list(client), "the server has ended the websocket"


def test_files_are_sent_whole_or_in_parts(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/video.mp4").write_bytes(bytes(range(100)))
    whole = send_file(tmp_path, "/run/video.mp4", Request("/", {}, {}))
    assert (whole.status, whole.kind, whole.body) == (200, "video/mp4", bytes(range(100)))
    for asked, expected in (
        ("bytes=10-19", range(10, 20)),
        ("bytes=90-", range(90, 100)),
        ("bytes=95-200", range(95, 100)),
    ):
        part = send_file(tmp_path, "run/video.mp4", Request("/", {}, {"range": asked}))
        assert (part.status, part.body) == (206, bytes(expected))
        assert part.headers["Content-Range"] == f"bytes {expected[0]}-{expected[-1]}/100"
    assert send_file(tmp_path, "run/video.mp4", Request("/", {}, {"range": "bytes=100-"})).status == 416


@pytest.mark.parametrize("path", ["../secret", "/../secret", "link", "run", "absent", "a\0b", "link/../../secret"])
def test_nothing_outside_of_the_folder_is_sent(tmp_path: Path, path: str) -> None:
    (tmp_path / "runs/run").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "runs/link").symlink_to(tmp_path / "secret")
    reply = send_file(tmp_path / "runs", path, Request("/", {}, {}))
    assert (reply.status, b"secret\n" in reply.body) == (404, False) or path.endswith("secret")
    assert reply.status == 404


@pytest.mark.all
@pytest.mark.browser
def test_a_browser_opens_the_page_with_its_token() -> None:
    style = read_static("base.css")

    def styled(request: Request) -> Reply:
        if request.path == "/base.css":
            return Reply(style, "text/css")
        return Reply(b"<!doctype html><title>A</title><link rel=stylesheet href=base.css><link rel=icon href=data:,>")

    with Server(styled, socket=repeat, host="0.0.0.0", port=0) as server, Browser(dark=True) as browser:
        browser.open(server.url)
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 23, 29)"
        assert (browser.screenshot() == (17, 23, 29)).all()
        script = (
            "new Promise(done => { const s = new WebSocket('/socket'); "
            "s.onopen = () => s.send('hello'); s.onmessage = e => done(e.data) })"
        )
        assert browser.evaluate(script) == "hello"
        assert browser.console == []
