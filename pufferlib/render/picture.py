"""Conversion of the output of ``render()`` to an RGB image or text, for any environment."""

import functools
import io
import warnings
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from pufferlib.render.video import Frame

__all__ = ["as_picture", "picture_of", "picture_or_text_of"]


def picture_of(env: Any, **options: Any) -> Frame | None:
    """Render ``env`` to uint8 ``(height, width, 3)``, or return None if it returns no image or lacks a package.

    Args:
        env: Environment of any kind.
        **options: Keyword arguments for ``render()``.
    """
    return as_picture(_rendered(env, **options))


def picture_or_text_of(env: Any, **options: Any) -> Frame | str | None:
    """Render ``env`` like ``picture_of``. Text, as ``render_mode="ansi"`` returns it, is returned unchanged."""
    output = _rendered(env, **options)
    if isinstance(output, io.StringIO):  # returned by environments written for Gym
        output = output.getvalue()
    return output if isinstance(output, str) else as_picture(output)


def _rendered(env: Any, **options: Any) -> Any:
    """Return the result of ``render()``, or None if ``env`` cannot be rendered."""
    if not hasattr(env, "render"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*You are calling render method without")  # some still draw
            return env.render(**options)
    except NotImplementedError:
        return None
    except gymnasium.error.DependencyNotInstalled as error:
        _warn_once(f"{type(getattr(env, 'unwrapped', env)).__name__} cannot be rendered: {error}")
        return None


def as_picture(frame: Any) -> Frame | None:
    """Convert the result of ``render()`` to uint8 ``(height, width, 3)``, or return None if it is not an image.

    Grey, RGB and RGBA images of any numeric dtype are accepted, with channels last or first. Floats up to 1 are scaled
    by 255. For a list of images, the last one is used.
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
    """Return True if ``value`` is a whole image, and False if it is one row of an image."""
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
    """Warn once per text. ``catch_warnings`` resets Python's own record of the warnings already shown."""
    warnings.warn(text, stacklevel=5)
