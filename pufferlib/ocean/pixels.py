"""Image observations: their sizes, their space, and scaling of images to an observation size.

C environments draw and scale in C (puffer_pixels.h). Environments in Python use this module.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError
from pufferlib.native._pictures import scale_picture

__all__ = ["as_observation", "checked_pixels", "pixel_space"]

MAX_PIXELS = 4096

Size = tuple[int, int]


def checked_pixels(where: str, pixels: Sequence[int] | None) -> Size | None:
    """Return the height and width given by the keyword ``pixels``, or None if images are off.

    Raises:
        APIUsageError: ``pixels`` is not a pair of ints from 1 to 4096.
    """
    if pixels is None:
        return None
    sizes: list[Any] = list(pixels) if isinstance(pixels, list | tuple | np.ndarray) else []
    is_int = [isinstance(size, int | np.integer) and not isinstance(size, bool) for size in sizes]
    if len(sizes) != 2 or not all(is_int) or not all(1 <= size <= MAX_PIXELS for size in sizes):
        raise APIUsageError(
            f"{where}: pixels must be a height and a width, two ints from 1 to {MAX_PIXELS}, got {pixels!r}; "
            "pixels=(84, 84) suits most networks"
        )
    return int(sizes[0]), int(sizes[1])


def pixel_space(size: Size) -> Box:
    """Return the observation space of images of this size: uint8 ``(3, height, width)``."""
    return Box(0, 255, (3, *size), np.uint8)


def as_observation(picture: npt.NDArray[np.uint8], size: Size) -> npt.NDArray[np.uint8]:
    """Scale an image to an observation by area averaging.

    Args:
        picture: Image, uint8 ``(height, width, 3)``.
        size: Height and width of the observation.

    Returns:
        Observation, uint8 ``(3, *size)``.
    """
    small = np.empty((*size, 3), np.uint8)
    scale_picture(picture, small)
    return np.ascontiguousarray(small.transpose(2, 0, 1))
