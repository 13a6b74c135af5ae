import gc

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from torch import nn

from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Default, make_policy
from pufferlib.models._engine import KERNELS, Engine
from pufferlib.models.engine import compile_policy, describe
from pufferlib.models.recurrent import MEMORIES
from pufferlib.spaces import MixedBox
from tests.envs import EnvDescription, FunctionEnv

NUMBERS = Box(-9, 9, (5,), np.float32)
IMAGE = Box(0, 255, (4, 44, 36), np.uint8)
FAR = np.iinfo(np.int64)
NESTED = Dict(
    {
        "image": IMAGE,
        "cells": Box(0, 2, (3, 3), np.uint8),
        "action_mask": MultiBinary(5),
        "state": Tuple([Discrete(40, start=5), Box(-1, 1, (2,), np.float16)]),
        "gold": Box(FAR.min, FAR.max, (2,), np.int64),
        "none": Box(0, 9, (0, 2), np.int16),
    }
)
SPACES = {
    "float32": NUMBERS,
    "float64": Box(-9, 9, (2, 3), np.float64),
    "float16": Box(-9, 9, (3,), np.float16),
    "bool": Box(0, 1, (4,), np.bool_),
    "labels": Box(-1, 4, (11, 11), np.int8),
    "amounts": Box(-400, 200, (7,), np.int16),
    "unsigned": Box(0, 31, (2,), np.uint64),
    "logarithms": Box(FAR.min, FAR.max, (3,), np.int64),
    "codes": Discrete(500, start=3),
}
EVERY_MEMORY = ["none", *MEMORIES]
ACTIONS = {
    "discrete": Discrete(5),
    "several": MultiDiscrete([2, 3]),
    "continuous": Box(-1, 1, (2, 2), np.float32),
    "mixed": MixedBox(np.array([-1, 0, 0]), np.array([1, 2, 1]), np.array([False, True, True]), np.float32),
}


def make_emulated(space, actions):
    return GymnasiumPufferEnv(FunctionEnv(space, actions))


def make_random_policy(env, name="Default", hidden_size=20, **options):
    """Make a policy with weights so large that every part of it affects the outputs."""
    torch.manual_seed(1)
    policy = make_policy(env, name, hidden_size, **options)
    with torch.no_grad():
        for parameter in policy.parameters():
            fan_in = max(1, parameter[0].numel()) if parameter.ndim > 1 else 4
            parameter.normal_(0, fan_in**-0.5)
    return policy


def observations_of(env, rows):
    """Return samples of the observation space, as rows of a batch."""
    space = env.single_observation_space
    if not env.emulated:
        space.seed(1)
        return np.stack([np.asarray(space.sample(), space.dtype) for _ in range(rows)])
    env.env.observation_space.seed(1)
    env.env.observe = lambda _: env.env.observation_space.sample()
    return np.stack([np.array(env.reset()[0]) for _ in range(rows)])


class Outputs:
    """Arrays that an engine fills, and its recurrent state."""

    def __init__(self, engine, policy, rows):
        self.engine, self.state = engine, policy.initial_state(rows)
        self.params, self.values = np.empty((rows, engine.num_params), np.float32), np.empty(rows, np.float32)

    def step(self, observations):
        self.engine.forward(observations, self.state, self.params, self.values)
        return self.params, self.values


def check_equal(policy, batches, engine=None):
    """Check that outputs and state equal those of torch after each of ``batches``."""
    outputs = Outputs(engine or compile_policy(policy), policy, len(batches[0]))
    state, expected, got = policy.initial_state(len(batches[0])), [], []
    with torch.inference_mode():
        for observations in batches:
            expected.append(torch.column_stack(policy.forward_eval(torch.from_numpy(observations), state)).numpy())
            got.append(np.column_stack(outputs.step(observations)))
    np.testing.assert_allclose(np.stack(got), np.stack(expected), rtol=1e-5, atol=1e-5)
    for name, memory in state.items():
        np.testing.assert_allclose(outputs.state[name], memory, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("space", SPACES)
def test_engine_matches_torch_for_any_array(space, actions):
    if isinstance(SPACES[space], Discrete):
        env = make_emulated(SPACES[space], ACTIONS[actions])
    else:
        env = EnvDescription(SPACES[space], ACTIONS[actions])
    check_equal(make_random_policy(env), [observations_of(env, 9)])


@pytest.mark.parametrize(("name", "key"), [("NatureCNN", None), ("MixedCNN", "image")])
def test_engine_matches_torch_for_images_with_other_bounds_and_channels(name, key):
    image = Box(0, 1, (3, 40, 40), np.uint8)
    env = make_emulated(Dict({key: image}), Discrete(5)) if key else EnvDescription(image, Discrete(5))
    check_equal(make_random_policy(env, name, channels=16), [observations_of(env, 3)])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", ["Default", "MixedCNN"])
@pytest.mark.parametrize("memory", EVERY_MEMORY)
def test_engine_matches_torch_for_nested_spaces_with_action_mask(name, memory, kernels):
    env = make_emulated(NESTED, Discrete(5))
    policy = make_random_policy(env, name, memory=memory)
    rows = observations_of(env, 66)
    check_equal(policy, [rows[:33], rows[33:]], Engine(describe(policy), kernels=kernels))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("memory", EVERY_MEMORY)
@pytest.mark.parametrize("shape", [IMAGE.shape, (40, 52, 3)])
def test_engine_matches_torch_for_images(shape, memory, kernels):
    env = EnvDescription(Box(0, 255, shape, np.uint8), Discrete(5))
    policy = make_random_policy(env, "NatureCNN", memory=memory)
    check_equal(policy, [observations_of(env, 3)], Engine(describe(policy), kernels=kernels))


@pytest.mark.parametrize("memory", MEMORIES)
def test_engine_matches_torch_for_a_thousand_recurrent_steps(memory):
    env = EnvDescription(NUMBERS, Discrete(5))
    steps = np.random.default_rng(1).normal(size=(1000, 2, 5)).astype(np.float32)
    check_equal(make_random_policy(env, memory=memory), list(steps))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("hidden_size", [1, 16, 17, 48, 100, 300])
@pytest.mark.parametrize("kernels", KERNELS)
def test_engine_matches_torch_for_any_width(hidden_size, memory, kernels):
    env = EnvDescription(Box(-9, 9, (hidden_size % 7 + 1,), np.float32), Discrete(hidden_size))
    policy = make_random_policy(env, hidden_size=hidden_size, num_layers=3, memory=memory)
    check_equal(policy, [observations_of(env, 5)], Engine(describe(policy), kernels=kernels))


def test_engine_applies_the_action_mask():
    env = EnvDescription(NUMBERS, MultiDiscrete([2, 2]), action_mask=slice(1, 5))
    observations = np.array([[9, 1, 0, 0, np.nan], [1, -0.0, 0, 2, 3]], np.float32)
    with np.errstate(invalid="ignore"):
        params, _ = Outputs(compile_policy(make_random_policy(env)), make_random_policy(env), 2).step(
            np.nan_to_num(observations)
        )
    assert (params == -1e9).tolist() == [[False, True, True, True], [True, True, False, False]]
    check_equal(make_random_policy(env), [np.nan_to_num(observations)])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("memory", EVERY_MEMORY)
@pytest.mark.parametrize("space", [NUMBERS, Box(0, 3, (30,), np.int8)], ids=["numbers", "labels"])
def test_outputs_of_a_row_do_not_depend_on_other_rows(space, memory, kernels):
    env = EnvDescription(space, Discrete(5))
    policy = make_random_policy(env, memory=memory)
    engine = Engine(describe(policy), kernels=kernels)
    observations = observations_of(env, 1024)
    all_params, all_values = Outputs(engine, policy, 1024).step(observations)
    for rows in (0, 1, 2, 7, 8, 9, 33):
        params, values = Outputs(engine, policy, rows).step(observations[:rows])
        assert params.tobytes() == all_params[:rows].tobytes()
        assert values.tobytes() == all_values[:rows].tobytes()


def test_threads_give_the_same_bytes_as_one_thread():
    env = EnvDescription(NUMBERS, Discrete(5))
    policy, observations = make_random_policy(env, hidden_size=128, memory="LSTM"), observations_of(env, 1500)
    single, parallel = (Outputs(compile_policy(policy, threads), policy, 1500) for threads in (1, 3))
    for _ in range(5):
        single.step(observations)
        parallel.step(observations)
    assert single.params.tobytes() == parallel.params.tobytes()
    assert torch.equal(single.state["lstm_c"], parallel.state["lstm_c"])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("memory", EVERY_MEMORY)
def test_nan_and_infinity_affect_only_their_row(memory, number):
    env = EnvDescription(NUMBERS, Discrete(5))
    policy = make_random_policy(env, memory=memory)
    observations = observations_of(env, 9)
    observations[4, 2] = number
    with torch.inference_mode():
        expected, _ = policy.forward_eval(torch.from_numpy(observations), policy.initial_state(9))
    params, _ = Outputs(compile_policy(policy), policy, 9).step(observations)
    assert np.isfinite(np.delete(params, 4, 0)).all()
    np.testing.assert_allclose(params, expected, rtol=1e-5, atol=1e-5)  # NaN where torch has NaN
    assert not np.isnan(number) or np.isnan(params[4]).any()


def test_refresh_reads_updated_weights():
    env = EnvDescription(NUMBERS, Box(-1, 1, (2,), np.float32))
    policy = make_random_policy(env, memory="LSTM")
    engine, observations = compile_policy(policy), observations_of(env, 3)
    before = Outputs(engine, policy, 3).step(observations)[0]
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.1
    assert np.array_equal(Outputs(engine, policy, 3).step(observations)[0], before)
    engine.refresh()
    check_equal(policy, [observations], engine)


def test_forward_accepts_tensors():
    env = EnvDescription(NUMBERS, Discrete(5))
    policy = make_random_policy(env, memory="LSTM")
    observations = observations_of(env, 3)
    expected, _ = Outputs(compile_policy(policy), policy, 3).step(observations)
    params, values = torch.empty(3, 5), torch.empty(2, 3)
    compile_policy(policy).forward(torch.from_numpy(observations), policy.initial_state(3), params, values[1])
    assert np.array_equal(params, expected)


def test_engine_keeps_weights_of_a_deleted_policy():
    env = EnvDescription(NUMBERS, Discrete(5))
    policy = make_random_policy(env)
    outputs = Outputs(compile_policy(policy), policy, 3)
    expected = outputs.step(observations_of(env, 3))[0].copy()
    del policy
    gc.collect()
    outputs.engine.refresh()
    assert np.array_equal(outputs.step(observations_of(env, 3))[0], expected)


class CustomPolicy(Default):
    """Policy with an ``encode_observations`` of its own, which the engine cannot run."""

    def encode_observations(self, observations):
        return super().encode_observations(2 * observations)


def with_softplus(policy):
    policy.encoder[1] = nn.Softplus()


def with_hook(policy):
    policy.encoder.register_forward_hook(lambda *_: None)


def with_method(policy):
    policy.decode_actions = lambda hidden: (hidden, hidden)


def with_parameter(policy):
    policy.temperature = nn.Parameter(torch.ones(1))


def with_bfloat16(policy):
    policy.bfloat16()


@pytest.mark.parametrize("change", [with_softplus, with_hook, with_method, with_parameter, with_bfloat16])
def test_compile_policy_returns_none_for_modified_policies(change):
    policy = make_random_policy(EnvDescription(NUMBERS, Discrete(5)))
    assert compile_policy(policy) is not None
    change(policy)
    assert compile_policy(policy) is None


def test_compile_policy_returns_none_for_custom_networks():
    env = EnvDescription(NUMBERS, Discrete(5))
    assert compile_policy(CustomPolicy(env, 20)) is None
    assert compile_policy(make_policy(env, CustomPolicy, 20, memory="LSTM")) is None
    assert compile_policy(make_random_policy(EnvDescription(IMAGE, Discrete(5)), "ResNet")) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observations": np.zeros((3, 5))}, "observations must be contiguous float32 of shape .rows, 5., got float64"),
        ({"observations": np.zeros((3, 6), np.float32)}, "of shape .rows, 5., got float32 of shape .3, 6."),
        ({"observations": np.zeros((3, 10), np.float32)[:, ::2]}, "got float32 of shape .3, 5., not contiguous"),
        ({"params": np.zeros((2, 5), np.float32)}, "params must be contiguous float32 of shape .3, 5."),
        ({"values": np.zeros((3, 1), np.float32)}, "values must be contiguous float32 of shape .3."),
        ({"state": {"lstm_h": torch.zeros(3, 20), "lstm_c": torch.zeros(3, 4)}}, "lstm_c must be .* .3, 20."),
    ],
)
def test_forward_refuses_wrong_arrays(arguments, message):
    policy = make_random_policy(EnvDescription(NUMBERS, Discrete(5)), memory="LSTM")
    fitting = {
        "observations": np.zeros((3, 5), np.float32),
        "state": policy.initial_state(3),
        "params": np.zeros((3, 5), np.float32),
        "values": np.zeros(3, np.float32),
    }
    with pytest.raises(APIUsageError, match=message):
        compile_policy(policy).forward(**{**fitting, **arguments})


def test_refresh_refuses_weights_of_another_dtype():
    policy = make_random_policy(EnvDescription(NUMBERS, Discrete(5)))
    engine = compile_policy(policy)
    policy.double()
    with pytest.raises(APIUsageError, match=r"weights must be float32 on the CPU, got torch.float64 on cpu"):
        engine.refresh()


def test_unknown_kernels_and_wrong_threads_are_refused():
    spec = describe(make_random_policy(EnvDescription(NUMBERS, Discrete(5))))
    with pytest.raises(APIUsageError, match=r"kernels must be one of .*any, got 'neon'"):
        Engine(spec, kernels="neon")
    with pytest.raises(APIUsageError, match="threads must be from 1 to 256, got 0"):
        Engine(spec, threads=0)
