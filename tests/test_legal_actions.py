"""Random actions respect action masks: LegalActions, ``check_env`` and ``autotune``."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.legal_actions import LegalActions, mask_reader
from pufferlib.spaces import MixedBox, joint_space
from pufferlib.testing import check_env
from tests.envs import EnvDescription, MaskedEnv

FLAT = Box(0, 1, (7,), np.float32)
MIXED = MixedBox(np.array([9, 5]), np.array([9, 7]), np.array([False, True]), np.float32)


def make_emulated(action_space, observation_space):
    env = gymnasium.Env()
    env.action_space, env.observation_space = action_space, observation_space
    return GymnasiumPufferEnv(env)


@pytest.mark.parametrize(
    ("space", "mask", "legal"),
    [
        (Discrete(3, start=5), [0, 1, 1], {(6,), (7,)}),
        (MultiDiscrete([2, 3]), [0, 1, 1, 0, 1], {(1, 0), (1, 2)}),
        (MultiDiscrete([2, 2], start=[3, -1]), [1, 0, 0, 1], {(3, 0)}),
        (Discrete(2), [0, 0], {(0,), (1,)}),  # an agent without legal actions
        (MIXED, [0, 1, 1], {(9, 6), (9, 7)}),
    ],
)
def test_samples_are_uniform_over_legal_actions(space, mask, legal):
    env = EnvDescription(FLAT, space, slice(1, 1 + len(mask)))
    row = np.zeros(7, np.float32)
    row[1 : 1 + len(mask)] = mask
    actions = LegalActions(env, 2000, seed=1).sample(np.tile(row, (2000, 1))).reshape(2000, -1)
    values, counts = np.unique(actions, axis=0, return_counts=True)
    assert {tuple(value) for value in values.tolist()} == legal
    assert counts.min() > 0.8 * 2000 / len(legal)


@pytest.mark.parametrize(
    ("space", "mask", "action", "expected"),
    [
        (Discrete(3, start=5), [0, 1, 1], 5, 6),
        (Discrete(3, start=5), [0, 1, 1], 7, 7),
        (MultiDiscrete([2, 3]), [0, 1, 1, 0, 1], [0, 2], [1, 2]),
        (MIXED, [0, 1, 1], [9, 5], [9, 6]),
        (Discrete(2), [0, 0], 1, 0),
    ],
)
def test_illegal_parts_of_an_action_become_the_first_legal_ones(space, mask, action, expected):
    env = EnvDescription(FLAT, space, slice(1, 1 + len(mask)))
    row = np.zeros(7, np.float32)
    row[1 : 1 + len(mask)] = mask
    assert LegalActions(env, 1, seed=1).without_illegal(action, row).tolist() == expected


@pytest.mark.parametrize(
    "field", [MultiBinary(3), Box(0, 1, (3,), np.float32), MultiDiscrete([2, 2, 2]), Box(0, 1, (1, 3), np.int64)]
)
def test_mask_reader_reads_the_action_mask_field(field):
    env = make_emulated(Discrete(3), Dict(action_mask=field, x=Box(-1, 1, (2,), np.float32)))
    env.observations.view(env.emulated["emulated_observation_dtype"])["action_mask"] = [1, 0, 1]
    assert mask_reader(env)(env.observations).tolist() == [[True, False, True]]


@pytest.mark.parametrize(
    "env",
    [
        EnvDescription(FLAT, Discrete(3)),
        EnvDescription(FLAT, Box(0, 1, (2,), np.float32)),
        make_emulated(Discrete(4), Dict(action_mask=MultiBinary(3), x=Discrete(2))),
    ],
    ids=["no mask", "real actions", "another size"],
)
def test_samples_without_masks_equal_those_of_the_space(env):
    actions = LegalActions(env, 3, seed=1)
    assert not actions.has_masks
    space = joint_space(env.single_action_space, 3)
    space.seed(1)
    np.testing.assert_array_equal(actions.sample(None), space.sample())


def make_masked(buf=None, seed=0):
    return GymnasiumPufferEnv(MaskedEnv(), buf=buf, seed=seed)  # raises if an action is illegal


def test_check_env_takes_legal_actions():
    check_env(make_masked, steps=100)


def test_autotune_takes_legal_actions(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("pufferlib.autotune.search.candidates", lambda *_: [{"backend": "Serial", "num_envs": 2}])
    (found,) = vector.autotune(make_masked, batch_size=2, max_envs=2, time_per_test=0.02)
    assert not found.skipped
