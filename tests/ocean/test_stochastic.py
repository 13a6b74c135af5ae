"""Rules of stochastic."""

import numpy as np
import pytest

from pufferlib import ocean


def play(actions, **kwargs):
    """Return the rewards and the report of an episode with these actions."""
    env = ocean.Stochastic(num_envs=1, horizon=len(actions), log_interval=len(actions), **kwargs)
    observations, _ = env.reset()
    rewards = []
    for step, action in enumerate(actions, start=1):
        *_, infos = env.step([action])
        rewards.append(float(env.rewards[0]))
        assert observations[0, 0] == 0
        assert not env.terminals[0]
        assert env.truncations[0] == (step == len(actions))
    return rewards, infos[0]


def test_action_towards_the_share_is_paid():
    # Shares of action 0 after each step: 1, 1/2, 2/3, 3/4, 3/5, 3/6.
    rewards, _ = play([0, 1, 0, 0, 1, 1], p=0.7)
    misses = [0.7 - 1 / 2, 0.7 - 2 / 3, 0.7 - 3 / 4, 0.7 - 3 / 5, 0.7 - 1 / 2]
    paid = [False, True, False, False, False]
    assert rewards == pytest.approx([0, *[(1 - m * m) * p for m, p in zip(misses, paid, strict=True)]], abs=1e-6)


def test_action_1_is_paid_while_the_share_is_too_high():
    rewards, _ = play([0, 0, 0, 1], p=0.5)
    assert rewards == pytest.approx([0, 0, 0, 1 - 0.25**2])


@pytest.mark.parametrize("other", [1, 2, -1, 2**31 - 1, -(2**31)])
def test_invalid_actions_count_as_action_1(other):
    assert play([0, other, 0, other], p=0.5) == play([0, 1, 0, 1], p=0.5)


@pytest.mark.parametrize(
    ("zeros", "score", "perf"),
    [(10, 1 - 0.3**2, 0), (7, 1, 1), (4, 1 - 0.3**2, 0), (0, 1 - 0.7**2, 0), (6, 1 - 0.1**2, 1 - 1 / 9)],
)
def test_score_depends_on_the_distance_to_the_share(zeros, score, perf):
    actions = np.random.default_rng(0).permutation([0] * zeros + [1] * (10 - zeros))
    _, info = play(actions.tolist(), p=0.7)
    assert info["score"] == pytest.approx(score)
    assert info["perf"] == pytest.approx(perf, abs=1e-5)
    assert (info["episode_length"], info["n"]) == (10, 1)


def test_share_is_reset_between_episodes():
    env = ocean.Stochastic(num_envs=1, horizon=2, p=0.5, log_interval=2)
    env.reset()
    reports = []
    for action in (0, 0, 0, 1):
        reports += env.step([action])[4]
    assert [report["score"] for report in reports] == [0.75, 1]
