"""Rules of password."""

import itertools

import numpy as np
import pytest

from pufferlib import ocean


def play(guesses, **kwargs):
    """Guess ``guesses[i]`` in environment i. Return the rewards of the last step, and the report."""
    guesses = np.asarray(guesses)
    length = guesses.shape[1]
    env = ocean.Password(num_envs=len(guesses), password_length=length, log_interval=length, **kwargs)
    observations, _ = env.reset()
    assert (observations == -1).all()
    for place in range(length - 1):
        env.step(guesses[:, place])
        assert not env.rewards.any()
        assert not env.terminals.any()
        np.testing.assert_array_equal(observations[:, : place + 1], guesses[:, : place + 1] == 1)
        assert (observations[:, place + 1 :] == -1).all()
    infos = env.step(guesses[:, -1])[4]
    assert env.terminals.all()
    assert not env.truncations.any()
    assert (observations == -1).all(), "the next episode must have started"
    np.testing.assert_array_equal(env.final_observations, guesses == 1)
    return env.rewards.tolist(), infos[0]


def all_guesses(length):
    return list(itertools.product((0, 1), repeat=length))


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_one_password_pays_with_its_last_digit(length):
    rewards, info = play(all_guesses(length))
    assert sorted(rewards) == [0] * (2**length - 1) + [1]
    assert info["score"] == info["perf"] == info["episode_return"] == pytest.approx(0.5**length)
    assert info["episode_length"] == length


def test_password_is_the_same_for_all_environments_and_seeds():
    rewards = [play(all_guesses(5), seed=seed)[0] for seed in range(3)]
    assert rewards[0] == rewards[1] == rewards[2]
    password = all_guesses(5)[rewards[0].index(1)]
    assert play([password] * 4)[0] == [1] * 4


def test_hard_fixed_seed_chooses_the_password():
    chosen = {tuple(play(all_guesses(2), hard_fixed_seed=seed)[0]) for seed in range(40)}
    assert len(chosen) == 4


def test_password_of_32_digits_has_32_steps():
    rewards, info = play(np.ones((2, 32), int))
    assert rewards == [0, 0]
    assert (info["score"], info["episode_length"]) == (0, 32)


@pytest.mark.parametrize("action", [2, -1, 2**31 - 1, -(2**31)])
def test_actions_other_than_1_guess_0(action):
    guesses = np.array(all_guesses(3))
    assert play(np.where(guesses == 0, action, 1)) == play(guesses)


def test_guesses_do_not_affect_later_episodes():
    env = ocean.Password(num_envs=1, password_length=3)
    env.reset()
    (right,) = [guess for guess, r in zip(all_guesses(3), play(all_guesses(3))[0], strict=True) if r]
    for guess in ([1, 1, 1], [0, 0, 0], right, [1 - digit for digit in right], right):
        for digit in guess:
            env.step([digit])
        assert env.rewards[0] == (list(guess) == list(right))
