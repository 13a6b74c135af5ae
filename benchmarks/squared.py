"""Squared as the paper had it, in Python: a small game whose step costs little beside what is around it."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

Map = npt.NDArray[np.float32]
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))


class Squared(gymnasium.Env[Map, np.int64]):
    """Walk from the centre of a square to the targets on its border, and begin at the centre again at each border.

    * Observation: float32 ``(7, 7)``: -1 the agent, 1 a target, 0 neither.
    * Actions: Discrete(8), the moves of a king.
    * Reward: 1 minus the distance to the nearest target that was not hit, as a share of the way from the centre.
    * Truncation: after 3 steps for each of the 12 targets.
    """

    observation_space = Box(-1, 1, (7, 7), np.float32)
    action_space = Discrete(8)

    def __init__(self) -> None:
        self._border = [(x, y) for x in range(7) for y in range(7) if max(abs(x - 3), abs(y - 3)) == 3]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Map, dict[str, Any]]:
        """Place the targets, none where another is."""
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
        """Move."""
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
