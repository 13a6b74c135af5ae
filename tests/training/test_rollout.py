import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import make_policy
from pufferlib.training.rollout import Draw, Rollout


@pytest.fixture
def make_rollout(target_env):
    def make(agents, horizon, minibatch_size, memory="none"):
        env = target_env(agents)
        return Rollout(env, make_policy(env, hidden_size=2, memory=memory), horizon, minibatch_size)

    return make


def test_every_step_is_in_one_minibatch(make_rollout):
    rollout = make_rollout(4, 6, 8)
    rollout.rewards[:] = torch.arange(24.0).view(6, 4)
    seen = []
    for batch in rollout.minibatches(rollout.rewards, torch.Generator().manual_seed(0)):
        assert batch.observations.shape == (1, 8, 3)
        assert batch.mask is None
        assert batch.episode_starts is None
        seen += batch.advantages.flatten().tolist()
    assert sorted(seen) == list(range(24))
    assert seen != list(range(24))


@pytest.mark.parametrize(("memory", "parts"), [("none", (1, 24)), ("LSTM", (6, 4))])
def test_empty_observations_are_split_into_parts(memory, parts, make_rollout):
    rollout = make_rollout(4, 6, 12, memory)
    assert rollout.as_parts(torch.empty(6, 4, 0)).shape == (*parts, 0)


def test_recurrent_minibatches_are_whole_segments(make_rollout):
    rollout = make_rollout(4, 6, 12, memory="LSTM")
    rollout.rewards[:] = torch.arange(24.0).view(6, 4)
    rollout.initial_state["lstm_h"][:] = torch.arange(4)[:, None]
    rollout.masks[0, 0] = False
    for batch in rollout.minibatches(rollout.rewards, torch.Generator().manual_seed(0)):
        agents = batch.state["lstm_h"][:, 0]
        assert torch.equal(batch.advantages, torch.arange(0.0, 24.0, 4)[:, None] + agents)
        assert batch.mask.sum() == 12 - (agents == 0).sum()
        assert batch.episode_starts.shape == (6, 2)


def test_returns_are_advantages_plus_values(make_rollout):
    rollout = make_rollout(2, 3, 6)
    rollout.values[:] = torch.arange(8.0).view(4, 2)
    (batch,) = rollout.minibatches(torch.ones(3, 2), torch.Generator())
    assert torch.equal(batch.returns, batch.values + 1)


def test_weights_are_spread_over_unmasked_steps(make_rollout):
    rollout = make_rollout(4, 6, 12, memory="LSTM")
    rollout.masks[:3, 1] = False
    draws = [Draw(torch.tensor([1, 1]), torch.tensor([2.0, 2.0])), Draw(torch.tensor([1, 3]), torch.tensor([2.0, 1.0]))]
    same, other = (
        batch.weights.clone() for batch in rollout.minibatches(rollout.rewards, torch.Generator(), draws=draws)
    )
    assert torch.equal(same, rollout.masks[:, [1, 1]].float())
    expected = torch.tensor([[0.0, 0.75]] * 3 + [[1.5, 0.75]] * 3)  # they sum to the number of unmasked steps
    assert torch.allclose(other, expected)


def test_split_divides_rows_of_minibatch(make_rollout):
    rollout = make_rollout(4, 6, 24, memory="LSTM")
    rollout.rewards[:] = torch.arange(24.0).view(6, 4)
    rollout.masks[0, 0] = False
    (batch,) = rollout.minibatches(rollout.rewards, torch.Generator().manual_seed(0))
    parts = list(batch.split(2))
    assert [part.observations.shape for part in parts] == [(6, 2, 3)] * 2
    assert torch.equal(torch.cat([part.advantages for part in parts], 1), batch.advantages)
    assert torch.equal(torch.cat([part.state["lstm_h"] for part in parts]), batch.state["lstm_h"])
    assert all(part.mask.shape == part.episode_starts.shape == (6, 2) and part.weights is None for part in parts)


@pytest.mark.parametrize(
    ("horizon", "agents", "size", "memory", "message"),
    [
        (6, 4, 10, "none", "must divide train.horizon * agents = 6 * 4 = 24, got 10; try 8 or 12"),
        (1, 3, 2, "none", "1 * 3 = 3, got 2; try 1 or 3"),
        (6, 4, 10, "LSTM", "must be a multiple of train.horizon, because the policy is recurrent, and divide"),
        (6, 4, 10, "LSTM", "got 10; try 6 or 12"),
        (6, 4, 1, "LSTM", "got 1; try 6"),
        (6, 4, 18, "LSTM", "got 18; try 12 or 24"),
    ],
)
def test_minibatch_size_that_does_not_divide_rollout_raises(make_rollout, horizon, agents, size, memory, message):
    with pytest.raises(APIUsageError, match=re.escape(message)) as caught:
        make_rollout(agents, horizon, size, memory)
    for hint in re.findall(r"\d+", str(caught.value).partition("; try ")[2]):
        make_rollout(agents, horizon, int(hint), memory)


def test_minibatch_larger_than_rollout_is_whole_rollout(make_rollout):
    rollout = make_rollout(4, 6, 1000)
    (batch,) = rollout.minibatches(rollout.rewards, torch.Generator())
    assert batch.advantages.numel() == rollout.batch_size == 24


def test_rollout_larger_than_memory_raises(target_env):
    vecenv = SimpleNamespace(num_agents=2**31, single_observation_space=Box(0, 1, (8,), np.float32))
    with pytest.raises(PufferError, match=r"65536 steps of 2147483648 agents do not fit into the memory of cpu; lower"):
        Rollout(vecenv, make_policy(target_env(2)), 2**16, 64)
