"""Two agents that have to do different things, as a PettingZoo environment.

Observation: ``Box(0, 1, (1,), float32)``: 0 for the agent ``1``, 1 for the agent ``2``. With ``pixels`` it is the
image that ``render`` draws for the agent, scaled to that size.

Action: ``Discrete(2)``.

Reward: 1 for agent 1 if it plays 0 and for agent 2 if it plays 1, else 0. ``score`` and ``perf``
equal the reward.

Terminal: after every step, for both.

Source: PufferLib's multiagent. There the agents never leave, so every second step only resets.
`multiagent` is the C version.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from pufferlib.buffers import Array
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.ocean.pixels import as_observation, checked_pixels, pixel_space
from pufferlib.render.view import RENDER_MODES, View

__all__ = ["PyMultiagent", "make"]

PerAgent = dict[int, Any]


class PyMultiagent(ParallelEnv[int, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """The two-agent PettingZoo environment. See the module's docstring for its rules.

    Args:
        render_mode: Output of ``render``. None or "rgb_array": return an image. "ansi": return text for a terminal.
            "human": show every reset and step in a window.
        pixels: Height and width of the images that agents observe instead of their number, as uint8
            ``(3, height, width)``. Each agent gets the image drawn for it. Independent of ``render_mode``.

    Raises:
        APIUsageError: ``pixels`` is not a valid pair of ints.
        UnknownNameError: ``render_mode`` does not exist.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "pymultiagent",
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "is_parallelizable": True,
    }

    def __init__(self, render_mode: str | None = None, pixels: Sequence[int] | None = None) -> None:
        self.render_mode = render_mode
        self._size = checked_pixels("PyMultiagent", pixels)
        self._view = View("PyMultiagent", render_mode, self.metadata["render_fps"])
        self.possible_agents = [1, 2]
        self.agents: list[int] = []
        self._spaces = pixel_space(self._size) if self._size else Box(0, 1, (1,), np.float32), Discrete(2)
        self._correct: dict[int, bool] = {}  # in the last step

    def observation_space(self, agent: int) -> Box:
        """Return the observation space, which is the same for both agents."""
        return self._spaces[0]

    def action_space(self, agent: int) -> Discrete:
        """Return the action space, which is the same for both agents."""
        return self._spaces[1]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a new episode with both agents."""
        self.agents = list(self.possible_agents)
        if seed is not None:
            self._correct = {}  # so that a seed always gives the same images
        if self._view.is_live:
            self.render()
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Score the actions and end the episode."""
        everyone = self.agents
        self._correct = {agent: bool(actions[agent] == agent - 1) for agent in everyone}
        if self._view.is_live:
            self._view.wait()
            self.render()
        scores = {agent: float(correct) for agent, correct in self._correct.items()}
        infos = {
            agent: {"score": score, "perf": score, "episode_return": score, "episode_length": 1}
            for agent, score in scores.items()
        }
        self.agents = []
        terminated, truncated = dict.fromkeys(everyone, True), dict.fromkeys(everyone, False)
        return self._observations(), scores, terminated, truncated, infos

    def render(self, agent: int | None = None) -> npt.NDArray[np.uint8] | str | None:
        """Render the last actions as an image ``(120, 200, 3)``, output according to ``render_mode``.

        A full square is action 1, a ring is action 0. The border is green if the agent chose the right action in the
        last step, and red otherwise. A yellow line marks ``agent``, if given.
        """
        return self._view.show(self._draw(agent))

    def close(self) -> None:
        """Close the window, if there is one."""
        self._view.close()

    def _draw(self, viewer: int | None) -> npt.NDArray[np.uint8]:
        picture = np.full((120, 200, 3), (6, 24, 32), np.uint8)
        for agent, colour in zip(self.possible_agents, ((0, 187, 187), (232, 140, 48)), strict=True):
            left = 20 + 90 * (agent - 1)
            if agent in self._correct:
                picture[20:100, left : left + 70] = (83, 166, 83) if self._correct[agent] else (214, 69, 69)
            picture[26:94, left + 6 : left + 64] = (20, 48, 60)
            picture[36:84, left + 16 : left + 54] = colour
            if agent == 1:
                picture[46:74, left + 26 : left + 44] = (20, 48, 60)
            if agent == viewer:
                picture[6:14, left : left + 70] = (232, 212, 77)
        return picture

    def _observations(self) -> PerAgent:
        if self._size:
            return {agent: as_observation(self._draw(agent), self._size) for agent in self.possible_agents}
        return {agent: np.array([agent - 1], np.float32) for agent in self.possible_agents}


def make(
    buf: Mapping[str, Array] | None = None,
    seed: int = 0,
    render_mode: str | None = None,
    pixels: Sequence[int] | None = None,
) -> PettingZooPufferEnv:
    """Return the environment with flat spaces and a fixed row for each agent."""
    return PettingZooPufferEnv(env=PyMultiagent(render_mode, pixels), buf=buf, seed=seed)
