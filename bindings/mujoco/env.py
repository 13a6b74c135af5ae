"""Gymnasium's MuJoCo robots, without log files and with off-screen rendering."""

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
from pufferlib.robots.check import check_model

from .._shared.gymnasium import control_task, environment
from .._shared.opengl import cannot_draw
from .._shared.options import check_switches

__all__ = ["OffscreenRender", "make_env"]

Env = gymnasium.Env[Any, Any]

#: Library of each rendering backend, in the order in which they are tried.
LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8", "glfw": "libGL.so.1"}

_log = logging.getLogger("pufferlib.bindings.mujoco")


def _warn(message: str) -> None:
    """Log a warning that MuJoCo would otherwise write to a file in the working folder."""
    if "is deprecated" not in message:  # such warnings concern the files of Gymnasium's robots
        _log.warning("%s", message)


if mujoco.get_mju_user_warning() is None:
    mujoco.set_mju_user_warning(_warn)


def make_env(name: str, *, render_mode: str | None = None, native: bool = True, **options: Any) -> Env:
    """Make the robot ``name``.

    Args:
        name: Id of the robot.
        render_mode: None or "rgb_array".
        native: Whether batches may run in C. It changes nothing here.
        **options: Arguments of ``control_task`` and of the robot's Gymnasium class.

    Raises:
        UnknownKeywordError: The robot has no such option.
        APIUsageError: A value has the wrong type or is out of range.
        BindingMissing: Images are requested, and OpenGL cannot draw them.
    """
    where = f"mujoco/{name}"
    check_switches(where, native=native)
    if isinstance(options.get("xml_file"), os.PathLike):
        options["xml_file"] = os.fspath(options["xml_file"])  # Gymnasium accepts no Path
    env = control_task(where, name, render_mode=render_mode, **options)
    if "xml_file" in options:
        check_model(where, env, options["xml_file"])
    return env if render_mode is None else OffscreenRender(where, env)


class OffscreenRender(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Renders without a window, alongside other environments that render.

    Raises:
        BindingMissing: OpenGL cannot be initialized.
    """

    def __init__(self, where: str, env: Env) -> None:
        RecordConstructorArgs.__init__(self, where=where)
        super().__init__(env)
        backend = _backend(where)
        self._renderer: Any = env.unwrapped.mujoco_renderer  # type: ignore[attr-defined]  # only set with this render mode
        try:
            with environment(MUJOCO_GL=backend):
                self._viewer = self._renderer._get_viewer("rgb_array")
        except Exception as error:
            raise cannot_draw(where, backend, error) from error
        # A viewer that still exists at interpreter exit raises errors about objects that are already destroyed.
        self._finalizer = weakref.finalize(self, _release, self._renderer)

    def render(self) -> npt.NDArray[np.uint8]:
        """Return an image, uint8 ``(height, width, 3)``, by default ``(480, 480, 3)``."""
        self._viewer.make_context_current()
        return np.ascontiguousarray(self._renderer.render("rgb_array"))

    def close(self) -> None:
        """Close the environment, and release its rendering resources."""
        self._finalizer()
        super().close()


def _release(renderer: Any) -> None:
    """Close the viewer of a renderer, with the objects that MuJoCo has in its OpenGL context.

    They would otherwise be deleted later, by their numbers, in the context of another environment, whose images would
    then be black.
    """
    viewer = renderer._get_viewer("rgb_array")
    viewer.make_context_current()
    viewer.con.free()
    renderer.close()


def _backend(where: str) -> str:
    """Return the rendering backend: MUJOCO_GL, else the first one whose library is installed."""
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen and chosen not in LIBRARIES:
        raise APIUsageError(f"{where}: the environment variable MUJOCO_GL must be one of {[*LIBRARIES]}, got {chosen}")
    choices = (chosen,) if chosen else ("egl", "osmesa")
    present = [backend for backend in choices if _can_load(LIBRARIES[backend])]
    backend = (present or choices)[0]
    ctypes.CDLL(LIBRARIES[backend])  # if the library is missing, raises an error with its name
    return backend


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
