import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from pufferlib.env import PufferEnv


class Target(PufferEnv):
    """Shows one of ``choices`` numbers; naming it earns 1. An episode has ``length`` steps.

    With ``hide`` the number is shown only at the first step of an episode and stays the same.
    """

    def __init__(self, num_agents=8, choices=3, length=4, hide=False, truncate=False, seed=0, buf=None):
        self.num_agents = num_agents
        self.single_observation_space = Box(0, 1, (choices,), np.float32)
        self.single_action_space = Discrete(choices)
        self.choices, self.length, self.hide, self.truncate = choices, length, hide, truncate
        self.rng = np.random.default_rng(seed)
        self.closed = 0
        super().__init__(buf)

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.returns = np.zeros(self.num_agents)
        self.age = 0
        self.draw()
        return self.observations, []

    def draw(self):
        if not self.hide or self.age == 0:
            self.target = self.rng.integers(self.choices, size=self.num_agents)
        self.observations[:] = np.eye(self.choices)[self.target]
        if self.hide and self.age:
            self.observations[:] = 0

    def step(self, actions):
        self.rewards[:] = actions == self.target
        self.returns += self.rewards
        self.age += 1
        ended = self.age == self.length
        self.terminals[:] = ended and not self.truncate
        self.truncations[:] = ended and self.truncate
        self.final_observations[:] = self.observations
        infos = []
        if ended:
            infos = [{"score": self.returns.mean(), "episode_length": self.length, "n": self.num_agents}]
            self.returns[:] = 0
            self.age = 0
        self.draw()
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        self.closed += 1


@pytest.fixture
def target_env():
    return Target


@pytest.fixture(autouse=True)
def one_thread():
    """More threads than free cores would slow these small networks down a hundredfold."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
