"""One task of the DeepMind Control Suite as a Gymnasium environment."""

import ctypes.util
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs
from packaging.requirements import Requirement

from pufferlib.emulation import DMEnvToGymnasium
from pufferlib.errors import BindingMissing

from .._shared.dm_env import FromDmEnv
from .._shared.opengl import cannot_draw
from .._shared.options import check_counts, check_render_mode, check_switches

__all__ = ["ControlTask", "NamedArraysTask", "PixelObservation", "drawing_without_a_window", "make_env"]

Picture = npt.NDArray[np.uint8]

_VARIABLE = "MUJOCO_GL"
_RENDER_PX = (240, 320)


def _drawing() -> str:
    """Return the rendering backend: the user's choice, else EGL or OSMesa if installed, else "disabled"."""
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            return os.environ.get(_VARIABLE, backend)
    return os.environ.get(_VARIABLE, "disabled")


@contextmanager
def drawing_without_a_window() -> Iterator[str]:
    """Set MUJOCO_GL while dm_control is imported. If it is unset, dm_control tries to open a window."""
    before = os.environ.get(_VARIABLE)
    backend = _drawing()
    os.environ[_VARIABLE] = backend
    try:
        yield backend
    finally:
        if before is None:
            del os.environ[_VARIABLE]


# dm_control chooses how to draw when it is imported. Without MUJOCO_GL it chooses windows.
_HAS_CHOSEN_WINDOWS = "dm_control" in sys.modules and _VARIABLE not in os.environ

with drawing_without_a_window() as BACKEND:
    from dm_control import suite


def make_env(
    name: str,
    *,
    flat: bool = True,
    time_limit: bool = True,
    pixels: bool = False,
    size: int = 84,
    render_mode: str | None = None,
    native: bool = True,
) -> gymnasium.Env[Any, Any]:
    """Make the task ``name``, for example "cartpole-balance".

    Args:
        name: Name of the domain and the task.
        flat: Whether observations are one float32 array, instead of the arrays of the task by name.
        time_limit: Whether to truncate episodes after 1,000 steps, as the task defines.
        pixels: Whether observations are images of the first camera.
        size: Height and width of these images in px.
        render_mode: None or "rgb_array".
        native: Whether batches may run in C. It changes nothing here.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        BindingMissing: Images are requested, and no library can draw them. Or mujoco is too old for dm_control.
    """
    where = f"dmcontrol/{name}"
    check_switches(where, flat=flat, time_limit=time_limit, pixels=pixels, native=native)
    check_counts(where, size=size)
    check_render_mode(where, render_mode)
    domain, _, task = name.partition("-")
    if BACKEND == "disabled" and (pixels or render_mode or name == "quadruped-escape"):
        raise BindingMissing(
            f"{where}: needs EGL or OSMesa to draw, and neither is installed; "
            "run: sudo apt-get install libegl1, or use the image tank, which has it"
        )
    endless = {} if time_limit else {"time_limit": float("inf")}
    kind = ControlTask if flat or pixels else NamedArraysTask
    try:
        loaded = suite.load(domain, task, task_kwargs={"random": 0, **endless})
    except AttributeError as error:
        _check_versions(where, error)
        raise
    env = kind(loaded, render_mode)
    if pixels or render_mode:
        try:
            env.picture(1, 1)
        except Exception as error:
            if _HAS_CHOSEN_WINDOWS:
                advice = "dm_control was imported before this environment; set MUJOCO_GL before that import"
                raise cannot_draw(where, "unset", error, advice) from error
            raise cannot_draw(where, BACKEND, error) from error
    return PixelObservation(env, size) if pixels else env


def _check_versions(where: str, cause: AttributeError) -> None:
    """Raise BindingMissing if dm_control, which reads fields of MuJoCo by name, requires another mujoco."""
    for text in importlib.metadata.requires("dm_control") or []:
        requirement, found = Requirement(text), mujoco.__version__
        if requirement.name == "mujoco" and found not in requirement.specifier:
            raise BindingMissing(
                f"{where}: dm_control {importlib.metadata.version('dm_control')} requires {requirement}, found mujoco "
                f"{found}: {cause}; run: puffer install dmcontrol"
            ) from cause


class Drawing:
    """Mixin that adds rendering to a task."""

    dm_env: Any

    def __init__(self, env: Any, render_mode: str | None) -> None:
        super().__init__(env)  # type: ignore[call-arg]  # calls the class that it is mixed into
        fps = round(1 / env.control_timestep())
        self.metadata = {"render_modes": [] if BACKEND == "disabled" else ["rgb_array"], "render_fps": fps}
        self.render_mode = render_mode

    def render(self) -> Picture | None:
        """Return an image of the first camera, uint8 ``(240, 320, 3)``, or None without a ``render_mode``."""
        return self.picture(*_RENDER_PX) if self.render_mode == "rgb_array" else None

    def picture(self, height: int, width: int, camera_id: int = 0) -> Picture:
        """Return an image of a camera, by default the first one, uint8 ``(height, width, 3)``."""
        picture: Picture = self.dm_env.physics.render(height, width, camera_id=camera_id)
        return picture


class ControlTask(Drawing, FromDmEnv):
    """A task with rendering, whose observation is one row of numbers."""


class NamedArraysTask(Drawing, DMEnvToGymnasium):
    """A task with rendering, whose observations are arrays by name."""


class PixelObservation(gymnasium.ObservationWrapper[Picture, Any, Any], RecordConstructorArgs):
    """Replaces observations by images, channels first."""

    def __init__(self, env: Any, size: int) -> None:
        RecordConstructorArgs.__init__(self, size=size)
        super().__init__(env)
        self._task = env
        self._size = int(size)
        self.observation_space = Box(0, 255, (3, self._size, self._size), np.uint8)

    def observation(self, observation: Any) -> Picture:
        """Return the current image."""
        return np.ascontiguousarray(self._task.picture(self._size, self._size).transpose(2, 0, 1))
