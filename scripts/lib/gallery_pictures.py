"""One picture of an environment in the middle of a game, as a small PNG file."""

import statistics
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import pufferlib
from pufferlib import ocean, registry
from pufferlib._native import scale_picture
from pufferlib.errors import PufferError
from pufferlib.render.terminal import fitting

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"

Picture = npt.NDArray[np.uint8]

# Who would show little at random plays by a rule, from observations to actions.
RULES: dict[str, Callable[[Any], Any]] = {
    "breakout": lambda seen: 1 + (seen[:, 2] > seen[:, 0] + 0.03),  # the paddle follows the ball
    "pong": lambda seen: np.where(np.abs(seen[:, 3] - seen[:, 1]) < 0.03, 0, 1 + (seen[:, 3] < seen[:, 1])),
}

LONGEST_SIDE = {"ocean": 640, "bindings": 320}  # px, of what is larger
STEPS = 600  # played; the picture is one of the LOOKS that the later half of them is looked at
LOOKS = 40


def path_of(name: str) -> Path:
    """Where the picture of an environment of Ocean, or of a binding, lies."""
    folder = "ocean" if name in (*ocean.names(), *ocean.python_names()) else "bindings"
    return PICTURES / folder / f"{name}.png"


def draw(name: str) -> str:
    """Draw the picture of ``name`` and say so; what cannot be played here keeps the one it has."""
    path = path_of(name)
    facts = registry.binding_facts().get(name)
    try:
        frames = _frames(f"{name}/{facts.example}" if facts else name)
    except PufferError as error:
        return f"{name}: not drawn: {error}"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of those from the later half of an episode, the one that takes the most bytes shows the most.
    middle = statistics.median(age for age, _ in frames)
    longest = LONGEST_SIDE[path.parent.name]
    best = max((to_png(_shrunk(frame, longest)) for age, frame in frames if age >= middle), key=len)
    path.write_bytes(best)
    return f"{path.relative_to(ROOT)}: {len(best):,} bytes"


def _frames(name: str) -> list[tuple[int, Picture]]:
    """What a game shows now and then while it is played, and how many steps its episode has then had."""
    keywords: dict[str, Any] = {"num_envs": 1} if name in ocean.names() else {}
    env = pufferlib.vector.make(
        pufferlib.env_creator(name), env_kwargs={**keywords, "render_mode": "rgb_array"}, backend="Serial", seed=1
    )
    try:
        env.action_space.seed(1)
        observations, _ = env.reset()
        frames, age = [], 0
        for step in range(1, STEPS + 1):
            rule = RULES.get(name)
            observations, _, terminals, truncations, _ = env.step(
                rule(observations) if rule else env.action_space.sample()
            )
            age = 0 if (terminals | truncations).all() else age + 1
            if 2 * step >= STEPS and step % (STEPS // 2 // LOOKS) == 0:
                frames.append((age, np.array(env.driver_env.render())))
        return frames
    finally:
        env.close()


def _shrunk(picture: Picture, longest: int) -> Picture:
    height, width, _ = picture.shape
    if max(height, width) <= longest:
        return picture
    small = np.empty((*fitting(height, width, longest, longest), 3), np.uint8)
    scale_picture(np.ascontiguousarray(picture), small)
    return np.minimum(small.astype(np.uint16) + 4, 255).astype(np.uint8) & 0xF8  # fewer colours: smaller files


def to_png(picture: Picture) -> bytes:
    """The PNG file of a picture, uint8 ``(height, width, 3)``: with a palette where 256 colours are enough."""
    height, width, _ = picture.shape
    packed, indices = np.unique(picture @ np.array([65536, 256, 1]), return_inverse=True)
    has_palette = len(packed) <= 256
    rows = indices.astype(np.uint8).reshape(height, width) if has_palette else picture.reshape(height, -1)
    lines = np.pad(rows, ((0, 0), (1, 0)))  # each line opens with its filter, 0 for none
    if not has_palette:  # filter 2: differences to the line above
        lines[1:, 1:] = rows[1:] - rows[:-1]
        lines[:, 0] = 2
    header = struct.pack(">IIBBBBB", width, height, 8, 3 if has_palette else 2, 0, 0, 0)
    palette = _chunk(b"PLTE", (packed[:, None] >> [16, 8, 0]).astype(np.uint8).tobytes()) if has_palette else b""
    data = _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + palette + data + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
