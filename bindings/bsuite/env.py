"""One experiment of bsuite as a Gymnasium environment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from bsuite import bsuite, sweep

from pufferlib.errors import APIUsageError

from .._shared.dm_env import FromDmEnv
from .._shared.options import check_render_mode

__all__ = ["Experiment", "make_env"]

Observation = npt.NDArray[np.float32]
Info = dict[str, Any]

_CELL_PX = 16  # size of an array element in the image
MNIST = Path("/tmp/mnist")  # hard-coded in bsuite
_MNIST_FILES = tuple(
    f"{part}-ubyte.gz" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)


def make_env(name: str, *, render_mode: str | None = None) -> "Experiment":
    """Make the experiment ``name``, for example "catch/0".

    Raises:
        APIUsageError: The experiment needs missing data, or ``render_mode`` does not exist.
    """
    check_render_mode(f"bsuite/{name}", render_mode)
    experiment = name.partition("/")[0]
    missing = [file for file in _MNIST_FILES if not (MNIST / file).is_file()]
    if experiment.startswith("mnist") and missing:
        raise APIUsageError(
            f"bsuite/{name}: expected the MNIST files in {MNIST}, but {', '.join(missing)} are missing; download them "
            "yourself (https://storage.googleapis.com/cvdf-datasets/mnist/), or choose another experiment"
        )
    env = bsuite.load(experiment, sweep.SETTINGS[name])  # load_from_id would print
    return Experiment(env, render_mode)


class Experiment(FromDmEnv):
    """An experiment that renders its array as an image."""

    def __init__(self, env: Any, render_mode: str | None) -> None:
        super().__init__(env, _reseed)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start an episode."""
        self._seen, info = super().reset(seed=seed, options=options)
        return self._seen, info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Run one step."""
        self._seen, reward, terminated, truncated, info = super().step(action)
        return self._seen, reward, terminated, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return the array as a uint8 image, or None without a ``render_mode``.

        Values from -1 or less (black) to 1 or more (white) become gray levels.
        """
        if self.render_mode is None:
            return None
        shades = (127.5 * (np.atleast_2d(self._seen).clip(-1, 1) + 1)).astype(np.uint8)
        large = shades.repeat(_CELL_PX, axis=0).repeat(_CELL_PX, axis=1)
        return np.stack([large] * 3, -1)


def _reseed(env: Any, seed: int) -> None:
    """Give every layer (the experiment, and noise around it) its own random stream derived from ``seed``."""
    for index, layer in enumerate(_layers(env)):
        if hasattr(layer, "_rng"):
            layer._rng = np.random.RandomState(np.random.MT19937([seed, index]))


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "_env", None)
