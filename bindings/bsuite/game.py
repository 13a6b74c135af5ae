"""One experiment of bsuite as a Gymnasium environment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bsuite import bsuite, sweep

from pufferlib.errors import APIUsageError

from .._dm_env import FromDmEnv

__all__ = ["make_game"]

_MNIST = Path("/tmp/mnist")  # written in bsuite
_MNIST_FILES = tuple(
    f"{part}-ubyte.gz" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)


def make_game(name: str) -> FromDmEnv:
    """The experiment ``name`` ("catch/0").

    Raises:
        APIUsageError: It needs data that are not here.
    """
    experiment = name.partition("/")[0]
    missing = [file for file in _MNIST_FILES if not (_MNIST / file).is_file()]
    if experiment.startswith("mnist") and missing:
        raise APIUsageError(
            f"bsuite/{name}: expected the files of MNIST in {_MNIST}, {', '.join(missing)} missing; download them "
            "yourself (https://storage.googleapis.com/cvdf-datasets/mnist/), or choose another experiment"
        )
    env = bsuite.load(experiment, sweep.SETTINGS[name])  # load_from_id would print
    return FromDmEnv(env, lambda seed: _reseed(env, seed))


def _reseed(env: Any, seed: int) -> None:
    """Give every layer (the experiment, and noise around it) its own stream of ``seed``."""
    for index, layer in enumerate(_layers(env)):
        if hasattr(layer, "_rng"):
            layer._rng = np.random.RandomState(np.random.MT19937([seed, index]))


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "_env", None)
