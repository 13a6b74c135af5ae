"""Rules of bandit."""

import numpy as np
import pytest

from pufferlib import ocean


def pull(arms, **kwargs):
    """Return the rewards of pulling arm ``arms[i]`` in environment i."""
    env = ocean.Bandit(num_envs=len(arms), **kwargs)
    observations, _ = env.reset()
    assert (observations == 1).all()
    rewards = env.step(np.asarray(arms))[1]
    assert env.terminals.all()
    assert not env.truncations.any()
    assert (observations == 1).all()
    return rewards


def best_arm(**kwargs):
    arms = np.arange(kwargs.get("num_actions", 10))
    return int(pull(arms, reward_noise=0, **kwargs).argmax())


def test_only_the_best_arm_pays_in_all_environments_and_episodes():
    rewards = pull(np.arange(10), reward_noise=0, reward_scale=3)
    assert sorted(rewards) == [0] * 9 + [3]
    assert [best_arm(seed=seed) for seed in range(3)] == [int(rewards.argmax())] * 3
    env = ocean.Bandit(num_envs=1, reward_noise=0)
    env.reset()
    for _ in range(3):
        assert env.step([int(rewards.argmax())])[1][0] == 1


def test_hard_fixed_seed_chooses_the_best_arm():
    chosen = {best_arm(num_actions=5, hard_fixed_seed=seed) for seed in range(60)}
    assert chosen == set(range(5))


@pytest.mark.parametrize(("scale", "noise"), [(1, 1), (2, 0.5)])
def test_reward_noise_has_mean_zero_and_the_given_deviation(scale, noise):
    best = best_arm()
    for arm, mean in ((best, 1), (best - 1, 0)):
        rewards = pull([arm] * 20_000, reward_scale=scale, reward_noise=noise) / scale
        assert rewards.mean() == pytest.approx(mean, abs=0.03 * noise)
        assert rewards.std() == pytest.approx(noise, rel=0.03)
        assert ((rewards - mean) < noise).mean() == pytest.approx(0.841, abs=0.01), "the distribution must be normal"
        assert len(np.unique(rewards)) > 15_000


@pytest.mark.parametrize("action", [-1, 10, 2**31 - 1, -(2**31)])
def test_invalid_actions_pay_nothing(action):
    assert pull([action])[0] == 0


def test_score_is_the_share_of_best_arms():
    best = best_arm()
    env = ocean.Bandit(num_envs=4, log_interval=1)
    env.reset()
    infos = env.step([best, best, best, (best + 1) % 10])[4]
    assert (infos[0]["score"], infos[0]["perf"], infos[0]["episode_length"], infos[0]["n"]) == (0.75, 0.75, 1, 4)
