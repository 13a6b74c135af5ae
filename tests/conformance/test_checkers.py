"""Emulated environments as other libraries see them: their checkers find nothing, their learners see what happened."""

import copy
import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from pettingzoo import ParallelEnv
from stable_baselines3 import DQN, SAC

from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from tests.conformance.checkers import check_by_others

SIMPLE = [
    Box(-1, 1, (3,)),
    Box(0, 1, ()),
    Box(0, 255, (4, 4, 3), np.uint8),
    Box(-1, 1, (2,), np.int64),
    Discrete(4),
    Discrete(4, start=-2),
    MultiDiscrete([3, 4]),
    MultiDiscrete([[3, 4], [2, 2]]),
    MultiBinary(3),
    Text(4),
    Dict(a=Dict(b=Discrete(3, start=1)), c=Tuple([MultiBinary(2), Discrete(2)])),
    OneOf([Discrete(2), MultiDiscrete([2, 3])]),
]
OBSERVATIONS = [
    *SIMPLE,
    Dict(a=Box(0, 1, (2,), np.float64), b=Tuple([Discrete(2), Text(3)])),
    Sequence(Discrete(3)),
    Sequence(Dict(a=Box(0, 1, (2,)), b=Discrete(2)), stack=True),
    Graph(Box(0, 1, (2,)), Discrete(3)),
    Graph(Discrete(3), None),
]
ACTIONS = [*SIMPLE, Dict(a=Box(-1, 1, (2,)), b=Tuple([Box(-1, 1, (1,))]))]


class Dream(gymnasium.Env):
    """Any observation and any reward, whatever one does."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.observation_space.sample(), np.float32(self.np_random.random()), np.bool_(False), False, {}


@pytest.mark.parametrize(
    ("observations", "actions"),
    [*((space, Discrete(2)) for space in OBSERVATIONS), *((Box(-1, 1, (3,)), space) for space in ACTIONS)],
    ids=str,
)
def test_any_space(observations, actions):
    make = functools.partial(Dream, observations, actions)
    spec = EnvSpec("Dream-v0", entry_point=make, disable_env_checker=True, order_enforce=False)
    check_by_others(GymnasiumPufferEnv(gymnasium.make(spec), max_length=50, max_nodes=50, max_edges=200), make)


class Relay(ParallelEnv):
    """Two agents dream side by side; in every step the elder leaves and a younger one comes."""

    metadata = {"name": "relay"}  # noqa: RUF012

    def __init__(self, observation_space):
        self.possible_agents = list("abcdef")
        self.dream = copy.deepcopy(observation_space)  # one of its own, to be seeded
        self.observation_space = lambda agent: self.dream
        self.action_space = {agent: Discrete(2, start=3) for agent in self.possible_agents}.get

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.dream.seed(seed)
        self.time, self.agents = 0, ["a", "b"]
        return self.observe("ab"), {agent: {} for agent in "ab"}

    def observe(self, agents):
        return {agent: self.dream.sample() for agent in agents}

    def step(self, actions):
        assert list(actions) == self.agents
        self.time += 1
        before, self.agents = self.agents, self.possible_agents[self.time : self.time + 2]
        here = sorted({*before, *self.agents})
        left = {agent: agent not in self.agents for agent in here}
        return self.observe(here), dict.fromkeys(here, 0.3), left, dict.fromkeys(here, False), {a: {} for a in here}


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_agents_with_any_space(space):
    def make():
        return PettingZooPufferEnv(Relay(space), max_length=50, max_nodes=50, max_edges=200)

    check_by_others(make(), make)


class Clock(gymnasium.Env):
    """Tells the time, and ends when that is 5: told by ``terminated``, or by ``truncated``."""

    observation_space = Box(0, 5, (1,))

    def __init__(self, action_space, truncates):
        self.action_space, self.truncates = action_space, truncates

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time == 5
        return np.full(1, self.time, np.float32), 1.0, over and not self.truncates, over and self.truncates, {}


@pytest.mark.parametrize(
    ("learner", "actions", "truncates"), [(DQN, Discrete(2), False), (SAC, Box(-1, 1, (1,)), True)], ids=["DQN", "SAC"]
)
def test_what_a_replay_buffer_keeps_is_what_happened(learner, actions, truncates):
    env = GymnasiumPufferEnv(Clock(actions, truncates))
    model = learner("MlpPolicy", env, buffer_size=50, learning_starts=100, device="cpu")
    model.learn(20)
    buffer = model.replay_buffer
    assert buffer.observations[:20].ravel().tolist() == [0, 1, 2, 3, 4] * 4
    assert buffer.next_observations[:20].ravel().tolist() == [1, 2, 3, 4, 5] * 4
    assert buffer.dones[:20].ravel().tolist() == [0, 0, 0, 0, 1] * 4
    assert buffer.timeouts[:20].ravel().tolist() == [0, 0, 0, 0, truncates] * 4
