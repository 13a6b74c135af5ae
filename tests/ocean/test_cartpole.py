"""Rules of cartpole that Gymnasium's does not have. test_classics.py compares the other ones with Gymnasium."""

import gymnasium
import numpy as np
import pytest

from pufferlib import ocean

LEFT, RIGHT = range(2)
X, SPEED, ANGLE, SPIN = range(4)


def start(seed=0, **kwargs):
    env = ocean.Cartpole(num_envs=1, seed=seed, **kwargs)
    return env, env.reset()[0][0]


def gymnasium_env_at(state):
    """Make Gymnasium's environment in this state."""
    oracle = gymnasium.make("CartPole-v1")
    oracle.reset(seed=0)
    oracle.unwrapped.state = np.array(state, np.float64)
    return oracle


def balance(state):
    """Return an action that keeps the pole upright."""
    return int(state @ [0.1, 0.5, 4.0, 1.0] > 0)


@pytest.mark.parametrize("seed", range(3))
def test_all_steps_of_a_balanced_episode_equal_gymnasium(seed):
    """Before each of 500 steps, Gymnasium's environment gets the same state. The last step is a truncation in both."""
    env, view = start(seed, log_interval=500)
    oracle = gymnasium_env_at(view)
    for step in range(500):
        oracle.unwrapped.state = view.astype(np.float64)
        action = balance(view)
        *_, infos = env.step([action])
        expected, reward, terminated, truncated, _ = oracle.step(action)
        seen = env.final_observations[0] if step == 499 else view
        np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-5)
        assert (env.rewards[0], env.terminals[0], env.truncations[0]) == (reward, terminated, truncated)
    assert env.truncations[0]
    assert infos == [{"score": 500, "perf": 1, "episode_return": 500, "episode_length": 500, "n": 1}]


def test_initial_states_are_uniform_around_the_middle():
    env = ocean.Cartpole(num_envs=2000)
    states, _ = env.reset()
    assert abs(states).max() <= 0.05
    np.testing.assert_allclose(states.mean(axis=0), 0, atol=0.004)
    np.testing.assert_allclose(states.std(axis=0), 0.1 / 12**0.5, rtol=0.05)
    assert abs(np.corrcoef(states.T) - np.eye(4)).max() < 0.1


@pytest.mark.parametrize(("action", "push"), [(LEFT, -1), (RIGHT, 1), (2, 0), (-1, 0), (2**31 - 1, 0)])
def test_actions_accelerate_the_cart(action, push):
    env, view = start()
    before = view.copy()
    env.step([action])
    assert view[X] == pytest.approx(before[X] + 0.02 * before[SPEED])
    assert view[SPEED] - before[SPEED] == pytest.approx(push * 0.195, abs=0.002)
    assert view[SPIN] - before[SPIN] == pytest.approx(-push * 0.293, abs=0.02)


def test_continuous_actions_are_a_share_of_the_force():
    (half, seen), (plain, expected) = start(continuous=True), start(force=5)
    for push, action in [(0.5, RIGHT), (-0.5, LEFT), (0.5, RIGHT), (0, 9)]:
        half.step(np.array([[push]], np.float32))
        plain.step([action])
        np.testing.assert_allclose(seen, expected, atol=1e-7)
    full, seen = start(continuous=True)
    plain, expected = start()
    for push, action in [(7.0, RIGHT), (-np.inf, LEFT), (np.nan, 9)]:
        full.step(np.array([[push]], np.float32))
        plain.step([action])
        np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize(("action", "sign"), [(LEFT, -1), (RIGHT, 1)])
def test_leaving_the_track_is_terminal(action, sign):
    env, view = start(cart_mass=1000, pole_mass=0.01, force=1000, gravity=0, step_s=0.05, half_length=100)
    for _ in range(500):
        env.step([action])
        if env.terminals[0]:
            break
        assert abs(view[X]) <= 2.4
        assert abs(view[ANGLE]) <= np.radians(12)
    assert env.terminals[0]
    last = env.final_observations[0]
    assert sign * last[X] > 2.4
    assert abs(last[ANGLE]) < np.radians(12)


def test_fallen_pole_is_terminal_even_in_the_last_step():
    env, _ = start(log_interval=1)
    length = 1
    while not env.step([RIGHT])[2][0]:
        length += 1
    assert env.final_observations[0][ANGLE] < -np.radians(12)
    for limit, terminal in ((length, True), (length - 1, False)):
        env, _ = start(max_steps=limit, log_interval=1)
        for _ in range(limit):
            infos = env.step([RIGHT])[4]
        assert (env.terminals[0], env.truncations[0]) == (terminal, not terminal)
        assert (infos[0]["score"], infos[0]["perf"]) == (limit, 1)
