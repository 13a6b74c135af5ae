"""Pictures as observations: the sizes that they may have, their space, and what brings one to a size.

C environments draw and scale in C (puffer_pixels.h); those in Python take their bytes from here.
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
    """Height and width of the pictures that the keyword ``pixels`` asks for; None for no pictures.

    Raises:
        APIUsageError: It is no pair of ints from 1 to 4096.
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
    """The space of pictures of this height and width: uint8 ``(3, height, width)``."""
    return Box(0, 255, (3, *size), np.uint8)


def as_observation(picture: npt.NDArray[np.uint8], size: Size) -> npt.NDArray[np.uint8]:
    """``picture``, uint8 ``(height, width, 3)``, as an agent sees it: scaled by areas, uint8 ``(3, *size)``."""
    small = np.empty((*size, 3), np.uint8)
    scale_picture(picture, small)
    return np.ascontiguousarray(small.transpose(2, 0, 1))
