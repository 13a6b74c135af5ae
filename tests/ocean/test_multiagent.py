"""Rules of multiagent."""

import functools

import numpy as np
import pytest

from pufferlib import ocean
from pufferlib.testing import check_env


@pytest.mark.parametrize(
    ("actions", "rewards"),
    [
        ([0, 1], [1, 1]),
        ([1, 0], [0, 0]),
        ([0, 0], [1, 0]),
        ([1, 1], [0, 1]),
        ([2, -1], [0, 0]),
        ([-(2**31), 2**31 - 1], [0, 0]),
    ],
)
def test_first_agent_is_paid_for_0_and_second_for_1(actions, rewards):
    env = ocean.Multiagent(num_envs=1, log_interval=1)
    observations, _ = env.reset()
    for _ in range(3):
        assert observations.tolist() == [[0], [1]]
        *_, infos = env.step(actions)
        assert env.rewards.tolist() == rewards
        assert env.terminals.all()
        assert not env.truncations.any()
        share = sum(rewards) / 2
        assert infos == [{"score": share, "perf": share, "episode_return": share, "episode_length": 1, "n": 1}]


def test_each_environment_has_its_own_rows():
    env = ocean.Multiagent(num_envs=3)
    env.reset()
    assert env.num_agents == 6
    env.step([0, 1, 1, 0, 0, 0])
    assert env.rewards.tolist() == [1, 1, 0, 0, 1, 0]


def test_more_players_alternate_between_0_and_1():
    env = ocean.Multiagent(num_envs=2, players=5, log_interval=1)
    observations, _ = env.reset()
    assert env.num_agents == 10
    assert observations[:, 0].tolist() == [0, 1, 0, 1, 0] * 2
    infos = env.step(np.zeros(10, int))[4]
    assert env.rewards.tolist() == [1, 0, 1, 0, 1] * 2
    assert infos[0]["score"] == pytest.approx(0.6)


def start_with_absent(num_envs=200, players=4, absence=0.5, **kwargs):
    env = ocean.Multiagent(num_envs=num_envs, players=players, absence=absence, **kwargs)
    observations, _ = env.reset()
    return env, observations, env.masks.reshape(num_envs, players)


def test_some_agents_but_never_all_are_absent():
    env, observations, masks = start_with_absent()
    seen = []
    for _ in range(20):
        np.testing.assert_array_equal(observations[:, 0], [0, 1, 0, 1] * 200 * env.masks)
        seen.append(masks.copy())
        env.step(np.zeros(800, int))
    assert np.all([episode.any(axis=1).all() for episode in seen])
    # One of four agents is always present, each other one in half of the episodes.
    np.testing.assert_allclose(np.mean(seen, axis=(0, 1)), 0.25 + 0.75 * 0.5, atol=0.05)
    assert not np.array_equal(seen[0], seen[1])


def test_full_absence_leaves_one_agent():
    _, _, masks = start_with_absent(absence=1)
    assert (masks.sum(axis=1) == 1).all()
    np.testing.assert_allclose(masks.mean(axis=0), 0.25, atol=0.1)


def test_absent_agents_have_no_rewards_ends_and_statistics():
    env, _, _ = start_with_absent(log_interval=1)
    for _ in range(5):
        present = env.masks.copy()
        _, rewards, terminals, truncations, infos = env.step([0, 1, 0, 1] * 200)
        np.testing.assert_array_equal(rewards, present)
        np.testing.assert_array_equal(terminals, present)
        assert not truncations.any()
        assert infos[0]["score"] == infos[0]["perf"] == infos[0]["episode_return"] == 1


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_absent_agents_meet_the_contract(autoreset):
    check_env(functools.partial(ocean.Multiagent, num_envs=5, players=4, absence=0.5, autoreset=autoreset))
