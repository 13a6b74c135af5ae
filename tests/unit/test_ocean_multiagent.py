"""The rules of multiagent."""

import numpy as np
import pytest

from pufferlib import ocean


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
def test_the_first_should_play_0_and_the_second_1(actions, rewards):
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


def test_games_have_rows_of_their_own():
    env = ocean.Multiagent(num_envs=3)
    env.reset()
    assert env.num_agents == 6
    env.step([0, 1, 1, 0, 0, 0])
    assert env.rewards.tolist() == [1, 1, 0, 0, 1, 0]


def test_more_players_alternate():
    env = ocean.Multiagent(num_envs=2, players=5, log_interval=1)
    observations, _ = env.reset()
    assert env.num_agents == 10
    assert observations[:, 0].tolist() == [0, 1, 0, 1, 0] * 2
    infos = env.step(np.zeros(10, int))[4]
    assert env.rewards.tolist() == [1, 0, 1, 0, 1] * 2
    assert infos[0]["score"] == pytest.approx(0.6)
