import math

import pytest
import torch

from pufferlib.training.advantage import fit_reward_scale, generalized_advantage, vtrace


def test_generalized_advantage_by_hand():
    # delta_2 = 3 + 0.5 * 8 - 6 = 1           A_2 = 1
    # delta_1 = 2 + 0.5 * 6 - 4 = 1           A_1 = 1 + 0.5 * 0.5 * 1 = 1.25
    # delta_0 = 1 + 0.5 * 4 - 2 = 1           A_0 = 1 + 0.25 * 1.25 = 1.3125
    advantages = generalized_advantage(
        rewards=torch.tensor([[1.0], [2.0], [3.0]]),
        values=torch.tensor([[2.0], [4.0], [6.0], [8.0]]),
        episode_ends=torch.zeros(3, 1, dtype=torch.bool),
        gamma=0.5,
        gae_lambda=0.5,
    )
    assert advantages.squeeze(1).tolist() == [1.3125, 1.25, 1.0]


def test_advantage_stops_at_episode_end():
    # episode ends after step 1: delta_1 = 2 - 4 = -2 = A_1, A_0 = 1 + 0.25 * -2 = 0.5, step 2 as before
    advantages = generalized_advantage(
        rewards=torch.tensor([[1.0], [2.0], [3.0]]),
        values=torch.tensor([[2.0], [4.0], [6.0], [8.0]]),
        episode_ends=torch.tensor([[False], [True], [False]]),
        gamma=0.5,
        gae_lambda=0.5,
    )
    assert advantages.squeeze(1).tolist() == [0.5, -2.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_generalized_advantage_matches_sum_of_deltas(seed):
    generator = torch.Generator().manual_seed(seed)
    horizon, agents, gamma, lam = 9, 4, 0.9, 0.8
    rewards, values = (
        torch.randn(horizon, agents, generator=generator),
        torch.randn(horizon + 1, agents, generator=generator),
    )
    ends = torch.rand(horizon, agents, generator=generator) < 0.2
    result = generalized_advantage(rewards, values, ends, gamma, lam)
    for agent in range(agents):
        for t in range(horizon):
            expected, weight = 0.0, 1.0
            for k in range(t, horizon):
                alive = 0.0 if ends[k, agent] else 1.0
                expected += weight * float(rewards[k, agent] + gamma * alive * values[k + 1, agent] - values[k, agent])
                weight *= gamma * lam * alive
            assert result[t, agent].item() == pytest.approx(expected, abs=1e-5)


def test_inputs_are_not_modified():
    rewards, values = torch.ones(2, 1), torch.ones(3, 1)
    generalized_advantage(rewards, values, torch.zeros(2, 1, dtype=torch.bool), 0.9, 0.9)
    assert rewards.eq(1).all()
    assert values.eq(1).all()


@pytest.fixture
def segments():
    generator = torch.Generator().manual_seed(5)
    shape = horizon, agents = 9, 4
    return {
        "rewards": torch.randn(shape, generator=generator),
        "values": torch.randn(horizon + 1, agents, generator=generator),
        "episode_ends": torch.rand(shape, generator=generator) < 0.3,
        "gamma": 0.9,
        "gae_lambda": 0.8,
    }


@pytest.mark.parametrize(("rho_clip", "c_clip"), [(1.0, 1.0), (0.7, 1.3), (math.inf, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_vtrace_matches_equation_1_with_lambda(segments, rho_clip, c_clip):
    ratios = torch.rand(9, 4, generator=torch.Generator().manual_seed(6)) * 2
    advantages, returns = vtrace(**segments, ratios=ratios, rho_clip=rho_clip, c_clip=c_clip)
    rewards, values, ends, gamma, lam = segments.values()

    def limited(ratio, clip):
        return min(float(ratio), clip) if clip else 1.0

    def target(t, agent):
        """v_t = V_t + sum_k gamma^k lambda^k (c_t ... c_{t+k-1}) rho_{t+k} delta_{t+k}, to the end of the episode."""
        total, weight = float(values[t, agent]), 1.0
        for k in range(t, 9):
            alive = 1 - float(ends[k, agent])
            delta = float(rewards[k, agent] + gamma * alive * values[k + 1, agent] - values[k, agent])
            total += weight * limited(ratios[k, agent], rho_clip) * delta
            weight *= gamma * lam * alive * limited(ratios[k, agent], c_clip)
        return total

    for t in range(9):
        for agent in range(4):
            assert returns[t, agent].item() == pytest.approx(target(t, agent), abs=1e-5)
            after = float(values[t + 1, agent])
            if t < 8:
                after += lam * (target(t + 1, agent) - after)
            expected = float(rewards[t, agent]) + gamma * (1 - float(ends[t, agent])) * after - float(values[t, agent])
            assert advantages[t, agent].item() == pytest.approx(expected, abs=1e-5)


def test_on_policy_vtrace_equals_generalized_advantage(segments):
    fresh = vtrace(**segments)
    assert torch.equal(fresh.advantages, generalized_advantage(**segments))
    assert torch.equal(fresh.returns, fresh.advantages + segments["values"][:-1])
    same = vtrace(**segments, ratios=torch.ones(9, 4), rho_clip=1.0, c_clip=1.0)
    assert torch.allclose(same.advantages, fresh.advantages, atol=1e-6)
    assert torch.allclose(same.returns, fresh.returns, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (64, 8), (33, 67), (9,)])
def test_c_loop_matches_torch_bytes(shape):
    rewards, values = torch.randn(shape), torch.randn(shape[0] + 1, *shape[1:])
    ends = torch.rand(shape) < 0.1
    continues = (~ends).float().mul_(0.99)
    expected = torch.addcmul(rewards, continues, values[1:]).sub_(values[:-1])
    continues *= 0.95
    for t in range(shape[0] - 2, -1, -1):
        expected[t].addcmul_(continues[t], expected[t + 1])
    assert torch.equal(generalized_advantage(rewards, values, ends, 0.99, 0.95), expected)


def test_other_strides_and_dtypes_give_same_result(segments):
    expected = generalized_advantage(**segments)
    across = {name: x.t().contiguous().t() if isinstance(x, torch.Tensor) else x for name, x in segments.items()}
    assert torch.allclose(generalized_advantage(**across), expected, atol=1e-6)
    double = {
        name: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for name, x in segments.items()
    }
    assert torch.allclose(generalized_advantage(**double).float(), expected, atol=1e-6)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 1.0), (-16.0, 1 / 16)])
def test_fit_reward_scale_normalizes_large_returns(factor, expected):
    # Returns are 1 + 0.5 * 2 = 2 and 2, and 0 and 0. Their mean and deviation are 1. The last agent is absent.
    rewards = factor * torch.tensor([[1.0, 0.0, 9.0], [2.0, 0.0, 9.0]])
    masks = torch.tensor([[True, True, False]] * 2)
    scale = fit_reward_scale(rewards, torch.zeros(2, 3, dtype=torch.bool), masks, gamma=0.5)
    assert scale == pytest.approx(expected)
    assert fit_reward_scale(rewards, masks, torch.zeros_like(masks), gamma=0.5) == 1.0
