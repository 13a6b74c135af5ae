"""Spaces of one agent and of a batch of agents."""

import pickle

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from pufferlib import APIUsageError
from pufferlib.spaces import MixedBox, action_spec, check_native_spaces, compact_box, joint_space, same_space


@pytest.mark.parametrize(
    ("space", "joint"),
    [
        (Discrete(4), MultiDiscrete([4, 4, 4])),
        (Discrete(4, start=-2), MultiDiscrete([4, 4, 4], start=[-2, -2, -2])),
        (MultiDiscrete([2, 5]), Box(0, np.array([[1, 4]] * 3), dtype=np.int32)),
        (MultiDiscrete([2, 5], start=[1, 2]), Box(np.array([[1, 2]] * 3), np.array([[2, 6]] * 3), dtype=np.int32)),
        (Box(-1, 1, (2,)), Box(-1, 1, (3, 2))),
        (Box(0, 255, (), np.uint8), Box(0, 255, (3,), np.uint8)),
        (
            MixedBox(np.array([-1, 2]), np.array([1, 4]), np.array([False, True]), np.float32),
            MixedBox(np.array([[-1, 2]] * 3), np.array([[1, 4]] * 3), np.array([[False, True]] * 3), np.float32),
        ),
    ],
)
def test_joint_space_has_one_row_per_agent(space, joint):
    assert joint_space(space, 3) == joint
    rows = joint_space(space, 3).sample()
    assert rows.shape == (3, *space.shape)
    assert all(space.contains(rows[i, ...]) for i in range(3))


def test_mixed_box_contains_integers_only_where_expected():
    space = MixedBox(np.array([-1, 2]), np.array([1, 4]), np.array([False, True]), np.float32)
    assert space.sizes.tolist() == [3]
    assert repr(space) == "MixedBox(-1.0 to 1.0, 2 to 4)"
    samples = np.array([space.sample() for _ in range(50)])
    assert set(samples[:, 1]) == {2, 3, 4}
    assert len(set(samples[:, 0])) == 50
    assert all(map(space.contains, samples))
    assert not space.contains(np.array([0.5, 2.5], np.float32))
    assert not space.contains(np.array([0.5, 5], np.float32))
    assert pickle.loads(pickle.dumps(space)) == space
    box = Box(space.low, space.high)
    assert space != box
    assert box != space
    assert not same_space(space, box)


def test_joint_space_refuses_other_spaces():
    with pytest.raises(APIUsageError, match=r"joint_space: expected Box, Discrete or MultiDiscrete, got Dict"):
        joint_space(Dict({}), 2)


@pytest.mark.parametrize(
    ("space", "shape", "dtype"),
    [
        (Discrete(3), (), np.int32),
        (MultiDiscrete([[2, 3], [4, 5]]), (2, 2), np.int32),
        (Box(-1, 1, (2,), np.float64), (2,), np.float64),
    ],
)
def test_action_spec_has_shape_and_dtype(space, shape, dtype):
    assert action_spec(space) == (shape, dtype)


def test_check_native_spaces_refuses_other_spaces():
    check_native_spaces("Env", Box(0, 1), Box(0, 1))
    with pytest.raises(APIUsageError, match=r"Env: single_observation_space must be a Box, got Tuple.*emulation"):
        check_native_spaces("Env", Tuple([Box(0, 1)]), Discrete(2))
    with pytest.raises(APIUsageError, match=r"Env: single_action_space must be Discrete.*got None"):
        check_native_spaces("Env", Box(0, 1), None)


LARGE = 1 << 18  # elements, so that each bound takes a megabyte


@pytest.mark.parametrize(("low", "high"), [(0, 255), (-np.inf, 1)])
def test_large_boxes_share_memory_and_are_compared_quickly(low, high, monkeypatch):
    box, other = Box(low, high, (LARGE,)), Box(low, high, (LARGE,))
    joint, expected = joint_space(box, 3), Box(low, high, (3, LARGE))
    assert joint == expected == compact_box(joint)
    assert repr(joint) == repr(expected)
    assert joint.contains(joint.sample())
    assert joint.is_bounded("below") == expected.is_bounded("below")
    assert np.may_share_memory(joint.low, box.low)
    sent = pickle.dumps(compact_box(box))
    assert len(sent) < 2000
    assert pickle.loads(sent) == box
    with monkeypatch.context() as patch:
        patch.setattr(Box, "__eq__", None)  # comparing all elements takes a second for each 50 MB
        assert same_space(box, other)
        assert same_space(box, compact_box(box))


def test_compact_box_keeps_small_and_varied_boxes():
    small, varied = Box(0, 1, (3,)), Box(np.zeros(LARGE, np.float32), np.arange(LARGE, dtype=np.float32))
    assert compact_box(small) is small
    assert compact_box(varied) is varied
    assert not same_space(varied, Box(0, 1, (LARGE,)))
    assert not same_space(small, Box(0, 1, (3,), np.float64))
    assert joint_space(small, 2).low.flags.writeable
