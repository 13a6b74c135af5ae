"""Tests of exported policies: their outputs match torch for all observations, memories and actions."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from torch import nn

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.exports.c_source import c_source, play_c
from pufferlib.exports.exported import export, write_checked
from pufferlib.exports.recording import difference, record
from pufferlib.exports.trained import trained_policy
from pufferlib.models import Default, make_policy
from pufferlib.training.normalization import attach_moments
from pufferlib.wrappers.vector import NormalizeObservation
from tests.envs import FunctionEnv
from tests.needs import missing_extra
from tests.tiers import once

FAR = np.iinfo(np.int64)
WIDE = np.array([0, -1, -np.inf, 99.5], np.float32), np.array([1000, 1, np.inf, 100], np.float32)
NUMBERS = Box(-9, 9, (5,), np.float32)
PICTURE = Box(0, 255, (4, 44, 36), np.uint8)
NESTED = Dict(
    {
        "picture": PICTURE,
        "cells": Box(0, 2, (3, 3), np.uint8),
        "action_mask": MultiBinary(5),
        "state": Tuple([Discrete(40, start=5), Box(-1, 1, (2,), np.float16)]),
        "long": Box(FAR.min, FAR.max, (2,), np.int64),
        "none": Box(0, 9, (0, 2), np.int16),
    }
)
REALS = Dict({"at": Box(-1, 1, (3,), np.float32), "speed": Box(-9, 9, (2, 2), np.float32)})
MIXED = Tuple(
    [Box(0, np.array([1000, 1], np.float32)), Discrete(3, start=-2), Box(-1, 1, (1,), np.float64), MultiBinary(1)]
)
REAL_MASK, WIDE_MASK = (
    Dict({"action_mask": Box(0, 1, (4,), kind), "at": Box(-9, 9, (3,), kind)}) for kind in ("f4", "f8")
)
SEPARATE = {"networks": "separate", "hidden_sizes": [24, 20], "critic_hidden_sizes": [40, 33, 17]}
#: Observation space, action space and policy options by name.
CASES = {
    "plain": (NUMBERS, Discrete(5), {}),
    "codes": (Discrete(500, start=3), Discrete(3, start=-2), {}),
    "labels": (Box(-1, 4, (11, 11), np.int8), MultiDiscrete([2, 3], start=[5, -1]), {}),
    "scalars": (Tuple([Discrete(32), Discrete(11, start=2)]), Discrete(2), {}),
    "logarithms": (Box(FAR.min, FAR.max, (3,), np.int64), Discrete(4), {"num_layers": 3}),
    "float64": (Box(-9, 9, (2, 3), np.float64), Box(-1, 1, (2, 2), np.float32), {}),
    "unbounded": (NUMBERS, Box(-np.inf, np.inf, (2,), np.float32), {"memory": "LSTM"}),
    "rescaled": (NUMBERS, Box(*WIDE), {"memory": "GRU"}),
    "integers": (NUMBERS, Box(-3, 4, (2,), np.int8), {"memory": "GRU"}),
    "bytes": (NUMBERS, Box(0, 255, (2,), np.uint8), {}),
    "reals": (REALS, Discrete(3), {"memory": "LSTM"}),
    "real mask": (REAL_MASK, Discrete(4), {}),
    "wide mask": (WIDE_MASK, Discrete(4), {}),
    "stacked": (NUMBERS, Discrete(5), {"memory": "MinGRU", "memory_layers": 3}),
    "nested": (NESTED, Discrete(5), {"name": "MixedCNN", "memory": "MinGRU"}),
    "flat": (NESTED, Discrete(5), {"memory": "LSTM"}),
    "picture": (PICTURE, Discrete(5), {"name": "NatureCNN"}),
    "pictures": (PICTURE, Discrete(5), {"name": "NatureCNN", "memory": "GRU"}),
    "tanh": (NUMBERS, Box(-1, 1, (2,), np.float32), {"activation": "tanh", "networks": "separate"}),
    "elu": (NUMBERS, Discrete(5), {"activation": "elu", "hidden_sizes": [40, 17], "layer_norm": True}),
    "stds": (NUMBERS, Box(-1, 1, (2,), np.float32), {"activation": "silu", "state_dependent_std": True}),
    "separate": (
        NUMBERS,
        Box(-1, 1, (2,), np.float32),
        {**SEPARATE, "activation": "silu", "layer_norm": True, "state_dependent_std": True, "memory": "LSTM"},
    ),
    "mixed": (NESTED, MIXED, {"state_dependent_std": True}),
    "masked": (NESTED, Discrete(5), {**SEPARATE, "activation": "gelu", "layer_norm": True, "memory": "MinGRU"}),
}
DEFAULT_C = {"nested"}  # most kinds of layers, spaces and memories between them
TORCH_CASES = ["nested", "tanh", "elu", "stds", "separate", "mixed", "masked"]
STEPS = 100

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is on the PATH")
needs_onnx = pytest.mark.skipif(bool(missing_extra("export")), reason=missing_extra("export") or "it is there")


def trained_case(case, **changes):
    """Return a policy with random weights for the environment of a case, with episodes of seven steps."""
    observations, actions, options = CASES[case]
    torch.manual_seed(1)

    def make():
        return GymnasiumPufferEnv(FunctionEnv(observations, actions, length=7))

    vecenv = vector.make(make, num_envs=2, backend="Serial", seed=1, autoreset="same_step")
    policy = make_policy(vecenv.driver_env, **{"hidden_size": 20, **options, **changes})
    if case in ("rescaled", "mixed"):
        policy.distribution.rescale(True)
    with torch.no_grad():
        for parameter in policy.parameters():
            fan_in = max(1, parameter[0].numel()) if parameter.ndim > 1 else 4
            parameter.normal_(0, fan_in**-0.5)
    return trained_policy(policy, vecenv, f"test/{case}")


@needs_compiler
@pytest.mark.parametrize("case", once(CASES, DEFAULT_C))
def test_c_outputs_match_torch(case, tmp_path):
    assert write_checked(trained_case(case), "c", tmp_path / "agent.c", steps=STEPS) < 1e-5


def test_inputs_have_distinct_names():
    space = Dict({"a.b": Box(0, 1, (2,)), "a": Dict({"b": Discrete(3)})})
    vecenv = vector.make(lambda: GymnasiumPufferEnv(FunctionEnv(space)), backend="Serial", autoreset="same_step")
    trained = trained_policy(make_policy(vecenv.driver_env, hidden_size=4), vecenv, "test/clash")
    assert sorted(field.name for field in trained.fields) == ["observation.a%2Eb", "observation.a.b"]


class Traced(Default):
    """A policy with a memory of its own, that the engine does not support."""

    def initial_state(self, num_agents, device="cpu"):
        return {"seen": torch.zeros(num_agents, 3, dtype=torch.uint8, device=device)}

    def encode_observations(self, observations):
        best = observations.argmax(-1, keepdim=True)
        near = torch.where(observations > 1, observations.clamp(max=3), best.float())
        planes = nn.functional.pad(near, (1, 1))[:, 1:-1].unsqueeze(1).expand(-1, 2, -1).mean(1)
        sums = torch.stack([near.sum(-1), near.amax(-1), near.amin(-1), near[:, 1], planes.gather(1, best)[:, 0]], -1)
        return super().encode_observations(torch.tanh(sums) + planes)

    def forward_eval(self, observations, state=None):
        params, values = self.decode_actions(self.encode_observations(observations))
        state["seen"] = state["seen"] + 100
        state["seen"][:, 1] = 7
        return params + state["seen"][:, :1] * 0.01, values


@pytest.mark.all
@needs_compiler
def test_c_outputs_of_a_traced_policy_match_torch(tmp_path):
    trained = trained_case("plain")
    trained.policy.__class__ = Traced
    assert write_checked(trained, "c", tmp_path / "agent.c", steps=STEPS) < 1e-5


@needs_compiler
@pytest.mark.all
@pytest.mark.parametrize("name", ["moba", "nmmo3", "snake", "tactical"])
def test_c_outputs_of_shipped_policies_of_their_own_match_torch(name, tmp_path):
    assert export(name, "c", tmp_path / "agent.c", runs=tmp_path).difference < 1e-5


def test_unsupported_operations_are_named():
    class Sorted(Default):
        def encode_observations(self, observations):
            return super().encode_observations(observations.sort(-1).values)

    trained = trained_case("plain")
    trained.policy.__class__ = Sorted
    with pytest.raises(APIUsageError, match=r"this policy: the class Sorted, nor the operation aten\.sort"):
        c_source(trained)


@needs_onnx
@pytest.mark.parametrize(
    "case", once([*TORCH_CASES, "codes", "float64", "unbounded", "integers", "scalars", "stacked"], [])
)
def test_onnx_outputs_match_torch(case, tmp_path):
    assert write_checked(trained_case(case), "onnx", tmp_path / "agent.onnx", steps=STEPS) < 1e-5


@pytest.mark.parametrize("case", once([*TORCH_CASES, "labels", "reals", "scalars"], ["labels", "scalars"]))
def test_torch_program_outputs_match_policy(case, tmp_path):
    assert write_checked(trained_case(case), "torch", tmp_path / "agent.pt2", steps=STEPS) < 1e-5


@pytest.mark.parametrize(
    "to",
    [
        pytest.param("c", marks=needs_compiler),
        pytest.param("onnx", marks=[needs_onnx, pytest.mark.all]),
        pytest.param("pt2", marks=pytest.mark.all),
    ],
)
def test_rescaled_actions_are_in_units_of_the_space(to, tmp_path):
    trained = trained_case("rescaled")
    recording, file = record(trained, STEPS), tmp_path / f"agent.{to}"
    if to == "c":
        file.write_text(c_source(trained))
        found = play_c(file, trained, recording)
    else:
        from pufferlib.exports import torch_formats  # slow to import

        if to == "onnx":
            torch_formats.write_onnx(file, trained, None)
            found = torch_formats.play_onnx(file, trained, recording)
        else:
            torch_formats.write_program(file, trained, torch.device("cpu"))
            found = torch_formats.play_program(file, trained, torch.device("cpu"), recording)
    assert found.actions == pytest.approx(recording.outputs.actions, rel=1e-4, abs=1e-4)
    assert difference(found, recording.outputs) < 1e-5
    means, log_stds = np.split(found.params, 2, -1)
    assert found.actions == pytest.approx(np.clip(means, *WIDE), rel=1e-4, abs=1e-4)
    expected = dict(trained.policy.named_parameters())["policy.log_std"].detach().numpy() + np.log([500, 1, 1, 0.25])
    assert log_stds == pytest.approx(np.broadcast_to(expected, log_stds.shape), rel=1e-4)


class Untraceable(Default):
    """Network that uses the number of rows as a Python int."""

    def encode_observations(self, observations):
        return super().encode_observations(observations[: len(observations)])


class Smooth(Default):
    """Custom network of plain layers."""

    def encode_observations(self, observations):
        return torch.tanh(super().encode_observations(observations))


def test_unsupported_layer_is_named(tmp_path):
    trained = trained_case("plain")
    trained.policy.encoder[1] = nn.Softplus()
    with pytest.raises(
        APIUsageError,
        match=r"a layer of this policy: Softplus \(encoder.1\), nor the operation aten.log1p.default; it supports",
    ):
        write_checked(trained, "c", tmp_path / "agent.c")
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_custom_network_is_exported_if_traceable(tmp_path):
    assert write_checked(trained_case("plain", name=Smooth), "torch", tmp_path / "agent.pt2", steps=STEPS) < 1e-5
    assert write_checked(trained_case("plain", name=Smooth), "c", tmp_path / "agent.c", steps=STEPS) < 1e-5
    with pytest.raises(
        APIUsageError, match=r"the policy Untraceable cannot be traced .*observations.shape\[0\] instead of"
    ):
        write_checked(trained_case("plain", name=Untraceable), "torch", tmp_path / "agent.pt2")


def test_differing_export_is_discarded(tmp_path, monkeypatch):
    kept = tmp_path / "agent.c"
    kept.write_text("earlier export")

    def play_with_other_values(path, trained, recording):
        return replace(recording.outputs, values=recording.outputs.values + 1e-3)

    monkeypatch.setattr("pufferlib.exports.c_source.play_c", play_with_other_values)
    with pytest.raises(
        PufferError, match=r"agent.c was not kept: its outputs differ .* more than 1e-05; check whether"
    ):
        write_checked(trained_case("plain"), "c", kept, steps=STEPS)
    assert kept.read_text() == "earlier export"
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.all
@needs_onnx
def test_too_low_opset_names_lowest_supported_one(tmp_path):
    with pytest.raises(
        APIUsageError, match=r"opset 9 lacks the version of operator \w+ .* the lowest that works is --opset 1\d"
    ):
        write_checked(trained_case("plain"), "onnx", tmp_path / "agent.onnx", opset=9)


def normalized_case(case):
    """Return the policy of a case, with the moments of normalized observations."""
    plain = trained_case(case)
    seen = NormalizeObservation(plain.vecenv)
    seen.reset()
    for _ in range(50):
        seen.step(seen.action_space.sample())
    policy = make_policy(seen.driver_env, hidden_size=20)
    attach_moments(policy, seen)
    return trained_policy(policy, plain.vecenv, f"test/{case}")


@pytest.mark.parametrize(
    ("case", "to"),
    once(
        [
            ("plain", "c"),
            ("flat", "c"),
            ("reals", "torch"),
            ("flat", "onnx"),
            ("real mask", "c"),
            ("wide mask", "c"),
            ("real mask", "torch"),
            ("wide mask", "onnx"),
        ],
        [("wide mask", "c")],
    ),
)
def test_export_includes_observation_moments(case, to, tmp_path):
    assert write_checked(normalized_case(case), to, tmp_path / "agent.pt2", steps=STEPS) < 1e-5


def play_in_c(trained, folder, body):
    """Compile and run ``body`` as a C program that includes the agent. Return the numbers that it prints."""
    (folder / "agent.c").write_text(c_source(trained))
    (folder / "main.c").write_text(f'#include "agent.c"\n#include <stdio.h>\nint main(void) {{ {body} }}\n')
    subprocess.run(["cc", "-O1", "main.c", "-lm", "-o", "main"], cwd=folder, check=True)
    return np.loadtxt(subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=True).stdout.split())


DRAWS = """
    static test_{case}_agent agent; {given}; {kind} action[4];
    test_{case}_agent_init(&agent, 5);
    agent.greedy = 0;
    for (int i = 0; i < 20000; i++) {{
        test_{case}_agent_reset(&agent);
        test_{case}_agent_act(&agent, seen, action);
        for (int k = 0; k < {size}; k++) printf("%g ", (double)action[k]);
    }}
    for (int k = 0; k < {params}; k++) printf("%.9g ", agent.params[k]);
"""


@needs_compiler
def test_c_samples_follow_logits(tmp_path):
    body = DRAWS.format(case="labels", given="int8_t seen[121] = {0}", kind="int32_t", size=2, params=5)
    numbers = play_in_c(trained_case("labels"), tmp_path, body)
    draws, logits = numbers[:-5].reshape(-1, 2), torch.from_numpy(numbers[-5:])
    for k, (part, start) in enumerate(zip(logits.split([2, 3]), (5, -1), strict=True)):
        shares = [(draws[:, k] == start + value).mean() for value in range(len(part))]
        np.testing.assert_allclose(shares, part.softmax(0), atol=0.015)


@needs_compiler
@pytest.mark.all
def test_c_samples_follow_mean_and_std(tmp_path):
    body = DRAWS.format(case="unbounded", given="float seen[5] = {0}", kind="float", size=2, params=4)
    numbers = play_in_c(trained_case("unbounded"), tmp_path, body)
    draws, (means, log_std) = numbers[:-4].reshape(-1, 2), numbers[-4:].reshape(2, 2)
    np.testing.assert_allclose(draws.mean(0), means, atol=0.04)
    np.testing.assert_allclose(draws.std(0), np.exp(log_std), rtol=0.03)
