"""Random actions obey the masks in observations: alone, in checks, in autotune."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.legal_actions import LegalActions, mask_reader
from pufferlib.spaces import joint_space
from pufferlib.testing import check_env
from tests.envs import EnvDescription

FLAT = Box(0, 1, (7,), np.float32)


def emulated(action_space, observation_space):
    env = gymnasium.Env()
    env.action_space, env.observation_space = action_space, observation_space
    return GymnasiumPufferEnv(env)


@pytest.mark.parametrize(
    ("space", "mask", "legal"),
    [
        (Discrete(3, start=5), [0, 1, 1], {(6,), (7,)}),
        (MultiDiscrete([2, 3]), [0, 1, 1, 0, 1], {(1, 0), (1, 2)}),
        (MultiDiscrete([2, 2], start=[3, -1]), [1, 0, 0, 1], {(3, 0)}),
        (Discrete(2), [0, 0], {(0,), (1,)}),  # an agent that may do nothing
    ],
)
def test_draws_are_uniform_over_legal_actions(space, mask, legal):
    env = EnvDescription(FLAT, space, slice(1, 1 + len(mask)))
    row = np.zeros(7, np.float32)
    row[1 : 1 + len(mask)] = mask
    drawn = LegalActions(env, 2000, seed=1).sample(np.tile(row, (2000, 1))).reshape(2000, -1)
    values, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(value) for value in values.tolist()} == legal
    assert counts.min() > 0.8 * 2000 / len(legal)


@pytest.mark.parametrize(
    "field", [MultiBinary(3), Box(0, 1, (3,), np.float32), MultiDiscrete([2, 2, 2]), Box(0, 1, (1, 3), np.int64)]
)
def test_field_of_an_emulated_observation_is_the_mask(field):
    env = emulated(Discrete(3), Dict(action_mask=field, x=Box(-1, 1, (2,), np.float32)))
    env.observations.view(env.emulated["emulated_observation_dtype"])["action_mask"] = [1, 0, 1]
    assert mask_reader(env)(env.observations).tolist() == [[True, False, True]]


@pytest.mark.parametrize(
    "env",
    [
        EnvDescription(FLAT, Discrete(3)),
        EnvDescription(FLAT, Box(0, 1, (2,), np.float32)),
        emulated(Discrete(4), Dict(action_mask=MultiBinary(3), x=Discrete(2))),
    ],
    ids=["no mask", "real actions", "another size"],
)
def test_without_masks_draws_are_those_of_the_space(env):
    actions = LegalActions(env, 3, seed=1)
    assert not actions.has_masks
    space = joint_space(env.single_action_space, 3)
    space.seed(1)
    np.testing.assert_array_equal(actions.sample(None), space.sample())


class Strict(gymnasium.Env):
    """Refuses actions that its mask forbids."""

    action_space = Discrete(5)
    observation_space = Dict(action_mask=MultiBinary(5), x=Box(-1, 1, (2,), np.float32))

    def observe(self):
        self.mask = np.zeros(5, np.int8)
        self.mask[self.np_random.choice(5, 2, replace=False)] = 1
        return {"action_mask": self.mask.copy(), "x": self.np_random.uniform(-1, 1, 2).astype(np.float32)}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        if not self.mask[action]:
            raise ValueError(f"illegal move {action}")
        self.t += 1
        return self.observe(), 1.0, self.t == 10, False, {}


def make_strict(buf=None, seed=0):
    return GymnasiumPufferEnv(Strict(), buf=buf, seed=seed)


def test_checks_play_legal_actions():
    check_env(make_strict, steps=100)


def test_autotune_plays_legal_actions(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("pufferlib.autotune.search.candidates", lambda *_: [{"backend": "Serial", "num_envs": 2}])
    (found,) = vector.autotune(make_strict, batch_size=2, max_envs=2, time_per_test=0.02)
    assert not found.skipped
