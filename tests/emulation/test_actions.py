"""Actions of any space: conversion of flat actions for the environment, and errors for wrong ones."""

import functools

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Text, Tuple

from pufferlib import APIUsageError, vector
from pufferlib.emulation import GymnasiumPufferEnv, action_layout
from pufferlib.spaces import MixedBox
from tests.envs import FunctionEnv


def step_and_get_action(space, action):
    env = GymnasiumPufferEnv(FunctionEnv(action_space=space))
    env.reset()
    env.step(action)
    return env.env.actions[-1]


@pytest.mark.parametrize("action", [3, np.int32(3), np.int64(3), np.uint8(3), np.array(3), np.array([3]), [3]])
def test_discrete_action_becomes_python_int(action):
    assert step_and_get_action(Discrete(4), action) == 3
    assert type(step_and_get_action(Discrete(4), action)) is int


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, list, tuple])
def test_nested_actions_are_restored(dtype):
    space = Dict({"a": Discrete(2), "b": Tuple([Discrete(3), MultiDiscrete([4, 5])]), "c": MultiBinary(2)})
    flat = [1, 2, 3, 4, 0, 1]
    action = step_and_get_action(space, dtype(flat) if dtype in (list, tuple) else np.array(flat, dtype))
    assert action["a"] == 1
    assert action["b"][0] == 2
    assert type(action["a"]) is int
    np.testing.assert_array_equal(action["b"][1], [3, 4])
    np.testing.assert_array_equal(action["c"], [0, 1])
    assert space.contains(action)


def test_nested_boxes_are_flattened_to_one_box():
    space = Dict({"a": Box(-1, 1, (2, 2)), "b": Tuple([Box(0, 5, (), np.float64), Box(-2, 2, (1,), np.float16)])})
    flat = action_layout(space).flat_space
    assert flat == Box(np.array([-1, -1, -1, -1, 0, -2.0]), np.array([1, 1, 1, 1, 5, 2.0]), dtype=np.float64)
    action = step_and_get_action(space, [0.5, -0.5, 1, -1, 4.5, 0.25])
    assert space.contains(action)
    assert action["a"].tolist() == [[0.5, -0.5], [1, -1]]
    assert [part.tolist() for part in action["b"]] == [4.5, [0.25]]
    shared = np.zeros(6)
    assert not np.shares_memory(step_and_get_action(space, shared)["a"], shared)


MIXED = Dict(
    {
        "aim": Box(-1, 1, (2,), np.float32),
        "button": Discrete(3, start=5),
        "rest": Tuple([MultiBinary(2), Box(0, 9, (), np.float16), Box(-3, 3, (1,), np.int16), MultiDiscrete([4, 2])]),
    }
)


def test_integers_and_floats_are_flattened_to_a_mixed_box():
    flat = action_layout(MIXED).flat_space
    low, high = [-1, -1, 5, 0, 0, 0, -3, 0, 0], [1, 1, 7, 1, 1, 9, 3, 3, 1]
    is_integer = np.array([0, 0, 1, 1, 1, 0, 1, 1, 1], bool)
    assert flat == MixedBox(np.array(low), np.array(high), is_integer, np.float32)
    action = step_and_get_action(MIXED, [0.5, -0.5, 6, 1, 0, 4.5, -2, 3, 1])
    assert MIXED.contains(action)
    assert type(action["button"]) is int
    assert action["aim"].tolist() == [0.5, -0.5]
    assert [part.tolist() for part in action["rest"]] == [[1, 0], 4.5, [-2], [3, 1]]


@pytest.mark.parametrize(
    ("part", "dtype", "number"),
    [
        (Box(-1, 1, (1,), np.float64), np.float64, 0.1),
        (Discrete(2, start=2**24), np.float64, 2**24 + 1),
        (Discrete(2, start=2**24 - 1), np.float32, 2**24),
        (MultiBinary(1), np.float32, 1),
    ],
)
def test_mixed_box_holds_all_numbers_exactly(part, dtype, number):
    space = Tuple([part, MultiBinary(1), Box(0, 1, (1,), np.float16)])
    assert action_layout(space).flat_space.dtype == dtype
    assert step_and_get_action(space, [number, 1, 0])[0] == number


def test_one_of_and_text_among_floats():
    space = Tuple([OneOf([Discrete(2), MultiDiscrete([3, 3])]), Text(2, charset="ab"), Box(-1, 1, (1,), np.float32)])
    action = step_and_get_action(space, [1, 0, 2, 1, 2, 0, 1, 0.5])
    assert action[0][0] == 1
    assert action[0][1].tolist() == [2, 1]
    assert (action[1], action[2].tolist()) == ("ab", [0.5])


def test_fractions_for_integers_among_floats_are_refused():
    space = Dict({"aim": Box(-1, 1, (1,), np.float32), "button": Discrete(3)})
    with pytest.raises(APIUsageError, match=r"must have integers at the places of discrete parts.*got \[0.5, 1.5\]"):
        step_and_get_action(space, [0.5, 1.5])
    with vector.make(functools.partial(make_emulated, space), num_envs=2, backend="Serial") as vecenv:
        vecenv.reset()
        vecenv.step(vecenv.action_space.sample())
        with pytest.raises(APIUsageError, match=r"must have integers at the places of discrete parts"):
            vecenv.step([[0.5, 1], [0.5, 1.5]])


def make_emulated(space):
    return GymnasiumPufferEnv(FunctionEnv(action_space=space))


def test_one_of_action_has_index_and_options():
    space = OneOf([Discrete(2), Tuple([Discrete(3), Box(-1, 1, (2,), np.int8)])])
    assert action_layout(space).flat_space == MultiDiscrete([2, 2, 3, 3, 3], start=[0, 0, 0, -1, -1])
    assert step_and_get_action(space, [0, 1, 2, 0, 0]) == (0, 1)
    action = step_and_get_action(space, [1, 1, 2, 0, -1])
    assert action[1][1].tolist() == [0, -1]
    assert space.contains(action)


def test_text_action_has_length_and_characters():
    space = Text(3, charset="zab")
    assert action_layout(space).flat_space == MultiDiscrete([3, 3, 3, 3], start=[1, 0, 0, 0])
    assert step_and_get_action(space, [2, 2, 0, 1]) == "za"
    for action, place in (
        ([0, 0, 0, 0], "length must be in 1 to 3"),
        ([1, 3, 0, 0], "characters must be in 0 to 2"),
    ):
        with pytest.raises(APIUsageError, match=rf"action\.{place}"):
            step_and_get_action(space, action)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Dict({"a": Sequence(Discrete(2))}), r"action\['a'\] is Sequence.*any number of parts; use Discrete"),
        (Graph(Discrete(2), None), r"action is Graph"),
        (
            Dict({"a": Box(0, np.inf, (2,)), "b": Discrete(2)}),
            r"action\['a'\] is beside discrete.* finite bounds, got Box",
        ),
        (Dict({"a": Box(0, 1, (2,)), "b": Discrete(2**40)}), r"action\['b'\] must be within int32"),
        (Tuple([Box(-np.inf, np.inf, (1,), np.int64)]), r"action\[0\] must be within int32.*smaller bounds"),
        (Discrete(2**40), r"action must be within int32, got Discrete"),
        (Tuple([]), r"action space Tuple.* is empty"),
    ],
)
def test_unsupported_action_spaces_are_named(space, message):
    with pytest.raises(APIUsageError, match=message):
        action_layout(space)


def test_flat_space_keeps_start_of_discrete():
    layout = action_layout(Dict({"a": Discrete(2, start=5), "b": Discrete(3)}))
    assert layout.flat_space == MultiDiscrete([2, 3], start=[5, 0])


def test_bounds_rounded_to_float32_are_accepted():
    assert step_and_get_action(Box(-0.7, 0.7, (2,)), [-0.7, 0.7]).tolist() == np.float32([-0.7, 0.7]).tolist()


def test_box_actions_out_of_range_are_refused_on_every_call():
    space = Dict({"a": Box(-1, 1, (2,)), "b": Box(-1, 1, (1,), np.float64)})
    for kind, size in ((space, 3), (Box(-1, 1, (2,)), 2)):
        env = GymnasiumPufferEnv(FunctionEnv(action_space=kind))
        for bad in (1.5, np.inf, np.nan):
            env.reset()
            env.step(np.full(size, 0.5))
            with pytest.raises(APIUsageError, match=rf"the action must be in .*, got {bad} to {bad}; wrap"):
                env.step(np.full(size, bad))


@pytest.mark.parametrize(
    "space",
    [
        Discrete(5, start=-2),
        Box(-1, 1, (2, 3)),
        Box(-1, 1, (2,), np.float64),
        Box(0, 255, (4,), np.uint8),
        MultiDiscrete([3, 4], start=[-1, 5]),
        MultiBinary((2, 2)),
        Dict({"a": Box(-1, 1, (2,)), "b": Tuple([Box(-1, 1, (), np.float64), Box(-1, 1, (1,), np.float16)])}),
        Dict({"a": Discrete(3), "b": Box(-300, 300, (2, 2), np.int16), "c": Box(0, 200, (3,), np.uint8)}),
        Tuple([MultiDiscrete([5, 6]), OneOf([Discrete(3), MultiBinary(2), Dict({"x": Discrete(7)})])]),
    ],
    ids=str,
)
def test_vector_step_passes_the_same_actions_as_step(space):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=lambda: FunctionEnv(action_space=space))
    vecenv = vector.make(lambda buf: creator(buf=buf), num_envs=2, backend="Serial")
    alone = [creator(), creator()]
    flat = vecenv.single_action_space
    flat.seed(0)
    vecenv.reset()
    for env in alone:
        env.reset()
    for _ in range(20):
        actions = [flat.sample() for _ in alone]
        vecenv.step(np.array(actions))
        for env, action in zip(alone, actions, strict=True):
            env.step(action)
    for env, other in zip(vecenv.envs, alone, strict=True):
        for got, want in zip(env.env.actions, other.env.actions, strict=True):
            assert space.contains(got)
            assert repr(got) == repr(want)
    kept = [repr(action) for action in vecenv.envs[0].env.actions]
    vecenv.actions[...] = flat.sample()  # actions kept by an environment must not change
    assert [repr(action) for action in vecenv.envs[0].env.actions] == kept


def test_box_action_is_copied_and_converted():
    action = np.array([0.5, -0.5])
    got = step_and_get_action(Box(-1, 1, (2,)), action)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, action)
    shared = np.zeros(2, np.float32)
    assert not np.shares_memory(step_and_get_action(Box(-1, 1, (2,)), shared), shared)


@pytest.mark.parametrize(
    ("space", "action", "message"),
    [
        (Discrete(4), 4, r"action must be in 0 to 3, got 4"),
        (Discrete(4), -1, r"in 0 to 3"),
        (Discrete(4), 1.5, r"must be integers of shape \(\), got float64"),
        (Discrete(4), np.array([1, 2]), r"got int64 of shape \(2,\)"),
        (Discrete(4), True, r"got bool"),
        (Discrete(4), None, r"got object"),
        (MultiDiscrete([2, 3]), [1, 3], r"action must be in 0 to 2, got 3"),
        (MultiDiscrete([2, 3]), [1, 1, 1], r"of shape \(2,\), got int64 of shape \(3,\)"),
        (Dict({"a": Discrete(2), "b": Discrete(3)}), [1, 3], r"action\['b'\] must be in 0 to 2, got 3"),
        (Dict({"a": Discrete(2)}), {"a": 1}, r"must be integers of shape \(1,\), got object"),
        (Box(-1, 1, (2,)), [0.0, 2.0], r"must be in Box.*got 0.0 to 2.0.*ClipAction"),
        (Box(-1, 1, (2,)), [0.0, np.nan], r"must be in Box"),
        (Box(-1, 1, (2,)), [0.0], r"must be numbers of shape \(2,\), got float64 of shape \(1,\)"),
        (Box(-1, 1, (1, 2)), [[0.0], [0.0, 0.0]], r"a list of rows of one length, got \[\[0.0\], \[0.0, 0.0\]\]"),
        (Box(0, 3, (1,), np.int32), [0.5], r"must be int32 of shape"),
        (Dict({"a": Box(-1, 1, (2,)), "b": Box(0, 5, ())}), [0, 0, 6], r"must be in Box.*got 0.0 to 6.0"),
        (Dict({"a": Box(-1, 1, (2,))}), {"a": [0, 0]}, r"must be numbers of shape \(2,\), got object"),
        (Tuple([Box(1, 3, (1,), np.uint8)]), [4], r"action\[0\] must be in 1 to 3, got 4"),
        (OneOf([Discrete(2), Discrete(9)]), [1, 2, 8], r"action.f0 must be in 0 to 1, got 2"),
    ],
)
def test_wrong_actions_are_named(space, action, message):
    with pytest.raises(APIUsageError, match=message):
        step_and_get_action(space, action)
