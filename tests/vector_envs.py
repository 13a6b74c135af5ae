"""Environments that several tests of vector environments share."""

import copy
import sys

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports the package of tests

__all__ = ["RandomWalk"]


class RandomWalk(gymnasium.Env):
    """Environment with Dict observations, infos of resets and steps, rendering, and episodes of random length.

    Args:
        extra: Space of the observation's field "extra", whose values are random.

    Attributes:
        speed: Factor of the actions.
    """

    def __init__(self, extra=None):
        extra = MultiBinary(3) if extra is None else copy.deepcopy(extra)  # each environment seeds its own
        self.metadata, self.render_mode = {"render_modes": ["rgb_array"]}, "rgb_array"
        self.observation_space = Dict({"place": Box(-99, 99, (2,), np.float32), "extra": extra})
        self.action_space = Discrete(3)
        self.speed = 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space["extra"].seed(int(self.np_random.integers(2**31)))
        self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        infos = {"start": float(self.place[0]), "where": {"x": self.place.copy()}}
        return self._observe(), infos | ({"options": options} if options else {})

    def step(self, action):
        self.place += self.speed * action
        ends = self.np_random.random(2) < 0.15
        info = {"sum": float(self.place.sum()), "name": "end"} if ends.any() else {}
        return self._observe(), float(self.place[1]), bool(ends[0]), bool(ends[1]), info

    def render(self):
        return np.full((2, 2, 3), abs(int(self.place[0])), np.uint8)

    def describe(self, text, *, flag=False):
        """Return the arguments and ``speed``, to test calls of methods."""
        return text, flag, self.speed

    def _observe(self):
        return {"place": self.place.copy(), "extra": self.observation_space["extra"].sample()}
