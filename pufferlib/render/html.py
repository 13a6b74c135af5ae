"""HTML with which environments, runs and searches show themselves in notebooks."""

import base64
import contextlib
import html
import mimetypes
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame

__all__ = ["describe_env", "facts", "image_of", "media", "table"]

LEAST_PX = 240  # frames are enlarged by a whole factor to at least this height
LARGEST_BYTES = 16_000_000  # of a file in a page. A notebook stores its pages.

_CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"
_MEDIA = "max-width:100%;display:block;margin:0.5em 0"


def facts(title: str, values: Mapping[str, object]) -> str:
    """Return a title with names and values below it. Values that are "" or None are left out."""
    rows = [
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:0.75">{html.escape(name)}</th>'
        f'<td style="{_CELL}">{html.escape(str(value))}</td></tr>'
        for name, value in values.items()
        if value not in ("", None)
    ]
    return f"<div><strong>{html.escape(title)}</strong><table>{''.join(rows)}</table></div>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. Each row has a value for each column in ``head``."""
    top = "".join(f'<th scope="col" style="{_CELL}">{html.escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(str(value))}</td>' for value in row) + "</tr>"
        for row in rows
    )
    content = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto">{content}</div>'


def describe_env(env: Any) -> str:
    """Return the spaces of an environment or of many, and the current frame if there is one without a window.

    Args:
        env: Environment with the attributes of ``PufferEnv`` or ``VectorEnv``.
    """
    frame = None
    if getattr(env, "render_mode", None) in (None, "rgb_array"):
        with contextlib.suppress(Exception):  # not reset yet, closed, or in the middle of a step
            frame = picture_of(env)
    values = {
        "environments": getattr(env, "num_envs", None),
        "agents": env.num_agents,
        "observation": env.single_observation_space,
        "action": env.single_action_space,
        "autoreset": getattr(env, "autoreset", None),
    }
    return facts(type(env).__name__, values) + ("" if frame is None else image_of(frame, "current frame"))


def image_of(frame: Frame, alt: str) -> str:
    """Return an image with the pixels of a frame, uint8 ``(height, width, 3)``.

    Args:
        frame: Frame. Small ones are enlarged.
        alt: Description for readers who do not see the image.
    """
    factor = max(1, LEAST_PX // frame.shape[0])
    frame = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    return _image("image/png", _png(frame), alt)


def media(path: Path, alt: str) -> str:
    """Return the image or video in a file, or "" if there is no such file. A very large file is named instead.

    Args:
        path: Path of the file. The suffix determines its kind.
        alt: Description for readers who do not see it.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return f"<p>{html.escape(alt)}: {html.escape(str(path))}</p>"
        data = path.read_bytes()
    except OSError:
        return ""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if not kind.startswith("video/"):
        return _image(kind, data, alt)
    source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return f'<video controls loop muted style="{_MEDIA}" aria-label="{html.escape(alt)}" src="{source}"></video>'


def _image(kind: str, data: bytes, alt: str) -> str:
    encoded = base64.b64encode(data).decode()
    return f'<img style="{_MEDIA}" alt="{html.escape(alt)}" src="data:{kind};base64,{encoded}">'


def _png(frame: Frame) -> bytes:
    """Encode a frame as PNG. Environments can be shown without the packages for training."""
    height, width, _ = frame.shape
    lines = b"".join(b"\0" + line.tobytes() for line in frame)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
