"""``to_pettingzoo``: native environments with several agents as PettingZoo environments."""

import contextlib
import warnings

import cloudpickle
import numpy as np
import pytest

import pufferlib
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.pettingzoo import to_pettingzoo

NAMES = ["multiagent", "rware", "snake", "trash_pickup", "moba"]


@pytest.mark.parametrize("name", NAMES)
def test_pettingzoo_api_and_seed_tests_pass(name):
    pytest.importorskip("pygame", reason="PettingZoo's tests import a game")
    with warnings.catch_warnings(action="ignore"):  # about unusual environments, and about imports of that game
        from pettingzoo.test import parallel_api_test, parallel_seed_test

        parallel_api_test(to_pettingzoo(pufferlib.make(name, num_envs=1)), num_cycles=100)
        parallel_seed_test(lambda: to_pettingzoo(pufferlib.make(name, num_envs=1)), num_cycles=20)


def test_ended_agents_are_removed_until_the_next_reset():
    env = to_pettingzoo(pufferlib.make("multiagent", num_envs=1))
    env.reset(seed=0)
    assert env.agents == ["agent_0", "agent_1"]
    observations, rewards, terminations, _, _ = env.step(dict.fromkeys(env.agents, 0))
    assert set(observations) == set(rewards) == {"agent_0", "agent_1"}
    assert env.agents == [agent for agent, ended in terminations.items() if not ended]
    env.reset()
    with pytest.raises(APIUsageError, match="an action of every agent, got none of \\['agent_1'\\]"):
        env.step({"agent_0": 0})


def test_other_environments_are_refused():
    with pytest.raises(APIUsageError, match="env must be a native PufferEnv, got"):
        to_pettingzoo(pufferlib.make("pymultiagent"))


def test_cloudpickle_makes_an_independent_copy():
    """SuperSuit's ``concat_vec_envs`` copies environments this way."""
    env = to_pettingzoo(pufferlib.make("trash_pickup", num_envs=1))
    env.reset(seed=1)
    actions = dict.fromkeys(env.agents, 1)
    env.step(actions)
    with contextlib.closing(cloudpickle.loads(cloudpickle.dumps(env))) as copy:
        for _ in range(20):
            ours, theirs = env.step(actions), copy.step(actions)
            np.testing.assert_equal(theirs, ours)
        env.reset(seed=2)
        assert copy.agents
        copy.step(actions)
    env.close()


@pytest.mark.parametrize("action", [1.7, float("nan"), np.array([1, 2]), None], ids=str)
def test_actions_outside_of_the_space_raise(action):
    env = to_pettingzoo(pufferlib.make("rware", num_envs=1))
    env.reset()
    with pytest.raises(APIUsageError, match="actions must"):
        env.step({**dict.fromkeys(env.agents, 0), env.agents[-1]: action})


def test_first_reset_without_seed_differs_between_environments():
    observations = [to_pettingzoo(pufferlib.make("rware", num_envs=1)).reset()[0] for _ in range(4)]
    assert len({str(each) for each in observations}) > 1


def test_step_without_agents_returns_empty_dicts():
    """SuperSuit's ``black_death`` calls ``step`` this way."""
    env = to_pettingzoo(pufferlib.make("multiagent", num_envs=1))
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset(seed=0)
    while env.agents:
        env.step(dict.fromkeys(env.agents, 0))
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(APIUsageError, match="all agents have left; call reset first"):
        env.step({"agent_0": 0})
    env.close()


def test_reset_seeds_np_random():
    """SuperSuit's ``frame_skip_v0`` uses ``np_random``."""
    env = to_pettingzoo(pufferlib.make("multiagent", num_envs=1))
    drawn = []
    for seed in (3, None, 3, 4):
        env.reset(seed=seed)
        drawn.append(env.np_random.random())
    assert drawn[0] == drawn[2]
    assert len(set(drawn)) == 3
    env.close()
