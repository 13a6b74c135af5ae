import warnings

import pytest
import torch

from pufferlib.machine import cpus
from pufferlib.models import make_policy
from pufferlib.training.accelerate import autocast, in_precision

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def bfloat16(monkeypatch):
    """Pretend that the CPU supports bfloat16."""
    monkeypatch.setattr(cpus, "has_bfloat16", lambda: True)


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_only_matrix_products_use_bfloat16(target_env, memory):
    torch.manual_seed(0)
    policy = make_policy(target_env(4), hidden_size=16, memory=memory)
    mixed = in_precision(policy, "bfloat16", CPU)
    seen = []
    policy.get_submodule("encoder.0" if memory == "none" else "policy.encoder.0").register_forward_hook(
        lambda module, inputs, output: seen.append(output.dtype)
    )
    observations = torch.rand(3, 4, 3)
    params, values = mixed(observations, mixed.initial_state(4))
    (params.sum() + values.sum()).backward()
    state = mixed.initial_state(4)
    with torch.inference_mode(), autocast("bfloat16", CPU):
        acted, _ = mixed.forward_eval(observations[0], state)
    assert seen == [torch.bfloat16] * 2
    assert {x.dtype for x in (params, values, acted, *state.values())} == {torch.float32}
    assert all(weights.grad.dtype == torch.float32 for weights in policy.parameters())
    assert torch.allclose(params, policy(observations, policy.initial_state(4))[0], atol=0.02)


def test_acting_casts_each_weight_once(target_env):
    policy = make_policy(target_env(4), hidden_size=16)
    mixed = in_precision(policy, "bfloat16", CPU)
    with torch.profiler.profile(record_shapes=True) as profile, torch.inference_mode(), autocast("bfloat16", CPU):
        for _ in range(3):
            mixed.forward_eval(torch.rand(4, 3), None)
    shape = list(policy.get_submodule("encoder.0").weight.shape)
    casts = [event for event in profile.events() if event.name == "aten::_to_copy" and event.input_shapes[0] == shape]
    assert len(casts) == 1


def test_in_precision_shares_weights(target_env):
    policy = make_policy(target_env(4), hidden_size=16)
    mixed = in_precision(policy, "bfloat16", CPU)
    before = policy(torch.ones(1, 4, 3))[0]
    with torch.no_grad():
        mixed.decoder.weight.add_(1.0)
    assert not torch.allclose(policy(torch.ones(1, 4, 3))[0], before)
    assert list(mixed.state_dict()) == list(policy.state_dict())
    assert in_precision(policy, "float32", CPU) is policy


def test_bfloat16_on_unsupported_cpu_warns(target_env, monkeypatch):
    policy = make_policy(target_env(4), hidden_size=16)
    monkeypatch.setattr(cpus, "has_bfloat16", lambda: False)
    with pytest.warns(UserWarning, match="no instructions for bfloat16 .* use float32"):
        in_precision(policy, "bfloat16", CPU)
    with warnings.catch_warnings():
        in_precision(policy, "float32", CPU)
