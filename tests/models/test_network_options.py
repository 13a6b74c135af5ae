"""Options of the Default policy: exact outputs in torch and C, initial values, and errors."""

import itertools
import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from torch import nn

from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Default, NatureCNN, Policy, make_policy
from pufferlib.models._engine import KERNELS, Engine
from pufferlib.models.engine import compile_policy, describe
from pufferlib.models.linear import ACTIVATIONS
from pufferlib.models.recurrent import MEMORIES
from tests.envs import EnvDescription, FunctionEnv

NUMBERS = Box(-9, 9, (5,), np.float32)
DISCRETE, CONTINUOUS = Discrete(3), Box(-1, 1, (2,), np.float32)
ROWS = 3
SIZES, CRITIC_SIZES = [19, 33], [40, 18, 16]  # below, above and at a multiple of 16, the panel of the kernels


def randomize(policy):
    """Set weights so large that every part of the policy affects the outputs."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            fan_in = max(1, parameter[0].numel()) if parameter.ndim > 1 else 4
            parameter.normal_(0, fan_in**-0.5, generator=generator)
    return policy


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


NUMPY_ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
}


class NumpyNetwork:
    """A layered network in float64, computed from the weights of a policy by their names."""

    def __init__(self, policy, activation, layer_norm, memory):
        self.weights = {name: each.detach().double().numpy() for name, each in policy.named_parameters()}
        self.activation, self.layer_norm, self.memory = NUMPY_ACTIVATIONS[activation], layer_norm, memory
        self.inner = "" if memory == "none" else "policy."
        self.state = {name: each.double().numpy() for name, each in policy.initial_state(ROWS).items()}

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def encode(self, name, layers, x):
        stride = 3 if self.layer_norm else 2  # modules per layer
        for layer in range(layers):
            x = self.linear(f"{self.inner}{name}.{stride * layer}", x)
            if self.layer_norm:
                norm = f"{self.inner}{name}.{stride * layer + 1}"
                x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
                x = x * self.weights[f"{norm}.weight"] + self.weights[f"{norm}.bias"]
            x = self.activation(x)
        return x

    def remember(self, cell, prefix, x):
        if self.memory == "none":
            return x
        if self.memory == "MinGRU":
            z, n, r = np.split(self.linear(cell, x), 3, -1)
            h = self.state[f"{prefix}mingru_h"]
            self.state[f"{prefix}mingru_h"] = h = h + sigmoid(z) * (n - h)
            return x + sigmoid(r) * (h - x)
        name = f"{prefix}{self.memory.lower()}_h"
        h = self.state[name]
        own_x = x @ self.weights[f"{cell}.weight_ih"].T + self.weights[f"{cell}.bias_ih"]
        own_h = h @ self.weights[f"{cell}.weight_hh"].T + self.weights[f"{cell}.bias_hh"]
        if self.memory == "GRU":
            (r, z, n), (own_r, own_z, own_n) = np.split(own_x, 3, -1), np.split(own_h, 3, -1)
            n, z = np.tanh(n + sigmoid(r + own_r) * own_n), sigmoid(z + own_z)
            self.state[name] = (1 - z) * n + z * h
        else:
            i, f, g, o = np.split(own_x + own_h, 4, -1)
            c = sigmoid(f) * self.state[f"{prefix}lstm_c"] + sigmoid(i) * np.tanh(g)
            self.state[f"{prefix}lstm_c"] = c
            self.state[name] = sigmoid(o) * np.tanh(c)
        return self.state[name]

    def step(self, x, separate):
        """Return params and values of one step."""
        actor = self.remember("cell", "", self.encode("encoder", len(SIZES), x))
        decoded = self.linear(f"{self.inner}decoder", actor)
        if not separate:
            return decoded[:, :-1], decoded[:, -1]
        critic = self.remember("critic.cell", "critic_", self.encode("critic_encoder", len(CRITIC_SIZES), x))
        return decoded, self.linear(f"{self.inner}critic_decoder", critic)[:, 0]


CASES = list(itertools.product(ACTIVATIONS, [False, True], ["shared", "separate"], ["none", *MEMORIES]))


@pytest.mark.parametrize(("activation", "layer_norm", "networks", "memory"), CASES)
def test_torch_and_engine_match_numpy(activation, layer_norm, networks, memory):
    options = {"hidden_sizes": SIZES, "networks": networks, "activation": activation, "layer_norm": layer_norm}
    if networks == "separate":
        options["critic_hidden_sizes"] = CRITIC_SIZES
    policy = randomize(make_policy(EnvDescription(NUMBERS, DISCRETE), memory=memory, **options))
    steps = np.random.default_rng(1).normal(size=(3, ROWS, 5)).astype(np.float32)
    expected = NumpyNetwork(policy, activation, layer_norm, memory)
    engines = [Engine(describe(policy), kernels=kernels) for kernels in KERNELS]
    states = [policy.initial_state(ROWS) for _ in range(1 + len(engines))]
    for observations in steps:
        params, values = expected.step(observations.astype(np.float64), networks == "separate")
        with torch.inference_mode():
            found = [tuple(x.numpy() for x in policy.forward_eval(torch.from_numpy(observations), states[0]))]
        for engine, state in zip(engines, states[1:], strict=True):
            outputs = np.empty((ROWS, 3), np.float32), np.empty(ROWS, np.float32)
            engine.forward(observations, state, *outputs)
            found.append(outputs)
        for found_params, found_values in found:
            np.testing.assert_allclose(found_params, params, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found_values, values, rtol=1e-5, atol=1e-5)
    for state, (name, memories) in itertools.product(states, expected.state.items()):
        np.testing.assert_allclose(state[name], memories, rtol=1e-5, atol=1e-5)


def forward_by_engine(policy, observations):
    engine, rows = compile_policy(policy), len(observations)
    params, values = np.empty((rows, engine.num_params), np.float32), np.empty(rows, np.float32)
    engine.forward(observations, policy.initial_state(rows), params, values)
    return params, values


@pytest.mark.parametrize("networks", ["shared", "separate"])
@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_state_dependent_std_is_decoded_and_limited(networks, memory):
    env = EnvDescription(NUMBERS, CONTINUOUS)
    policy = randomize(make_policy(env, hidden_size=20, memory=memory, networks=networks, state_dependent_std=True))
    decoder = policy.decoder if memory == "none" else policy.policy.decoder
    assert "log_std" not in dict(policy.named_parameters())
    with torch.no_grad():
        decoder.weight[2:4] *= 99  # so that both limits are reached
    observations = np.random.default_rng(1).normal(0, 3, (200, 5)).astype(np.float32)
    with torch.inference_mode():
        hidden = policy.encode_observations(torch.from_numpy(observations))
        if memory != "none":
            hidden = policy.remember(hidden[None], policy.initial_state(200), None)[0][0]
        decoded = decoder(hidden[:, :20])
        params, values = policy.forward_eval(torch.from_numpy(observations))
    assert torch.equal(params[:, :2], decoded[:, :2])
    assert torch.equal(params[:, 2:], decoded[:, 2:4].clamp(-5, 2))
    assert params[:, 2:].min() == -5
    assert params[:, 2:].max() == 2
    found_params, found_values = forward_by_engine(policy, observations)
    np.testing.assert_allclose(found_params, params, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found_values, values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("state_dependent_std", [False, True])
@pytest.mark.parametrize("name", ["Default", "NatureCNN", "ResNet"])
def test_log_std_init_is_the_first_log_std(name, state_dependent_std):
    space = NUMBERS if name == "Default" else Box(0, 255, (3, 40, 40), np.uint8)
    env = EnvDescription(space, CONTINUOUS)
    policy = make_policy(env, name, 16, log_std_init=-1.5, state_dependent_std=state_dependent_std)
    space.seed(1)
    observations = torch.from_numpy(np.stack([space.sample() for _ in range(9)]))
    with torch.inference_mode():
        params, _ = policy.forward_eval(observations)
    torch.testing.assert_close(params[:, 2:], torch.full((9, 2), -1.5), atol=0.3 * state_dependent_std, rtol=0)


NESTED = Dict(
    {
        "cells": Box(0, 2, (3, 3), np.uint8),
        "action_mask": MultiBinary(5),
        "position": Box(-1, 1, (2,), np.float32),
    }
)


@pytest.mark.parametrize("space", [NESTED, Box(0, 3, (30,), np.int8)], ids=["nested", "labels"])
@pytest.mark.parametrize("memory", ["none", "MinGRU"])
@pytest.mark.parametrize("options", [{}, {"layer_norm": True}, {"activation": "gelu", "layer_norm": True}], ids=str)
def test_separate_networks_read_labels_and_masks(space, memory, options):
    env = GymnasiumPufferEnv(FunctionEnv(space, MultiDiscrete([2, 3])))
    policy = randomize(make_policy(env, memory=memory, hidden_sizes=[24, 20], networks="separate", **options))
    env.env.observation_space.seed(1)
    env.env.observe = lambda _: env.env.observation_space.sample()
    observations = np.stack([np.array(env.reset()[0]) for _ in range(70)])  # several blocks of rows
    with torch.inference_mode():
        params, values = policy.forward_eval(torch.from_numpy(observations))
    assert (params == -1e9).any() == (space is NESTED)
    found_params, found_values = forward_by_engine(policy, observations)
    np.testing.assert_allclose(found_params, params, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found_values, values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("memory", ["none", *MEMORIES])
def test_separate_networks_share_no_gradients(memory):
    policy = randomize(
        make_policy(EnvDescription(NUMBERS, DISCRETE), hidden_size=8, memory=memory, networks="separate")
    )
    params, values = policy(torch.randn(4, 2, 5), episode_starts=torch.zeros(4, 2, dtype=torch.bool))
    for outputs, is_critic in ((params.square(), False), (values.square(), True)):
        policy.zero_grad()
        outputs.sum().backward(retain_graph=True)
        touched = {name for name, each in policy.named_parameters() if each.grad is not None and each.grad.any()}
        assert touched
        assert touched == {name for name, _ in policy.named_parameters() if ("critic" in name) == is_critic}


@pytest.mark.parametrize("memory", MEMORIES)
def test_segments_equal_single_steps_with_separate_networks(memory):
    env = EnvDescription(NUMBERS, DISCRETE)
    sizes = {"hidden_sizes": [16, 12], "critic_hidden_sizes": [20]}
    policy = randomize(make_policy(env, memory=memory, networks="separate", activation="silu", **sizes))
    observations, starts = torch.randn(6, 2, 5), torch.zeros(6, 2, dtype=torch.bool)
    starts[3, 1] = True
    state = policy.initial_state(2)
    assert {name: each.shape[1] for name, each in state.items()} == policy.memory_sizes()
    with torch.no_grad():
        params, values = policy(observations, episode_starts=starts)
        for step in range(6):
            for each in state.values():
                each[starts[step]] = 0
            expected_params, expected_values = policy.forward_eval(observations[step], state)
            torch.testing.assert_close(params[step], expected_params)
            torch.testing.assert_close(values[step], expected_values)


def test_defaults_are_the_network_of_earlier_versions():
    torch.manual_seed(1)
    policy = Default(EnvDescription(NUMBERS, CONTINUOUS), 16)
    assert {name: tuple(each.shape) for name, each in policy.named_parameters()} == {
        "log_std": (2,),
        "decoder.weight": (3, 16),
        "decoder.bias": (3,),
        "encoder.0.weight": (16, 5),
        "encoder.0.bias": (16,),
        "encoder.2.weight": (16, 16),
        "encoder.2.bias": (16,),
    }
    torch.manual_seed(1)
    other = Default(EnvDescription(NUMBERS, CONTINUOUS), hidden_sizes=[16, 16], log_std_init=0.0)
    assert all(map(torch.equal, policy.parameters(), other.parameters()))
    weight = policy.encoder[2].weight.detach()
    torch.testing.assert_close(weight @ weight.t(), 2 * torch.eye(16))
    assert not policy.log_std.any()


def test_weights_without_orthogonal_init_are_those_of_torch():
    policy = Default(EnvDescription(NUMBERS, DISCRETE), 64, orthogonal_init=False)
    for layer in (policy.encoder[0], policy.encoder[2]):
        bound = layer.in_features**-0.5
        assert 0.9 * bound < layer.weight.abs().max() <= bound
        assert 0 < layer.bias.abs().max() <= bound
    assert policy.decoder.weight[:-1].abs().max() <= 0.01 * 64**-0.5  # still close to uniform
    assert policy.decoder.weight[-1].abs().max() > 0.01 * 64**-0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda policy: nn.ELU(0.5),
        lambda policy: nn.GELU("tanh"),
        lambda policy: nn.Softplus(),
    ],
)
def test_other_activations_act_in_torch(change):
    policy = make_policy(EnvDescription(NUMBERS, DISCRETE), hidden_size=8, layer_norm=True)
    assert compile_policy(policy) is not None
    policy.encoder[2] = change(policy)
    assert compile_policy(policy) is None


def test_other_layer_norms_act_in_torch():
    for norm in (nn.LayerNorm(8, eps=1e-3), nn.LayerNorm(8, elementwise_affine=False)):
        policy = make_policy(EnvDescription(NUMBERS, DISCRETE), hidden_size=8, layer_norm=True)
        policy.encoder[1] = norm
        assert compile_policy(policy) is None


def test_engine_has_room_for_eight_memories():
    env = EnvDescription(NUMBERS, DISCRETE)
    for layers, is_compiled in ((4, True), (5, False)):
        policy = make_policy(env, hidden_size=8, memory="MinGRU", memory_layers=layers, networks="separate")
        assert (compile_policy(policy) is not None) == is_compiled


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"activation": "softplus"},
            "activation must be 'relu' or 'tanh' or 'silu' or 'elu' or 'gelu', got 'softplus'",
        ),
        ({"networks": "both"}, "networks must be 'shared' or 'separate', got 'both'"),
        ({"num_layers": 0}, "num_layers must be an int of at least 1, got 0"),
        ({"hidden_sizes": [64, 0]}, r"hidden_sizes must be a list of ints of at least 1, got \[64, 0\]"),
        ({"hidden_sizes": [64.0]}, r"hidden_sizes must be a list of ints of at least 1, got \[64.0\]"),
        ({"hidden_sizes": "64"}, r"hidden_sizes must be a list of ints of at least 1, got '64'"),
        (
            {"critic_hidden_sizes": [-1], "networks": "separate"},
            r"critic_hidden_sizes must be a list of ints of at least 1, got \[-1\]",
        ),
        ({"critic_hidden_sizes": [8]}, r"critic_hidden_sizes is for networks 'separate', got \[8\] with .* 'shared'"),
        ({"log_std_init": math.nan}, "log_std_init must be from -5 to 2, got nan"),
        ({"log_std_init": 3.0}, "log_std_init must be from -5 to 2, got 3.0"),
    ],
)
def test_bad_values_are_refused(options, message):
    with pytest.raises(APIUsageError, match=f"Default: {message}"):
        make_policy(EnvDescription(NUMBERS, CONTINUOUS), hidden_size=8, **options)


@pytest.mark.parametrize("options", [{"log_std_init": -1.0}, {"state_dependent_std": True}])
def test_std_of_discrete_actions_is_refused(options):
    (option,) = options
    with pytest.raises(APIUsageError, match=rf"{option} is for continuous actions, got the action space Discrete\(3\)"):
        make_policy(EnvDescription(NUMBERS, DISCRETE), hidden_size=8, **options)


class Plain(Policy):
    """Policy that takes no options."""

    def __init__(self, env):
        super().__init__(env, 5)

    def encode_observations(self, observations):
        return observations


class Wide(Plain):
    """Policy with one of the options of the settings."""

    def __init__(self, env, layer_norm=False):
        super().__init__(env)
        self.layer_norm = layer_norm


def test_options_that_a_policy_does_not_take_are_refused():
    images = EnvDescription(Box(0, 255, (3, 40, 40), np.uint8), DISCRETE)
    message = (
        "the policy NatureCNN does not take the option activation, got 'tanh'; "
        "it takes hidden_size, log_std_init, state_dependent_std, channels; remove policy.activation"
    )
    for name in ("NatureCNN", NatureCNN):
        with pytest.raises(APIUsageError, match=message):
            make_policy(images, name, activation="tanh")
    env = EnvDescription(NUMBERS, DISCRETE)
    with pytest.raises(APIUsageError, match=r"Plain does not take the option hidden_sizes.*it takes no options"):
        make_policy(env, Plain, hidden_sizes=(8,))
    assert make_policy(env, Wide, layer_norm=True).layer_norm
