"""Training with actions that have integers and floats."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple

import pufferlib

pytestmark = pytest.mark.usefixtures("blank_curves")


class Aim(gymnasium.Env):
    """Reward 1 for the legal button at the shown place. Either part alone gives at most 1/3.

    Args:
        is_tuple: Whether actions are a Tuple instead of a Dict.
    """

    def __init__(self, is_tuple=False):
        place = Box(-10, 10, (1,), np.float32)
        self.observation_space = Dict({"place": place, "button": Discrete(3), "action_mask": MultiBinary(4)})
        parts = {"place": place, "button": Discrete(4, start=3)}
        self.action_space = Tuple(list(parts.values())) if is_tuple else Dict(parts)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def _observe(self):
        self.place = self.np_random.uniform(-10, 10, 1).astype(np.float32)
        self.button = int(self.np_random.integers(3))
        mask = np.array([1, 1, 1, 0], np.int8)
        return {"place": self.place, "button": self.button, "action_mask": mask}

    def step(self, action):
        assert self.action_space.contains(action), action
        place, button = action if isinstance(action, tuple) else (action["place"], action["button"])
        assert button < 6, "an illegal action"
        reward = float(button == 3 + self.button) * max(0.0, 1 - float(abs(place - self.place)[0]) / 5)
        self.steps += 1
        return self._observe(), reward, False, self.steps >= 10, {}


@pytest.mark.parametrize("is_tuple", [False, True])
def test_mixed_actions_train_evaluate_and_load(here, is_tuple):
    settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.total_timesteps": 512, "train.horizon": 64}
    settings |= {"env.is_tuple": is_tuple, "policy.hidden_size": 16, "eval.episodes": 4}
    trained = pufferlib.train(Aim, settings)
    agent = pufferlib.load(trained.run.folder)
    env = Aim(is_tuple)
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        observation, *_ = env.step(agent(observation))


@pytest.mark.all
def test_both_parts_of_mixed_actions_are_learned(here):
    settings = {"vec.backend": "Serial", "vec.num_envs": 16, "train.total_timesteps": 60_000}
    trained = pufferlib.train(Aim, settings)
    assert trained.comparison.agent.score_mean > 7
