"""Squared in Python, as in the PufferLib paper. Its steps are so short that the cost of layers around it dominates."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

Map = npt.NDArray[np.float32]
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))


class Squared(gymnasium.Env[Map, np.int64]):
    """Environment in which an agent walks from the center of a square to targets on its border.

    The agent returns to the center whenever it reaches the border.

    * Observation: float32 ``(7, 7)`` with -1 for the agent, 1 for a target, and 0 elsewhere.
    * Actions: Discrete(8), the eight directions.
    * Reward: 1 minus the distance to the nearest target that was not hit, divided by 3.
    * Truncation: after 36 steps, 3 for each of the 12 targets.
    """

    observation_space = Box(-1, 1, (7, 7), np.float32)
    action_space = Discrete(8)

    def __init__(self) -> None:
        self._border = [(x, y) for x in range(7) for y in range(7) if max(abs(x - 3), abs(y - 3)) == 3]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Map, dict[str, Any]]:
        """Place the targets on different cells, and the agent in the center."""
        super().reset(seed=seed)
        chosen = self.np_random.choice(len(self._border), 12, replace=False)
        self._targets = [self._border[index] for index in chosen]
        self._map = np.zeros((7, 7), np.float32)
        for place in self._targets:
            self._map[place] = 1
        self._agent = (3, 3)
        self._map[self._agent] = -1
        self._steps = 0
        return self._map, {}

    def step(self, action: Any) -> tuple[Map, float, bool, bool, dict[str, Any]]:
        """Move the agent."""
        x, y = self._agent
        dx, dy = MOVES[action]
        self._map[x, y] = 0
        x, y = x + dx, y + dy
        nearest = min((max(abs(x - column), abs(y - row)) for column, row in self._targets), default=3)
        if (x, y) in self._targets:
            self._targets.remove((x, y))
        if max(abs(x - 3), abs(y - 3)) == 3:
            x, y = 3, 3
        self._agent = (x, y)
        self._map[x, y] = -1
        self._steps += 1
        return self._map, 1 - nearest / 3, False, self._steps == 36, {}
