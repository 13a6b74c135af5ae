"""The picture that any environment draws."""

import warnings
from typing import Any

import gymnasium
import numpy as np

from pufferlib.render.video import Frame

__all__ = ["picture_of"]


def picture_of(env: Any, **options: Any) -> Frame | None:
    """Picture of ``env``, uint8 ``(height, width, 3)``; None from one that draws none, or lacks what it draws with.

    Args:
        env: Any environment.
        **options: For its ``render``.
    """
    if not hasattr(env, "render"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*You are calling render method without")  # some draw all the same
            frame = env.render(**options)
    except NotImplementedError:
        return None
    except gymnasium.error.DependencyNotInstalled as error:
        warnings.warn(f"{env} draws no pictures: {error}", stacklevel=2)
        return None
    return frame if isinstance(frame, np.ndarray) and frame.ndim == 3 else None
