"""The picture that any environment draws."""

import functools
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
        _warn_once(f"{type(getattr(env, 'unwrapped', env)).__name__} draws no pictures: {error}")
        return None
    return frame if isinstance(frame, np.ndarray) and frame.ndim == 3 else None


@functools.cache
def _warn_once(text: str) -> None:
    """Warn as often as Python would, had ``catch_warnings`` not let it forget what it has shown."""
    warnings.warn(text, stacklevel=4)
