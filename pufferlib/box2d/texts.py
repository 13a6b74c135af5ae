"""Rewards that CarRacing shows, rendered by pygame."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.box2d._box2d import TEXT_SHAPE
from pufferlib.errors import APIUsageError
from pufferlib.registry.games import UnlikeOriginalError

__all__ = ["MAX_STEPS", "reward_texts"]

MAX_STEPS = 9990  # of an episode. Later, a reward could have five characters
TEXT = np.dtype([("width", np.int32), ("greys", np.uint8, TEXT_SHAPE)])  # PictureText


@functools.cache
def reward_texts(max_steps: int) -> npt.NDArray[np.void]:
    """Return the texts of all rewards of an episode, 0 to 1000 first, then the negative ones from -0.

    Args:
        max_steps: Maximum number of steps of an episode, each of which costs 0.1.

    Raises:
        APIUsageError: ``max_steps`` is not 1 to ``MAX_STEPS``.
        UnlikeOriginalError: A text is larger than ``PictureText``.
    """
    if not 0 < max_steps <= MAX_STEPS:
        raise APIUsageError(
            f"CarRacing: max_episode_steps must be 1 to {MAX_STEPS} in C, got {max_steps}; "
            "make the Python environments with native=False"
        )
    import pygame

    pygame.font.init()
    font = pygame.font.Font(pygame.font.get_default_font(), 42)
    values = [*range(1001), *(-float(value) for value in range(max_steps // 10 + 2))]
    texts = np.zeros(len(values), TEXT)
    for text, value in zip(texts, values, strict=True):
        _render(font, f"{value:04.0f}", text)
    return texts


def _render(font: Any, characters: str, text: Any) -> None:
    import pygame

    greys = pygame.surfarray.array3d(font.render(characters, True, (255, 255, 255), (0, 0, 0)))[:, :, 0].T
    height, width = greys.shape
    if height != TEXT_SHAPE[0] or width > TEXT_SHAPE[1]:
        raise UnlikeOriginalError(f"expected text of {TEXT_SHAPE} pixels from pygame, found {greys.shape}")
    text["width"] = width
    text["greys"][:, :width] = greys
