import math
import pickle

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.models.encoders import Features
from tests.envs import EnvDescription, FunctionEnv


def native_features(space, *rows):
    return Features(EnvDescription(space))(torch.from_numpy(np.array(rows, space.dtype))).tolist()


def emulated_features(space, value):
    """Return the features of ``value``, and check that they are the same with a pickled description."""
    env = GymnasiumPufferEnv(FunctionEnv(space, observe=lambda _: value))
    observation, _ = env.reset()
    rows = torch.from_numpy(np.array(observation)[None])
    description = EnvDescription(env.single_observation_space, emulated=pickle.loads(pickle.dumps(env.emulated)))
    assert torch.equal(Features(description)(rows), Features(env)(rows))
    return Features(env)(rows)[0].tolist()


def test_real_numbers_and_booleans_are_not_changed():
    assert native_features(Box(-9, 9, (2,), np.float64), [-7.5, 3.0]) == [[-7.5, 3.0]]
    assert native_features(Box(0, 1, (2, 1), np.bool_), [[True], [False]]) == [[1.0, 0.0]]
    assert native_features(Box(0, 1, (2,), np.uint8), [0, 1]) == [[0.0, 1.0]]


def test_integers_with_few_values_are_one_hot():
    # one float for each value except the lowest: all 0s, all 1s, all 2s
    assert native_features(Box(-1, 2, (2,), np.int8), [-1, 0], [1, 2]) == [[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1]]
    assert native_features(Box(0, 31, (1,), np.int64), [31]) == [[0.0] * 30 + [1.0]]


def test_large_arrays_of_few_values_are_scaled():
    assert Features(EnvDescription(Box(0, 2, (32, 32), np.uint8))).size == 2048
    assert native_features(Box(0, 2, (1025,), np.uint8), [2] * 1025) == [[1.0] * 1025]
    assert native_features(Box(0, 32, (2,), np.uint8), [16, 32]) == [[0.5, 1.0]]


def test_single_integer_is_one_hot_up_to_thousands_of_values():
    features = emulated_features(Discrete(500, start=3), 4)
    assert features == [1.0] + [0.0] * 498
    assert emulated_features(Discrete(10_000), 5_000) == [pytest.approx(5_000 / 9_999)]


def test_integers_with_many_values_are_scaled_by_their_bounds():
    assert native_features(Box(0, 255, (2, 2), np.uint8), [[0, 51], [102, 255]]) == [
        pytest.approx([0.0, 0.2, 0.4, 1.0])
    ]
    assert native_features(Box(-400, 200, (2,), np.int16), [-400, 200]) == [[-1.0, 0.5]]


def test_unbounded_integers_become_logarithms():
    space = Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (3,), np.int64)
    expected = [-math.log(3), 0.0, math.log(1 + 2**40)]
    assert native_features(space, [-2, 0, 2**40]) == [pytest.approx(expected)]


def test_leaves_are_encoded_by_their_spaces():
    space = Dict(
        {
            "image": Box(0, 255, (2,), np.uint8),
            "number": Box(-1, 1, (1,), np.float32),
            "cells": Box(0, 2, (2,), np.uint8),
            "state": Tuple([Discrete(3, start=5), MultiBinary(2)]),
            "gold": Box(0, 2**31 - 1, (), np.int32),
            "none": Box(0, 9, (0, 2), np.int16),
        }
    )
    value = {
        "image": np.array([51, 255], np.uint8),
        "number": np.array([-0.5], np.float32),
        "cells": np.array([1, 2], np.uint8),
        "state": (7, np.array([1, 0], np.int8)),
        "gold": np.array(19, np.int32),
        "none": np.zeros((0, 2), np.int16),
    }
    # in the order of keys: cells, gold, image, none, number, state
    expected = [1, 0, 0, 1, math.log(20), 0.2, 1.0, -0.5, 0, 1, 1, 0]
    assert emulated_features(space, value) == pytest.approx(expected)


def test_leaves_of_one_dtype_have_separate_bounds():
    space = Tuple([Discrete(3), Box(0, 1000, (2,), np.int32)])
    assert emulated_features(space, (2, np.array([500, 0], np.int32))) == [0.0, 1.0, 0.5, 0.0]
    assert emulated_features(MultiDiscrete([3, 2]), np.array([2, 1])) == [0.0, 1.0, 1.0, 0.0]


def test_text_has_length_and_codes():
    assert emulated_features(Text(4, charset="ab"), "ab") == pytest.approx([0, 1, 0, 0, 97 / 98, 1.0, 0.0, 0.0])
