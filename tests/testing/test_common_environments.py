"""Tests of check_env with environments in the style of tutorials, which must pass."""

import functools
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.wrappers import FrameStackObservation, RecordEpisodeStatistics, TimeLimit
from pettingzoo import ParallelEnv

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.testing import check_env

MOVES = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])


class GridWorld(gymnasium.Env):
    """Grid with an agent and a target, each a pair of integers in a Dict."""

    metadata: ClassVar = {"render_modes": []}

    def __init__(self, size=5):
        self.size = size
        place = Box(0, size - 1, (2,), int)
        self.observation_space, self.action_space = Dict({"agent": place, "target": place}), Discrete(4)
        self._agent = self._target = np.array([-1, -1])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._agent = self.np_random.integers(0, self.size, 2)
        self._target = self._agent
        while np.array_equal(self._target, self._agent):
            self._target = self.np_random.integers(0, self.size, 2)
        return self._observation(), self._info()

    def step(self, action):
        self._agent = np.clip(self._agent + MOVES[action], 0, self.size - 1)
        arrived = np.array_equal(self._agent, self._target)
        return self._observation(), 1 if arrived else 0, arrived, False, self._info()

    def _observation(self):
        return {"agent": self._agent, "target": self._target}

    def _info(self):
        return {"distance": np.linalg.norm(self._agent - self._target, ord=1)}


class Corridor(gymnasium.Env):
    """Corridor with float64 observations in a float32 space, a common mistake."""

    observation_space, action_space = Box(0.0, 10.0, (1,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return np.array([self.place], np.float64), {}

    def step(self, action):
        self.place = max(self.place + (1 if action else -1), 0)
        return np.array([self.place], np.float64), -0.1, self.place >= 10, False, {}


class Bandit(gymnasium.Env):
    """Bandit whose only observation is 0, with episodes of one step."""

    observation_space, action_space = Discrete(1), Discrete(10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, self.np_random.normal(action), True, False, {}


class Continuing(gymnasium.Env):
    """Task without an end."""

    observation_space, action_space = Box(-np.inf, np.inf, (3,)), Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=3).astype(np.float32)
        return self.state, {}

    def step(self, action):
        self.state = (0.9 * self.state + action).astype(np.float32)
        return self.state, float(-np.abs(self.state).sum()), False, False, {}


class Pixels(gymnasium.Env):
    """Image of bytes with a moving dot."""

    observation_space, action_space = Box(0, 255, (48, 48, 3), np.uint8), MultiDiscrete([3, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.integers(0, 48, 2)
        return self._picture(), {}

    def step(self, action):
        self.place = (self.place + action - 1) % 48
        return self._picture(), 0.0, False, False, {}

    def _picture(self):
        picture = np.zeros((48, 48, 3), np.uint8)
        picture[tuple(self.place)] = 255
        return picture


class Prisoners(ParallelEnv):
    """Grid with a fleeing and a chasing agent, whose episodes end together."""

    metadata: ClassVar = {"name": "prisoners"}

    def __init__(self):
        self.possible_agents = ["prisoner", "guard"]

    @functools.cache  # noqa: B019 - as in PettingZoo's tutorial
    def observation_space(self, agent):
        return MultiDiscrete([49, 49])

    @functools.cache  # noqa: B019
    def action_space(self, agent):
        return Discrete(4)

    def reset(self, seed=None, options=None):
        self.agents, self.count = self.possible_agents[:], 0
        self.random = np.random.default_rng(seed) if seed is not None or not hasattr(self, "random") else self.random
        self.places = dict(zip(self.agents, self.random.integers(0, 7, (2, 2)), strict=True))
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.count += 1
        for agent, action in actions.items():
            self.places[agent] = np.clip(self.places[agent] + MOVES[action], 0, 6)
        caught, late = np.array_equal(*self.places.values()), self.count > 30
        observations = self._observations()
        rewards = {"prisoner": -float(caught), "guard": float(caught)}
        ends = [dict.fromkeys(self.agents, end) for end in (caught, late)]
        infos = {agent: {} for agent in self.agents}
        self.agents = [] if caught or late else self.agents
        return observations, rewards, *ends, infos

    def _observations(self):
        codes = np.array([place[0] + 7 * place[1] for place in self.places.values()])
        return dict.fromkeys(self.agents, codes)


class Rounded(gymnasium.Env):
    """Ten steps from 0 to 1, where the last number is above 1 by rounding."""

    def __init__(self, field=None):
        self.field = field
        share = Box(0, 1, (1,), np.float64)
        self.observation_space, self.action_space = Dict({field: share}) if field else share, Discrete(2)
        self._count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._count = 0
        return self._observation(), {}

    def step(self, action):
        self._count += 1
        return self._observation(), 0.0, self._count == 10, False, {}

    def _observation(self):
        share = np.array([self._count / 10 * (1 + 2.0**-52)])
        return {self.field: share} if self.field else share


@pytest.mark.parametrize(
    "creator",
    [
        GridWorld,
        lambda: TimeLimit(Corridor(), 50),
        lambda: RecordEpisodeStatistics(TimeLimit(GridWorld(), 20)),
        lambda: pufferlib.EpisodeStats(TimeLimit(GridWorld(), 20)),
        lambda: FrameStackObservation(TimeLimit(Pixels(), 20), 4),
        Bandit,
        Rounded,
        functools.partial(Rounded, "share"),
    ],
    ids=[
        *("GridWorld", "Corridor", "statistics", "our statistics", "stacked pixels", "Bandit"),
        *("rounded", "rounded field"),
    ],
)
def test_gymnasium_env_passes(creator):
    check_env(functools.partial(GymnasiumPufferEnv, env_creator=creator), steps=100)


def test_continuing_env_passes_if_declared():
    check_env(functools.partial(GymnasiumPufferEnv, env_creator=Continuing), steps=100, continuing=True)


def test_pettingzoo_env_passes():
    check_env(functools.partial(PettingZooPufferEnv, env_creator=Prisoners), steps=100)
