import copy

import pytest
import torch
from gymnasium.spaces import Discrete
from torch import nn

from pufferlib.errors import APIUsageError
from pufferlib.models import Default, make_policy
from pufferlib.models.policies import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training.optimizers import build_optimizer, hidden_matrices
from tests.envs import EnvDescription

MUON = TrainConfig(optimizer="muon", learning_rate=0.02, adam_beta1=0.9)


@pytest.fixture
def policy(target_env):
    torch.manual_seed(0)
    return Default(target_env(4), hidden_size=8, num_layers=2)


def learn(policy, optimizer, seed):
    optimizer.zero_grad()
    x = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(seed))
    params, values = policy(x)
    (params.square().sum() + (values - 1).square().sum()).backward()
    optimizer.step()


def test_hidden_matrices_excludes_heads_vectors_and_embeddings(policy, target_env):
    assert [weights.shape for weights in hidden_matrices(policy)] == [(8, 3), (8, 8)]
    names = {
        name for name, weights in policy.named_parameters() if any(weights is each for each in hidden_matrices(policy))
    }
    assert names == {"encoder.0.weight", "encoder.2.weight"}
    wrapped = make_policy(target_env(4), hidden_size=8, memory="LSTM")
    assert not any(weights is wrapped.policy.decoder.weight for weights in hidden_matrices(wrapped))
    assert any(weights is wrapped.cell.weight_hh for weights in hidden_matrices(wrapped))
    separate = Default(target_env(4), hidden_size=8, networks="separate")
    assert [weights.shape for weights in hidden_matrices(separate)] == 2 * [(8, 3), (8, 8)]
    policy.table = nn.Embedding(4, 8)
    assert len(hidden_matrices(policy)) == 2


def test_muon_updates_hidden_matrices_and_adam_the_rest(policy):
    other = copy.deepcopy(policy)
    both = build_optimizer(MUON, policy)
    chosen = {id(weights) for weights in hidden_matrices(other)}
    rest = [weights for weights in other.parameters() if id(weights) not in chosen]
    muon = torch.optim.Muon(
        hidden_matrices(other), 0.02, weight_decay=0.0, momentum=0.9, adjust_lr_fn="match_rms_adamw"
    )
    adam = torch.optim.Adam(rest, 0.02, (0.9, 0.999), 1e-5)
    for seed in range(3):
        learn(policy, both, seed)
        other.zero_grad()
        x = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(seed))
        params, values = other(x)
        (params.square().sum() + (values - 1).square().sum()).backward()
        muon.step()
        adam.step()
    for mine, theirs in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_optimizer_state_is_restored(policy, tmp_path):
    optimizer = build_optimizer(MUON, policy)
    learn(policy, optimizer, 0)
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    twin = copy.deepcopy(policy)
    again = build_optimizer(MUON, twin)
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for each in (optimizer, again):
        for group in each.param_groups:
            group["lr"] = 0.5
    learn(policy, optimizer, 1)
    learn(twin, again, 1)
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), twin.parameters(), strict=True))


def test_zero_learning_rate_stops_both_optimizers(policy):
    optimizer = build_optimizer(MUON, policy)
    before = [weights.detach().clone() for weights in policy.parameters()]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    learn(policy, optimizer, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, policy.parameters(), strict=True))


def test_muon_without_hidden_matrix_raises(target_env):
    class Flat(Policy):
        def encode_observations(self, observations):
            return observations.float()

    flat = Flat(EnvDescription(target_env(2).single_observation_space, Discrete(2)), 3)
    with pytest.raises(APIUsageError, match="muon needs a hidden layer of type Linear, got Flat without one; use adam"):
        build_optimizer(MUON, flat)
