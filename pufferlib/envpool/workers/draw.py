"""Pictures of environments, in their workers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError

__all__ = ["draw_env", "drawn", "users_env"]

Picture = npt.NDArray[np.uint8]


def users_env(env: Any) -> Any:
    """The environment behind the emulation, or a native one itself."""
    return env.env if env.emulated else env


def draw_env(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Draw an environment by its own ``render``, with the one camera and in the one size that it has.

    Raises:
        APIUsageError: It has none.
    """
    try:
        return users_env(env).render()
    except NotImplementedError as error:
        raise APIUsageError(
            f"envpool: {users_env(env)} must have a method render() to be drawn, got none; leave out render_mode and "
            "from_pixels, or write one"
        ) from error


def drawn(env: Any, picture: Any) -> Picture:
    """Check that a picture is one.

    Raises:
        APIUsageError: It is not uint8 ``(height, width, 3)``.
    """
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise APIUsageError(
            f"envpool.render: {users_env(env)} must return a picture, uint8 (height, width, 3), got "
            f"{picture if array.dtype == object else f'{array.dtype} {array.shape}'}; let it draw with render_mode "
            '"rgb_array"'
        )
    return np.ascontiguousarray(array)
