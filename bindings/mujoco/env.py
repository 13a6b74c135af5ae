"""MuJoCo's robots as Gymnasium makes them, leaving no file behind and drawing without a window."""

import ctypes
import logging
import os
import weakref
from typing import Any

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.utils import RecordConstructorArgs

from pufferlib.errors import APIUsageError

from .._shared.gymnasium import control_task, environment
from .._shared.opengl import cannot_draw

__all__ = ["OffscreenRender", "make_env"]

Env = gymnasium.Env[Any, Any]

#: The library of each way to draw, in the order in which they are tried.
LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8", "glfw": "libGL.so.1"}

_log = logging.getLogger("pufferlib.bindings.mujoco")


def _warn(message: str) -> None:
    """Take a warning that MuJoCo would else write into a file in the working folder."""
    if "is deprecated" not in message:  # that is about the files of Gymnasium's robots
        _log.warning("%s", message)


if mujoco.get_mju_user_warning() is None:
    mujoco.set_mju_user_warning(_warn)


def make_env(name: str, *, render_mode: str | None = None, **options: Any) -> Env:
    """The robot ``name``; ``options`` are those of ``control_task`` and of its class in Gymnasium.

    Raises:
        UnknownNameError: It has no such option.
        APIUsageError: A value is of the wrong type or out of its range.
        BindingMissing: Pictures are asked for, and OpenGL cannot draw any.
    """
    where = f"mujoco/{name}"
    env = control_task(where, name, render_mode=render_mode, **options)
    return env if render_mode is None else OffscreenRender(where, env)


class OffscreenRender(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Draws pictures without a window, beside other environments that do.

    Raises:
        BindingMissing: OpenGL does not start.
    """

    def __init__(self, where: str, env: Env) -> None:
        RecordConstructorArgs.__init__(self, where=where)
        super().__init__(env)
        backend = _backend(where)
        self._renderer: Any = env.unwrapped.mujoco_renderer  # type: ignore[attr-defined]  # only here has it one
        try:
            with environment(MUJOCO_GL=backend):
                self._viewer = self._renderer._get_viewer("rgb_array")
        except Exception as error:
            raise cannot_draw(where, backend, error) from error
        # An interpreter that ends with a viewer in it complains of what is gone already.
        self._finalizer = weakref.finalize(self, self._renderer.close)

    def render(self) -> npt.NDArray[np.uint8]:
        """A picture, uint8 ``(height, width, 3)``, by default ``(480, 480, 3)``."""
        self._viewer.make_context_current()
        return np.ascontiguousarray(self._renderer.render("rgb_array"))

    def close(self) -> None:
        """Close the environment, and give back what drawing took."""
        self._finalizer.detach()
        super().close()


def _backend(where: str) -> str:
    """Backend to draw with: MUJOCO_GL, else the first whose library is there."""
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen and chosen not in LIBRARIES:
        raise APIUsageError(f"{where}: the environment variable MUJOCO_GL must be one of {[*LIBRARIES]}, got {chosen}")
    choices = (chosen,) if chosen else ("egl", "osmesa")
    present = [backend for backend in choices if _is_there(LIBRARIES[backend])]
    backend = (present or choices)[0]
    ctypes.CDLL(LIBRARIES[backend])  # raises what names the library, if none is there
    return backend


def _is_there(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
