"""Parameters of C environments: names, types, limits and errors."""

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.ocean import _ocean
from pufferlib.ocean.types import env_types
from tests.ocean.helpers import every_env


def test_unknown_keyword_suggests_another():
    with pytest.raises(
        pufferlib.UnknownNameError, match="Pong: unexpected keyword argument 'frame_skip'; did you mean 'frameskip'"
    ):
        ocean.Pong(frame_skip=4)


@every_env
def test_wrong_values_and_types_are_refused(name):
    for parameter in env_types()[name].parameters:
        wrong = [None, "1", [1], float("nan")]
        if parameter.kind is str:
            wrong = [None, 1, b"S", "ä", "a" * 2000, "a\0b"]
        elif parameter.kind is bool:
            wrong += [1, 0.0]
        else:
            wrong += [True, parameter.high + 1, parameter.low - 1, 10**30]
        if parameter.kind is int:
            wrong += [float(parameter.default)]
        for value in wrong:
            with pytest.raises(pufferlib.APIUsageError, match=f"{parameter.name} must be .*, got"):
                ocean.OceanEnv(name, **{parameter.name: value})


def test_ocean_batch_refuses_wrong_arguments():
    for index, num_games, values in [(-1, 1, []), (99, 1, []), (0, 1, [0.0] * 999), (0, 1, []), (0, 0, [0.0] * 14)]:
        with pytest.raises(pufferlib.APIUsageError, match=r"OceanBatch: .*, got"):
            _ocean.OceanBatch(index, num_games, values, 1)


@every_env
def test_numpy_numbers_are_accepted(name):
    as_numpy = {bool: np.bool_, int: np.int64, float: np.float64, str: np.str_}
    values = {p.name: as_numpy[p.kind](p.default) for p in env_types()[name].parameters}
    given, default = ocean.OceanEnv(name, **values), ocean.OceanEnv(name)
    assert given.single_observation_space == default.single_observation_space
    assert np.array_equal(given.reset(seed=1)[0], default.reset(seed=1)[0])
    given.close()
    default.close()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs must be an int from 1 to 2147483647, got 0"),
        ({"num_envs": 2.0}, r"num_envs must be an int from 1 to 2147483647, got 2\.0"),
        ({"num_envs": True}, "num_envs must be an int from 1 to 2147483647, got True"),
        ({"check_actions": 1}, "check_actions must be True or False, got 1"),
        ({"log_interval": 0}, "log_interval must be an int from 1 to 2147483647, got 0"),
        ({"num_envs": 10**12}, "num_envs must be an int from 1 to 2147483647, got 1000000000000"),
        ({"render_mode": "rgb_aray"}, "unknown render_mode 'rgb_aray'; did you mean 'rgb_array'"),
        (
            {"paddle_height": 600, "height": 500},
            "paddle_height must be at most height, got height=500, paddle_height=600$",
        ),
        ({"seed": "one"}, "seed must be an int, got 'one'"),
    ],
)
def test_wrong_arguments_are_named(kwargs, message):
    with pytest.raises(pufferlib.APIUsageError, match=f"Pong: {message}"):
        ocean.Pong(**kwargs)
