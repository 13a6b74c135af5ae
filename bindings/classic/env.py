"""Classic control as Gymnasium makes it, with the options of each problem checked."""

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from .._shared.gymnasium import control_task, environment, quiet_pygame

__all__ = ["HeadlessRender", "make_env"]

Env = gymnasium.Env[Any, Any]


def make_env(name: str, *, render_mode: str | None = None, **options: Any) -> Env:
    """The problem ``name``; ``options`` are those of ``control_task`` and of its class in Gymnasium.

    Raises:
        UnknownNameError: It has no such option.
        APIUsageError: A value is of the wrong type or out of its range.
    """
    env = control_task(f"classic/{name}", name, render_mode=render_mode, **options)
    return env if render_mode is None else HeadlessRender(env)


class HeadlessRender(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Draws without looking for a screen, and leaves pygame to others who use it.

    Gymnasium starts all of pygame for a first picture, which looks for a screen and complains where
    there is none, and stops all of it, with everybody's windows, in ``close``.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        with quiet_pygame():
            import pygame
        self._display = pygame.display

    def render(self) -> Any:
        """A picture, uint8 ``(height, width, 3)``."""
        if self._display.get_init():
            return self.env.render()
        with environment(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy"):
            picture = self.env.render()
        self._display.quit()
        return picture

    def close(self) -> None:
        """Close the environment."""
        self.env.unwrapped.screen = None  # type: ignore[attr-defined]  # or it would stop pygame
        super().close()
