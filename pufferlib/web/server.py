"""Web server on this machine, for the pages of the package."""

import contextlib
import mimetypes
import os
import re
import secrets
import socket
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pufferlib.errors import BindingMissing, PufferError, UsageError
from pufferlib.machine.commands import way_to_install

if TYPE_CHECKING:
    from websockets.http11 import Request as Handshake, Response
    from websockets.sync.server import ServerConnection

__all__ = ["Pages", "Reply", "Request", "Server", "read_static", "send_file"]


LOCAL = ("127.0.0.1", "localhost", "::1")
EVERY = ("0.0.0.0", "::", "")  # every address of this machine
REQUEST_SECONDS = 3.0  # browsers open connections in advance. They must not delay the end for long.
CHUNK = 1 << 22  # largest part of a file in one reply, in bytes

TOKEN_PAGE = (
    "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>Token needed</title>"
    "<body style='font: 16px/1.5 system-ui; max-width: 40em; margin: 3em auto; padding: 0 1em'>"
    "<h1>{title}</h1><p>Open the address that the terminal shows. It ends with <code>?token=</code> and the token."
)


@dataclass(frozen=True)
class Request:
    """Request for a page.

    Attributes:
        path: Decoded path, beginning with "/".
        query: Arguments after the "?". Of an argument that is given twice, the last one counts.
        headers: Headers, with names in lower case.
    """

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """Reply to a request.

    Attributes:
        body: Content.
        kind: Media type of the content.
        status: HTTP status.
        headers: Further headers.
    """

    body: bytes
    kind: str = "text/html; charset=utf-8"
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


Pages = Callable[[Request], Reply]


class Server:
    """Web server that answers requests for pages, and holds the websockets of these pages.

    It runs in threads of its own from its creation until ``close``. Each request and each websocket has a thread.
    Requests with a foreign ``Host``, and websockets of foreign pages, are refused. Otherwise any page in the browser
    could read from the server.

    Attributes:
        url: Address of the first page, with the token if there is one.

    Args:
        pages: Returns the reply to a request. The message of a PufferError becomes the reply, with status 500.
        socket: Talks with one websocket, and returns or raises ``ConnectionClosed`` at its end.
        host: Address to listen on: "127.0.0.1" for this machine only, "0.0.0.0" for every network.
        port: Port to listen on. 0 chooses a free one.
        token: Secret that the address must contain. None makes one, unless ``host`` is this machine only.

    Raises:
        BindingMissing: The package websockets is not installed.
        UsageError: The port is in use or not allowed, or the host is not an address of this machine.
    """

    def __init__(
        self,
        pages: Pages,
        *,
        socket: "Callable[[ServerConnection], None] | None" = None,
        host: str = LOCAL[0],
        port: int,
        token: str | None = None,
    ) -> None:
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            raise BindingMissing(f"Server: pages need the package websockets; {way_to_install('train')}") from error
        self._pages, self._talk = pages, socket
        self._local = host in LOCAL
        self._token = token if token or self._local else secrets.token_urlsafe(16)
        listening = _listen(host, port)
        self._port = listening.getsockname()[1]
        self._cookie = f"puffer-{self._port}"
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{LOCAL[0] if host in EVERY else shown}:{self._port}/"
        if self._token:
            self.url += f"?token={urllib.parse.quote(self._token, safe='')}"
        self._server = serve(
            self._hold,
            sock=listening,
            process_request=self._answer,
            open_timeout=REQUEST_SECONDS,
            close_timeout=1,
            compression=None,
            server_header=None,
        )
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, name="puffer-web", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until ``close`` is called, or the user presses Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            self._closed.wait()

    def close(self) -> None:
        """Stop listening, and close all websockets. Waits for the replies in progress."""
        self._closed.set()
        self._server.shutdown()
        self._thread.join()

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, connection: "ServerConnection", handshake: "Handshake") -> "Response | None":
        """Return the reply to a request, or None to open a websocket."""
        address = urllib.parse.urlsplit(handshake.path)
        headers = {name.lower(): value for name, value in handshake.headers.raw_items()}
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        reply = self._refusal(headers, query)
        if reply is None and "websocket" in headers.get("upgrade", "").lower():
            if self._talk and headers.get("origin", "").partition("://")[2] in ("", headers["host"]):
                return None
            reply = _plain(HTTPStatus.FORBIDDEN, "This page has no websocket here.")
        if reply is None:
            request = Request(urllib.parse.unquote(address.path) or "/", query, headers)
            try:
                reply = self._pages(request)
            except PufferError as error:
                reply = _plain(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return self._response(reply, new_token="token" in query)

    def _refusal(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Reply | None:
        """Return the reply to a request that is not allowed."""
        host = re.sub(r":\d+$", "", headers.get("host", "")).strip("[]")
        if self._token:
            given = query.get("token", _cookie_value(headers.get("cookie", ""), self._cookie))
            if not secrets.compare_digest(given.encode(), self._token.encode()):
                title = "This token is wrong" if given else "This page needs a token"
                return Reply(TOKEN_PAGE.format(title=title).encode(), status=HTTPStatus.FORBIDDEN)
        elif host not in LOCAL:
            return _plain(HTTPStatus.FORBIDDEN, f"This server has no page for the host {host!r}, only for localhost.")
        return None

    def _response(self, reply: Reply, new_token: bool) -> "Response":
        """Return the reply in the form that the package websockets sends."""
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        headers = Headers(
            {
                "Content-Type": reply.kind,
                "Content-Length": str(len(reply.body)),
                "Connection": "close",
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                **reply.headers,
            }
        )
        if self._token and new_token and reply.status != HTTPStatus.FORBIDDEN:
            value = urllib.parse.quote(self._token, safe="")
            headers["Set-Cookie"] = f"{self._cookie}={value}; Path=/; HttpOnly; SameSite=Strict"
        return Response(reply.status, HTTPStatus(reply.status).phrase, headers, reply.body)

    def _hold(self, connection: "ServerConnection") -> None:
        from websockets.exceptions import ConnectionClosed

        assert self._talk is not None  # otherwise _answer refuses
        with contextlib.suppress(ConnectionClosed):
            self._talk(connection)


def _cookie_value(header: str, name: str) -> str:
    """Return the value of a cookie, or "". Cookies of other services of the host may be in any form."""
    for part in header.split(";"):
        own, _, value = part.strip().partition("=")
        if own == name:
            return urllib.parse.unquote(value)
    return ""


def read_static(name: str) -> bytes:
    """Return a file of the package's pages.

    Args:
        name: File name, such as "base.css".
    """
    return files("pufferlib.web").joinpath("static", name).read_bytes()


def send_file(folder: Path, path: str, request: Request) -> Reply:
    """Return a file in a folder as a reply, or the part of it that the browser asks for.

    Args:
        folder: Folder. Nothing outside of it is sent, even if a symbolic link in it leads there.
        path: Path of the file in the folder.
        request: Request of the browser. A ``Range`` header asks for a part.
    """
    root = folder.resolve()
    try:
        file = (root / path.lstrip("/")).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            return _plain(HTTPStatus.NOT_FOUND, f"There is no file {path!r} in {folder}.")
        size = file.stat().st_size
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if not asked:
            return Reply(file.read_bytes(), kind, headers={"Accept-Ranges": "bytes"})
        first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1, int(asked[1]) + CHUNK - 1)
        if first > last:
            return Reply(b"", kind, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"})
        with file.open("rb") as opened:
            opened.seek(first)
            part = opened.read(last - first + 1)
        return Reply(part, kind, HTTPStatus.PARTIAL_CONTENT, {"Content-Range": f"bytes {first}-{last}/{size}"})
    except (OSError, ValueError) as error:  # deleted meanwhile, or a path with a zero byte
        return _plain(HTTPStatus.NOT_FOUND, f"{path!r} cannot be read: {error}")


def _plain(status: HTTPStatus, text: str) -> Reply:
    return Reply(f"{text}\n".encode(), "text/plain; charset=utf-8", status)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    if not 0 <= port < 1 << 16:
        raise UsageError(f"port {port} does not exist; expected 1 to 65535, or 0 for a free one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        where = f"cannot listen on port {port} of {host!r}: {reason}"
        with contextlib.suppress(OSError), socket.create_server((host, 0), family=family) as free:
            raise UsageError(f"{where}; try --port {free.getsockname()[1]}") from error
        raise UsageError(f"{where}; expected an address of this machine, such as 127.0.0.1 or 0.0.0.0") from error
