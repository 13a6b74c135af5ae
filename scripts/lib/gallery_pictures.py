"""Images of environments in the middle of an episode, as small PNG files."""

import io
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

import pufferlib
from pufferlib import ocean, registry
from pufferlib.errors import PufferError
from pufferlib.native._pictures import scale_picture
from pufferlib.render.terminal import fitting

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"

Picture = npt.NDArray[np.uint8]

# Rules from observations to actions, for environments where random actions show little.
RULES: dict[str, Callable[[Any], Any]] = {
    "breakout": lambda seen: 1 + (seen[:, 2] > seen[:, 0] + 0.03),  # the paddle follows the ball
    "pong": lambda seen: np.where(np.abs(seen[:, 3] - seen[:, 1]) < 0.03, 0, 1 + (seen[:, 3] < seen[:, 1])),
}

# Keyword arguments of environments whose default shows little.
KEYWORDS = {"minigrid": {"level": 64}}  # ObstructedMaze-Full

LONGEST_SIDE = {"ocean": 640, "bindings": 320}  # pixels; larger frames are scaled down
STEPS = 600  # steps per environment
LOOKS = 40  # frames rendered in the second half of the steps; one of them becomes the image


def path_of(name: str) -> Path:
    """Return the path of the image of an Ocean environment."""
    return PICTURES / "ocean" / f"{name}.png"


def path_of_binding(name: str) -> Path:
    """Return the path of the image of a binding, which can have the name of an Ocean environment."""
    return PICTURES / "bindings" / f"{name}.png"


def draw(path: Path) -> str:
    """Draw the image at ``path`` and return a line for the log.

    The existing image is kept if the environment is not installed.
    """
    name = path.stem
    if path == path_of_binding(name):
        name = f"{name}/{registry.binding_facts()[name].example}"
    try:
        frames = _frames(name)
    except PufferError as error:
        return f"{name}: not drawn: {error}"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Among the frames from later in an episode, the largest file shows the most.
    middle = statistics.median(age for age, _ in frames)
    longest = LONGEST_SIDE[path.parent.name]
    best = max((to_png(_shrunk(frame, longest)) for age, frame in frames if age >= middle), key=len)
    path.write_bytes(best)
    return f"{path.relative_to(ROOT)}: {len(best):,} bytes"


def _frames(name: str) -> list[tuple[int, Picture]]:
    """Run an environment and return a few frames, each with the age of its episode in steps."""
    keywords: dict[str, Any] = {"num_envs": 1, **KEYWORDS.get(name, {})} if name in ocean.names() else {}
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
    return np.minimum(small.astype(np.uint16) + 4, 255).astype(np.uint8) & 0xF8  # fewer colors make smaller files


def to_png(picture: Picture) -> bytes:
    """Encode an image, uint8 ``(height, width, 3)``, as PNG, with a palette if 256 colors are enough."""
    image = Image.fromarray(picture)
    if image.getcolors(256):
        image = image.quantize(256, Image.Quantize.MEDIANCUT)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
