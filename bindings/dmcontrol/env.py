"""One task of the DeepMind Control Suite as a Gymnasium environment."""

import ctypes.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from pufferlib.errors import BindingMissing

from .._shared.dm_env import FromDmEnv
from .._shared.opengl import cannot_draw
from .._shared.options import check_counts, check_render_mode, check_switches

__all__ = ["ControlTask", "PixelObservation", "drawing_without_a_window", "make_env"]

Picture = npt.NDArray[np.uint8]

_VARIABLE = "MUJOCO_GL"
_RENDER_PX = (240, 320)


def _drawing() -> str:
    """Backend that draws: the user's choice, else EGL or OSMesa if its library is there, else none."""
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            return os.environ.get(_VARIABLE, backend)
    return os.environ.get(_VARIABLE, "disabled")


@contextmanager
def drawing_without_a_window() -> Iterator[str]:
    """dm_control looks at the variable once, when it is imported; unset, it tries to open a window."""
    before = os.environ.get(_VARIABLE)
    backend = _drawing()
    os.environ[_VARIABLE] = backend
    try:
        yield backend
    finally:
        if before is None:
            del os.environ[_VARIABLE]


with drawing_without_a_window() as BACKEND:
    from dm_control import suite


def make_env(
    name: str, *, pixels: bool = False, size: int = 84, render_mode: str | None = None
) -> gymnasium.Env[Any, Any]:
    """The task ``name`` ("cartpole-balance").

    Raises:
        APIUsageError: An option is of the wrong type or out of its range.
        BindingMissing: Pictures are asked for and nothing can draw them.
    """
    where = f"dmcontrol/{name}"
    check_switches(where, pixels=pixels)
    check_counts(where, size=size)
    check_render_mode(where, render_mode)
    domain, _, task = name.partition("-")
    if BACKEND == "disabled" and (pixels or render_mode or name == "quadruped-escape"):
        raise BindingMissing(
            f"{where}: needs EGL or OSMesa to draw, and neither is here; "
            "run: sudo apt-get install libegl1, or use the image tank, which has it"
        )
    env = ControlTask(suite.load(domain, task, task_kwargs={"random": 0}), render_mode)
    if pixels or render_mode:
        try:
            env.picture(1, 1)
        except Exception as error:
            raise cannot_draw(where, BACKEND, error) from error
    return PixelObservation(env, size) if pixels else env


class ControlTask(FromDmEnv):
    """A task that can draw itself, seen as one row of numbers."""

    def __init__(self, env: Any, render_mode: str | None) -> None:
        super().__init__(env)
        fps = round(1 / env.control_timestep())
        self.metadata = {"render_modes": [] if BACKEND == "disabled" else ["rgb_array"], "render_fps": fps}
        self.render_mode = render_mode

    def render(self) -> Picture | None:
        """The picture of the first camera, uint8 ``(240, 320, 3)``; None without a ``render_mode``."""
        return self.picture(*_RENDER_PX) if self.render_mode == "rgb_array" else None

    def picture(self, height: int, width: int) -> Picture:
        """Picture of the first camera, uint8 ``(height, width, 3)``."""
        picture: Picture = self.dm_env.physics.render(height, width, camera_id=0)
        return picture


class PixelObservation(gymnasium.ObservationWrapper[Picture, Any, Any], RecordConstructorArgs):
    """Shows the picture instead of the numbers, channels first."""

    def __init__(self, env: ControlTask, size: int) -> None:
        RecordConstructorArgs.__init__(self, size=size)
        super().__init__(env)
        self._task = env
        self._size = int(size)
        self.observation_space = Box(0, 255, (3, self._size, self._size), np.uint8)

    def observation(self, observation: Any) -> Picture:
        """The picture of now."""
        return np.ascontiguousarray(self._task.picture(self._size, self._size).transpose(2, 0, 1))
