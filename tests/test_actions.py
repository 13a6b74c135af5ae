"""Actions of a batch are checked in every call, and wrong ones raise an error."""

import numpy as np
import pytest
from gymnasium.spaces import Box, MultiDiscrete

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from tests.envs import SamplePufferEnv


class NoArray:
    """Object that numpy cannot convert, like a torch tensor that requires gradients."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("use detach")


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (NoArray(), r"actions must be something that numpy can convert, got .*\(use detach\); for a tensor give"),
        ([0] * 3, r"actions must have shape \(4,\), one row per agent of the batch, got shape \(3,\)"),
        ([[0]], r"got shape \(1, 1\); give one action for each of the 4 rows"),
        (0, r"got shape \(\)"),
        ([[0]] * 4, r"got shape \(4, 1\)"),
        ([0, [0], 0, 0], r"actions must be an array, or a list of rows of one length, got \[0, \[0\], 0, 0\]"),
        ([0.0] * 4, "actions must be numbers that fit int32, got dtype float64"),
        (["a"] * 4, "got dtype <U1"),
        ([0, 1, 2, 1], r"actions must be in the action space Discrete\(2\), got 2 in row 2"),
        ([0, -1, 0, 0], "got -1 in row 1"),
    ],
)
def test_wrong_actions_are_refused(actions, message):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial", num_envs=2)
    vecenv.reset()
    with pytest.raises(APIUsageError, match=rf"Serial.send: .*{message}"):
        vecenv.step(actions)
    vecenv.step([0, 1, 1, 0])  # a refused call changes nothing


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_all_integer_types_are_accepted(dtype):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    vecenv.reset()
    vecenv.step(np.array([0, 1], dtype))
    assert vecenv.actions.dtype == np.int32
    assert vecenv.actions.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64, list])
@pytest.mark.parametrize("wrong", [2, -1, 2**32, 2**32 + 1, 2**63])
def test_integers_out_of_range_are_refused_on_every_call(dtype, wrong):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    vecenv.reset()
    for actions in ([0, 1], [0, wrong], [1, 0]):
        try:
            array = actions if dtype is list else np.array(actions, dtype)
        except OverflowError:  # this dtype cannot hold the value
            continue
        if wrong in actions:
            with pytest.raises(APIUsageError, match=r"Serial.send: actions must be .*, got "):
                vecenv.step(array)
        else:
            vecenv.step(array)
            assert vecenv.actions.tolist() == actions


class EnvWithActions(SamplePufferEnv):
    """Environment of two agents with a given action space."""

    def __init__(self, action_space, buf=None):
        self.single_observation_space = Box(low=-1, high=1, shape=(1,))
        self.single_action_space = action_space
        self.num_agents = 2
        pufferlib.PufferEnv.__init__(self, buf)


def make(action_space):
    vecenv = pufferlib.vector.make(EnvWithActions, [action_space], backend="Serial")
    vecenv.reset()
    return vecenv


def test_each_element_of_an_action_has_its_own_range():
    vecenv = make(MultiDiscrete([2, 5], start=[0, -1]))
    for good in ([[1, 3], [0, -1]], np.array([[1, 3], [0, -1]]), np.array([[1, 0], [3, -1]], np.int32).T):
        vecenv.step(good)
        assert vecenv.actions.tolist() == [[1, 3], [0, -1]]
    for bad in ([2, 0], [0, 4], [0, -2]):
        for dtype in (np.int32, np.int64):
            with pytest.raises(APIUsageError, match=rf"got \[{bad[0]}, {bad[1]}\] in row 1"):
                vecenv.step(np.array([[0, 0], bad], dtype))


def test_box_actions_are_converted_and_nan_is_refused():
    vecenv = make(Box(low=-1, high=1, shape=(2,)))
    with pytest.raises(APIUsageError, match=r"actions must be in the action space .*, got \[0.0, nan\] in row 1"):
        vecenv.step([[0.0, 1.0], [0.0, float("nan")]])
    vecenv.step([[0.5, 1], [0, -1]])
    assert vecenv.actions.dtype == np.float32
    assert vecenv.actions.tolist() == [[0.5, 1.0], [0.0, -1.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_box_actions_are_checked_on_every_call(dtype):
    vecenv = make(Box(low=-1, high=1, shape=(2,)))
    for bad in (2, -2, np.inf, np.nan):
        with pytest.raises(APIUsageError, match=rf"must be in the action space .*, got \[0.0, {float(bad)}\] in row 1"):
            vecenv.step(np.array([[0, 0], [0, bad]], dtype))
        vecenv.step(np.array([[0, 0], [0, 1]], dtype))
    assert vecenv.actions.tolist() == [[0, 0], [0, 1]]


def test_bounds_rounded_to_float32_are_accepted():
    vecenv = make(Box(low=-0.7, high=0.7, shape=(2,)))
    vecenv.step([[0.7, -0.7]] * 2)
    assert vecenv.actions.tolist() == [np.float32([0.7, -0.7]).tolist()] * 2
