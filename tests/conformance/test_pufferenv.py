"""``check_env`` passes for Ocean environments and for emulated environments of any kind."""

import copy
import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from pettingzoo import ParallelEnv

import pufferlib
from pufferlib import ocean
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.testing import check_env
from tests.envs import FunctionEnv
from tests.tiers import once


@pytest.mark.parametrize("name", ocean.names())
def test_ocean_environment_passes_check_env(name):
    check_env(functools.partial(pufferlib.env_creator(name), num_envs=3), steps=40)


@pytest.mark.parametrize("name", ocean.python_names())
def test_python_environment_passes_check_env(name):
    check_env(pufferlib.env_creator(name), steps=60)


@pytest.mark.parametrize(
    "name",
    once(
        ["CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCarContinuous-v0"],
        ["CartPole-v1", "MountainCarContinuous-v0"],
    ),
)
def test_gymnasium_environment_passes_check_env(name):
    check_env(functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=[name]))


OBSERVATIONS = Dict({"map": Box(0, 255, (3, 3), np.uint8), "pair": Tuple([Discrete(3), Box(-1, 1, (2,))])})
ACTIONS = Dict({"move": Discrete(5), "aim": MultiDiscrete([3, 4])})


class PopulationEnv(ParallelEnv):
    """PettingZoo environment whose agents are born and die at random."""

    metadata = {"name": "crowd"}  # noqa: RUF012

    def __init__(self):
        self.possible_agents = [f"agent_{i}" for i in range(6)]
        self.space = copy.deepcopy(OBSERVATIONS)  # a copy that can be seeded
        self.observation_space, self.action_space = (lambda agent: self.space), (lambda agent: ACTIONS)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
            self.space.seed(seed)
        self.agents = self.possible_agents[1:4]
        return self.observe(self.agents), {agent: {} for agent in self.agents}

    def observe(self, agents):
        return {agent: self.space.sample() for agent in agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        assert all(ACTIONS.contains(action) for action in actions.values())
        fates = {agent: self.random.random() for agent in self.agents}
        born = [agent for agent in self.possible_agents if agent not in fates and self.random.random() < 0.05]
        reported = [*self.agents, *born]
        self.agents = [agent for agent in reported if fates.get(agent, 1) > 0.1]
        return (
            self.observe(reported),
            dict.fromkeys(reported, 1.0),
            {agent: fates.get(agent, 1) < 0.05 for agent in reported},
            {agent: 0.05 <= fates.get(agent, 1) <= 0.1 for agent in reported},
            {agent: {} for agent in reported},
        )


class SampledEnv(FunctionEnv):
    """Environment with random observations of its own space, which records only the current episode."""

    def __init__(self, truncates):
        super().__init__(copy.deepcopy(OBSERVATIONS), ACTIONS, length=20, truncates=truncates)

    def reset(self, *, seed=None, options=None):
        for kept in (self.observations, self.actions, self.seeds):
            kept.clear()
        return super().reset(seed=seed)


def test_environment_with_nested_spaces_passes_check_env():
    for truncates in (False, True):
        check_env(functools.partial(GymnasiumPufferEnv, env_creator=SampledEnv, env_args=[truncates]), steps=80)


def test_environment_with_variable_population_passes_check_env():
    check_env(functools.partial(PettingZooPufferEnv, env_creator=PopulationEnv), steps=80)
