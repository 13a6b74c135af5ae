"""Rules of memory."""

import numpy as np
import pytest

from pufferlib import ocean


def play(length, delay, answer, seed=0, first=0, games=1):
    """Play an episode with the action ``first`` while digits are shown, and then ``answer(digits)``.

    Return the observations and rewards of each step, and the report.
    """
    steps = 2 * length + delay - 1
    env = ocean.Memory(num_envs=games, mem_length=length, mem_delay=delay, seed=seed, log_interval=steps)
    shown = [env.reset()[0][:, 0].copy()]
    rewards = []
    for step in range(1, steps + 1):
        if step < length + delay:
            actions = np.full(games, first)
        else:
            actions = answer(np.array(shown[:length]))[step - length - delay]
        observations, reward, terminals, truncations, infos = env.step(actions)
        over = step == steps
        assert terminals.all() == terminals.any() == over
        assert not truncations.any()
        shown.append((env.final_observations if over else observations)[:, 0].copy())
        rewards.append(reward.copy())
    return np.array(shown), np.array(rewards), infos[0]


def recite(digits):
    return digits.astype(int)


@pytest.mark.parametrize(("length", "delay"), [(1, 0), (1, 2), (2, 2), (3, 0), (5, 7), (32, 3)])
def test_repeating_all_digits_earns_the_full_reward(length, delay):
    shown, rewards, info = play(length, delay, recite, games=50)
    assert set(np.unique(shown[:length])) == {0, 1}
    assert not shown[length:].any(), "observations after the digits must be 0"
    assert (rewards[: length - 1] == 1).all(), "action 0 must pay while digits are shown"
    assert not rewards[length - 1 : length + delay - 1].any(), "the delay must pay nothing"
    assert (rewards[length + delay - 1 :] == 1).all()
    assert (info["score"], info["perf"]) == (1, 1)
    assert info["episode_return"] == 2 * length - 1
    assert info["episode_length"] == 2 * length + delay - 1


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_wrong_digit_costs_its_reward_and_the_score(wrong):
    def answer(digits):
        answers = digits.astype(int)
        answers[wrong] ^= 1
        return answers

    _, rewards, info = play(3, 1, answer, games=20)
    np.testing.assert_array_equal(rewards.T, [[1, 1, 0, *[i != wrong for i in range(3)]]] * 20)
    assert (info["score"], info["perf"]) == (0, 0)


@pytest.mark.parametrize("action", [1, 2, -1, 2**31 - 1])
def test_actions_other_than_0_earn_nothing_while_digits_are_shown(action):
    _, rewards, info = play(3, 2, recite, first=action)
    assert rewards[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert info["score"] == 1, "only answers affect the score"


@pytest.mark.parametrize("action", [2, -1, 2**31 - 1, -(2**31)])
def test_invalid_actions_are_wrong_answers(action):
    _, rewards, info = play(2, 1, lambda digits: np.full(digits.shape, action), games=10)
    assert not rewards[2:].any()
    assert info["score"] == 0


def test_digits_are_random_and_independent():
    shown, _, _ = play(4, 0, recite, games=4000)
    digits = shown[:4]
    np.testing.assert_allclose(digits.mean(axis=1), 0.5, atol=0.04)
    assert abs(np.corrcoef(digits) - np.eye(4)).max() < 0.06


@pytest.mark.parametrize(("is_right", "color"), [(True, "green"), (False, "red")])
def test_picture_shows_an_answer_after_its_step(is_right, color):
    env = ocean.Memory(mem_length=2, mem_delay=1, seed=0, render_mode="rgb_array")
    first = int(env.reset()[0].item())
    for _ in range(2):
        env.step([0])
    before = env.render()
    env.step([first if is_right else 1 - first])
    changed = env.render()[(env.render() != before).any(-1)].astype(int)
    red, green, _ = changed.mean(0)
    assert (green > red) == (color == "green")
