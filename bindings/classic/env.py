"""Gymnasium's classic control problems, with checked options."""

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from .._shared.gymnasium import control_task, environment, quiet_pygame

__all__ = ["HeadlessRender", "make_env"]

Env = gymnasium.Env[Any, Any]


def make_env(name: str, *, render_mode: str | None = None, **options: Any) -> Env:
    """Make the problem ``name``. ``options`` are arguments of ``control_task`` and of its Gymnasium class.

    Raises:
        UnknownNameError: The problem has no such option.
        APIUsageError: A value has the wrong type or is out of range.
    """
    env = control_task(f"classic/{name}", name, render_mode=render_mode, **options)
    return env if render_mode is None else HeadlessRender(env)


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
