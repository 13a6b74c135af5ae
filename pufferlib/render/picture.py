"""The picture that any environment draws."""

import functools
import warnings
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from pufferlib.render.video import Frame

__all__ = ["as_picture", "picture_of"]


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
    return as_picture(frame)


def as_picture(frame: Any) -> Frame | None:
    """Convert what an environment's ``render`` returned to uint8 ``(height, width, 3)``; None if it is no picture.

    Takes grey, RGB and RGBA pictures, also with the channels first, of any numbers: real numbers up to 1 are scaled
    by 255. Of a list of pictures it takes the last one.
    """
    if isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3:
        return frame
    if isinstance(frame, list | tuple) and frame and np.ndim(frame[-1]) >= 2 and _is_picture(frame[-1]):
        frame = frame[-1]
    array = np.asarray(frame) if isinstance(frame, list | tuple | np.ndarray) else np.empty(0)
    if array.dtype.kind not in "buif" or array.size == 0:
        return None
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3:
        return None
    if array.shape[2] not in _CHANNELS and array.shape[0] in _CHANNELS:
        array = array.transpose(1, 2, 0)
    if array.shape[2] not in _CHANNELS:
        return None
    return np.ascontiguousarray(np.broadcast_to(_bytes(array)[..., :3], (*array.shape[:2], 3)))


_CHANNELS = (1, 3, 4)


def _is_picture(value: Any) -> bool:
    """True for a whole picture, as opposed to a row of one."""
    array = np.asarray(value)
    return array.ndim == 3 or (array.ndim == 2 and array.shape[1] not in _CHANNELS)


def _bytes(array: npt.NDArray[Any]) -> Frame:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":
        array = np.nan_to_num(array)
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and array.max() <= 1):
        array = array * 255.0
    found: Frame = np.clip(np.rint(array), 0, 255).astype(np.uint8)
    return found


@functools.cache
def _warn_once(text: str) -> None:
    """Warn as often as Python would, had ``catch_warnings`` not let it forget what it has shown."""
    warnings.warn(text, stacklevel=4)
