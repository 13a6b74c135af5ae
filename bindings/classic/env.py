"""Gymnasium's classic control problems, with checked options."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from .._shared.gymnasium import control_task, environment, quiet_pygame

__all__ = ["HeadlessRender", "Positions", "make_env"]

Env = gymnasium.Env[Any, Any]

# Indices of the observation that are no velocities.
POSITIONS = {"CartPole": (0, 2), "MountainCarContinuous": (0,), "Pendulum": (0, 1)}


def make_env(name: str, *, render_mode: str | None = None, **options: Any) -> Env:
    """Make the problem ``name``. ``options`` are arguments of ``control_task`` and of its Gymnasium class.

    Raises:
        UnknownKeywordError: The problem has no such option.
        APIUsageError: A value has the wrong type or is out of range.
    """
    stem, hides_velocities, version = name.partition("NoVel")
    env = control_task(f"classic/{name}", stem + version, render_mode=render_mode, **options)
    env = Positions(env, POSITIONS[stem]) if hides_velocities else env
    return env if render_mode is None else HeadlessRender(env)


class Positions(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Selects the positions of the observation, so that an agent needs a memory to know the velocities.

    Args:
        env: Environment with a Box of shape ``(n,)``.
        indices: Indices of the positions.
    """

    def __init__(self, env: Env, indices: tuple[int, ...]) -> None:
        RecordConstructorArgs.__init__(self, indices=indices)
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        self._indices = [*indices]
        self.observation_space = Box(space.low[self._indices], space.high[self._indices], dtype=np.float32)

    def observation(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the positions."""
        return observation[self._indices]


class HeadlessRender(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Renders without a display, and does not interfere with other users of pygame.

    Gymnasium initializes all of pygame for its first image, which looks for a display and complains if there is none.
    In ``close`` it shuts down all of pygame, including windows of others.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        with quiet_pygame():
            import pygame
        self._display = pygame.display

    def render(self) -> Any:
        """Return an image, uint8 ``(height, width, 3)``."""
        if self._display.get_init():
            return self.env.render()
        with environment(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy"):
            picture = self.env.render()
        self._display.quit()
        return picture

    def close(self) -> None:
        """Close the environment."""
        self.env.unwrapped.screen = None  # type: ignore[attr-defined]  # otherwise it would shut down pygame
        super().close()
