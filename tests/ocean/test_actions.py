"""Actions of C environments: types, shapes and values that are accepted or refused."""

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib import buffers, ocean
from tests.ocean.helpers import actions_of, every_env, every_env_with_integer_actions, make


@every_env_with_integer_actions
def test_all_integer_types_and_layouts_are_accepted(name):
    forms = [
        lambda a: a,
        lambda a: a.astype(np.int64),
        lambda a: a.astype(np.uint8),
        lambda a: a.astype(np.int64)[::-1].copy()[::-1],
        lambda a: a.tolist(),
        lambda a: a.astype(">i4"),
        lambda a: a.astype(np.uint64),
    ]
    expected = None
    for form in forms:
        env = make(name, seed=1)
        env.step(form(actions_of(env, np.random.default_rng(5))))
        expected = env.actions.copy() if expected is None else expected
        np.testing.assert_array_equal(env.actions, expected)


@every_env
def test_actions_can_be_written_into_env_actions(name):
    in_place, copied = make(name, seed=1), make(name, seed=1)
    rng = np.random.default_rng(5)
    for _ in range(50):
        in_place.actions[:] = actions_of(in_place, rng)
        in_place.step(in_place.actions)
        copied.step(in_place.actions.copy())
        np.testing.assert_array_equal(in_place.observations, copied.observations)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_actions_can_overlap_the_buffer(dtype, shift):
    model = ocean.Squared(num_envs=8)
    memory = np.arange(18, dtype=np.int32)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, 8) | {"actions": memory[:8]}
    env = ocean.Squared(num_envs=8, buf=buf)
    env.reset()
    actions = memory[2 * shift :].view(dtype)[:8]
    expected = actions.tolist()
    env.step(actions)
    assert env.actions.tolist() == np.clip(expected, -(2**31), 2**31 - 1).tolist()


def test_actions_beyond_int32_are_clipped():
    """2**32 + 1 must not wrap around to the action 1."""
    env = make("squared", num_envs=4)
    env.step(np.array([2**32 + 1, -(2**32) + 1, 2**63 - 1, -(2**63)]))
    assert env.actions.tolist() == [2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
    env.step(np.array([2**63 + 1] * 4, np.uint64))
    assert env.actions.tolist() == [2**31 - 1] * 4


@every_env
def test_wrong_actions_raise_and_change_nothing(name):
    env = make(name, seed=1)
    good = actions_of(env, np.random.default_rng(0))
    before = env.observations.copy()
    dates = good.astype(np.int64).view("M8[s]")  # a dtype without buffer protocol
    for wrong in (
        good[:-1],
        np.zeros((*good.shape, 2), int),
        good.astype(complex),
        None,
        "up",
        b"12345678",
        [],
        0,
        [None] * 8,
        dates,
    ):
        with pytest.raises(pufferlib.APIUsageError, match=r"actions must be .* of shape"):
            env.step(wrong)
    for call in (env.step, env.send):
        with pytest.raises(
            pufferlib.APIUsageError, match=rf"\.{call.__name__}: .* a list of rows of one length, got \[\[0\], 1"
        ):
            call([[0], 1])
    np.testing.assert_array_equal(env.observations, before)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "squared",
            [0, 4, 9, -1],
            r"Squared.step: actions must be in the action space Discrete\(9\), got 9 in row 2",
        ),
        ("breakout", np.array([0, 1, 2, 3]), r"in the action space Discrete\(3\), got 3 in row 3; look at the policy"),
    ],
)
def test_check_actions_refuses_actions_out_of_range(name, wrong, message):
    free, checked = (pufferlib.make(name, num_envs=4, seed=1, check_actions=check) for check in (False, True))
    for env in (free, checked):
        env.reset()
    np.testing.assert_array_equal(free.step([0, 1, 2, 0])[0], checked.step([0, 1, 2, 0])[0])
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.step(wrong)
    free.step(wrong)
    checked.actions[:] = wrong
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.step(checked.actions)
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.send(wrong)


def test_float_actions_of_discrete_spaces_are_refused():
    with pytest.raises(pufferlib.APIUsageError, match="actions must be integers of shape \\(8,\\), got dtype float64"):
        make("squared").step(np.zeros(8))


@pytest.mark.parametrize("name", ["breakout", "pong"])
def test_box_actions_can_be_any_numbers(name):
    env = make(name, num_envs=4, continuous=True)
    assert env.single_action_space == gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    assert env.actions.dtype == np.float32
    for actions in (np.full((4, 1), 2.5), [[1], [0], [-1], [0]], np.full((4, 1), np.nan, np.float32)):
        env.step(actions)
        assert np.isfinite(env.observations).all()
