"""PettingZoo's Butterfly games as parallel environments, with small images and without windows."""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from pettingzoo import AECEnv
from pettingzoo.butterfly.cooperative_pong import cooperative_pong as _pong
from pettingzoo.butterfly.knights_archers_zombies import knights_archers_zombies as _zombies
from pettingzoo.butterfly.pistonball import pistonball as _pistonball
from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import aec_to_parallel

from pufferlib.spaces import Space

from .._shared.options import check_counts, check_render_mode

__all__ = [
    "RenderOnRequest",
    "SmallPictures",
    "cooperative_pong",
    "knights_archers_zombies",
    "make_env",
    "pistonball",
]

PerAgent = dict[Any, Any]

# Classes that define the options of each game.
cooperative_pong = _pong.CooperativePong
knights_archers_zombies = _zombies.raw_env
pistonball = _pistonball.raw_env

_GAMES: dict[str, type[AECEnv[Any, Any, Any]]] = {
    "cooperative_pong_v6": _pong.raw_env,
    "knights_archers_zombies_v11": _zombies.raw_env,
    "pistonball_v6": _pistonball.raw_env,
}


def make_env(
    name: str, *, size: int | None = 84, stack: int = 4, render_mode: str | None = None, **options: Any
) -> BaseParallelWrapper[Any, Any, Any]:
    """Make the game ``name``. ``options`` are the game's own.

    Raises:
        APIUsageError: ``size``, ``stack`` or ``render_mode`` has the wrong type or is out of range.
    """
    where = f"butterfly/{name}"
    check_counts(where, stack=stack, size=1 if size is None else size)
    check_render_mode(where, render_mode)
    # Always use this mode, because otherwise cooperative_pong does not draw its agents' observations.
    env: Any = RenderOnRequest(aec_to_parallel(_GAMES[name](render_mode="rgb_array", **options)), render_mode)
    is_picture = len(env.observation_space(env.possible_agents[0]).shape) == 3
    return SmallPictures(env, size, stack) if is_picture and size is not None else env


class RenderOnRequest(BaseParallelWrapper):  # type: ignore[misc]  # pettingzoo has no types
    """Renders only with a ``render_mode``, and keeps pygame running when it is closed.

    Args:
        env: PettingZoo environment.
        render_mode: None or "rgb_array".
    """

    def __init__(self, env: Any, render_mode: str | None) -> None:
        super().__init__(env)
        self.metadata = {**env.metadata, "render_modes": ["rgb_array"]}
        self.render_mode = render_mode
        #: Timer for the next zombie, which the game does not reset.
        self._clock = getattr(env.unwrapped, "zombie_spawn_interval", None)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game that does not depend on previous ones."""
        if self._clock is not None:
            self._clock.reset()
        return self.env.reset(seed=seed, options=options)  # type: ignore[no-any-return]

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return an image, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        picture: npt.NDArray[np.uint8] | None = self.env.render() if self.render_mode == "rgb_array" else None
        return picture

    def close(self) -> None:
        """Do nothing. The game has no window, and ``pygame.quit`` would close the windows of others."""


class SmallPictures(BaseParallelWrapper):  # type: ignore[misc]
    """Stacks the last images of each agent, small and in grayscale.

    Args:
        env: Environment whose observations are uint8 images ``(height, width, 3)``.
        size: Height and width of the small images in pixels.
        stack: Number of images in an observation, oldest first.
    """

    def __init__(self, env: Any, size: int, stack: int) -> None:
        super().__init__(env)
        self._space = Box(0, 255, (stack, size, size), np.uint8)
        self._frames = {agent: np.zeros(self._space.shape, np.uint8) for agent in self.possible_agents}

    def observation_space(self, agent: Any) -> Space:
        """Return the observation space of every agent."""
        return self._space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a game. The next step overwrites the observations."""
        observations, infos = self.env.reset(seed=seed, options=options)
        for agent, picture in observations.items():
            self._frames[agent][:] = self._small(picture)
        return {agent: self._frames[agent] for agent in observations}, infos

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Step with every agent. The next step overwrites the observations."""
        observations, *rest = self.env.step(actions)
        rewards, terminations, truncations, infos = rest
        for agent, picture in observations.items():
            frames = self._frames[agent]
            frames[:-1] = frames[1:]
            frames[-1] = self._small(picture)
        shown = {agent: self._frames[agent] for agent in observations}
        return shown, rewards, terminations, truncations, infos

    def _small(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        grey = cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_RGB2GRAY)
        small = cv2.resize(grey, self._space.shape[:0:-1], interpolation=cv2.INTER_AREA)
        return small.astype(np.uint8, copy=False)
