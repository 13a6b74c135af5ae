import dataclasses
import math

import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.errors import PufferError
from pufferlib.models import Default, make_policy
from pufferlib.models.distributions import action_distribution
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.advantage import Estimates, vtrace
from pufferlib.training.kernels import fused_ppo_loss
from pufferlib.training.optimizers import build_optimizer
from pufferlib.training.ppo import minibatches, recompute_estimates
from pufferlib.training.rollout import Minibatch, Rollout

both_losses = pytest.mark.parametrize("loss", [ppo.ppo_loss, fused_ppo_loss])


def test_policy_loss_by_hand():
    # -min(rho A, clip(rho, 0.8, 1.2) A) limits the gain of a good action, but not the loss of a bad one
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1])
    advantages = torch.tensor([2.0, -2.0, 2.0, -2.0, 3.0])
    assert ppo.policy_loss(ratio, advantages, 0.2).tolist() == pytest.approx([-2.4, 3.0, -1.0, 1.6, -3.3])


def test_value_loss_by_hand():
    values, old, returns = torch.tensor([3.0, 3.0]), torch.tensor([1.0, 2.9]), torch.tensor([5.0, 5.0])
    assert ppo.value_loss(values, old, returns, 0.0).tolist() == [2.0, 2.0]
    # clipped to 1 + 0.5 = 1.5: (1.5 - 5)^2 / 2, the second moved less than the clip
    assert ppo.value_loss(values, old, returns, 0.5).tolist() == [6.125, 2.0]


def test_normalize_by_hand():
    advantages = torch.tensor([1.0, 3.0, 100.0])
    assert ppo.normalize(advantages[:2], None).tolist() == pytest.approx([-1.0, 1.0])
    masked = ppo.normalize(advantages, torch.tensor([True, True, False]))
    assert masked[:2].tolist() == pytest.approx([-1.0, 1.0])


def test_masked_mean():
    x = torch.tensor([1.0, 2.0, 9.0])
    assert ppo.masked_mean(x, None) == 4.0
    assert ppo.masked_mean(x, torch.tensor([True, True, False])) == 1.5
    assert ppo.masked_mean(x, torch.zeros(3, dtype=torch.bool)) == 0.0


def test_explained_variance():
    returns = torch.tensor([1.0, 2.0, 3.0])
    assert ppo.explained_variance(returns, returns) == 1.0
    assert ppo.explained_variance(torch.full((3,), 2.0), returns) == 0.0
    assert ppo.explained_variance(returns.flip(0), returns) == pytest.approx(-3.0)
    assert math.isnan(ppo.explained_variance(returns, torch.ones(3)))
    masked = torch.tensor([True, True, False])
    assert ppo.explained_variance(torch.tensor([1.0, 2.0, -50.0]), returns, masked) == 1.0


@pytest.fixture
def policy(target_env):
    torch.manual_seed(0)
    return Default(target_env(4), hidden_size=8, num_layers=1)


def minibatch(policy, rows=6, **changes):
    generator = torch.Generator().manual_seed(1)
    observations = torch.eye(3).repeat(2, 1)[None, :rows]
    with torch.no_grad():
        params, values = policy(observations)
        actions = policy.distribution.sample(params, generator)
        log_probs = policy.distribution.log_prob(params, actions)
    fields = {
        "observations": observations,
        "actions": actions,
        "log_probs": log_probs,
        "values": values,
        "advantages": torch.arange(rows, dtype=torch.float32)[None],
        "returns": values + 1,
        "mask": None,
        "state": {},
        "episode_starts": None,
    }
    return Minibatch(**{**fields, **changes})


@both_losses
def test_loss_of_unchanged_policy_by_hand(policy, loss):
    config = TrainConfig(norm_adv=False, vf_coef=0.5, ent_coef=0.1)
    losses = loss(policy, minibatch(policy), config)
    assert losses.policy.item() == pytest.approx(-2.5)  # ratio 1: minus the mean advantage
    assert losses.value.item() == pytest.approx(0.5)
    assert losses.approx_kl.item() == pytest.approx(0.0, abs=1e-6)
    assert losses.clip_fraction.item() == 0.0
    assert losses.total.item() == pytest.approx(-2.5 + 0.25 - 0.1 * losses.entropy.item())


@both_losses
def test_loss_of_changed_policy_by_hand(policy, loss):
    batch = minibatch(policy)
    moved = dataclasses.replace(batch, log_probs=batch.log_probs - math.log(2))  # every ratio is 2
    losses = loss(policy, moved, TrainConfig(norm_adv=False, clip_coef=0.2))
    assert losses.policy.item() == pytest.approx(-1.2 * 2.5)
    assert losses.approx_kl.item() == pytest.approx(2 - 1 - math.log(2))
    assert losses.clip_fraction.item() == 1.0


@both_losses
def test_masked_rows_do_not_change_gradients(policy, loss):
    config = TrainConfig()
    mask = torch.tensor([[True] * 4 + [False] * 2])
    batch = minibatch(policy, mask=mask)
    garbage = dataclasses.replace(
        batch,
        observations=batch.observations.masked_fill(~mask[..., None], 7.0),
        advantages=batch.advantages.masked_fill(~mask, 1e6),
        returns=batch.returns.masked_fill(~mask, -1e6),
        log_probs=batch.log_probs.masked_fill(~mask, -3.0),
    )
    gradients = []
    for part in (minibatch(policy, rows=4), batch, garbage):
        policy.zero_grad()
        loss(policy, part, config).total.backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in policy.parameters()]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6)
    assert torch.allclose(gradients[1], gradients[2], atol=1e-6)


def objective_of_outputs(loss, distribution, params, values, batch, config):
    """Compute ``loss`` for a network that returns ``params`` and ``values``."""

    class Constant:
        def __call__(self, *inputs):
            return params, values

    policy = Constant()
    policy.distribution = distribution
    return loss(policy, batch, config)


@pytest.mark.parametrize("changes", [{}, {"vf_clip_coef": 0.1}, {"norm_adv": False}], ids=str)
@pytest.mark.parametrize("counted", ["all", "mask", "weights", "nothing"])
@pytest.mark.parametrize("space", [Discrete(4), MultiDiscrete([2, 5, 3]), Box(-1, 1, (2, 2))], ids=str)
def test_c_loss_matches_torch_loss(space, counted, changes):
    distribution, shape = action_distribution(space), (3, 50)
    generator = torch.Generator().manual_seed(0)

    def normal(*more):
        return torch.randn(*shape, *more, generator=generator)

    outputs = normal(distribution.num_params + 1)
    if distribution.dtype == torch.int64:
        outputs[:10, 0] = -1e9  # a masked action
    params = outputs[..., :-1]  # a view beside the values, as networks return them
    actions = distribution.sample(params, generator)
    mask = torch.rand(shape, generator=generator) < (0 if counted == "nothing" else 0.7)
    batch = Minibatch(
        observations=params,
        actions=actions,
        log_probs=distribution.log_prob(params, actions) + 0.3 * normal(),
        values=normal(),
        advantages=3 + normal(),
        returns=normal(),
        mask=None if counted == "all" else mask,
        state={},
        episode_starts=None,
        weights=torch.rand(shape, generator=generator) * mask if counted == "weights" else None,
    )
    config = TrainConfig(ent_coef=0.1, **changes)
    found = []
    for loss in (ppo.ppo_loss, fused_ppo_loss):
        leaf = outputs.clone().requires_grad_()
        losses = objective_of_outputs(loss, distribution, leaf[..., :-1], leaf[..., -1], batch, config)
        losses.total.backward()
        found.append((torch.stack([figure.detach() for figure in losses]), leaf.grad))
    for by_terms, fused in zip(*found, strict=True):
        assert torch.allclose(by_terms, fused, rtol=1e-4, atol=1e-6)


def gradients(policy, batch, config):
    policy.zero_grad()
    ppo.accumulate_gradients(policy, batch, config)
    return torch.cat([parameter.grad.flatten() for parameter in policy.parameters()])


WEIGHTS = torch.tensor([[0.5, 1.0, 0.0, 2.0, 0.5, 1.0]])


@pytest.mark.parametrize("norm_adv", [True, False])
@pytest.mark.parametrize(
    "steps", [{}, {"mask": WEIGHTS > 0.5}, {"mask": WEIGHTS > 0, "weights": WEIGHTS}], ids=["all", "masked", "weighted"]
)
def test_accumulated_gradients_match_one_large_minibatch(policy, norm_adv, steps):
    batch = minibatch(policy, **steps)
    whole = gradients(policy, batch, TrainConfig(norm_adv=norm_adv))
    for count in (2, 3, 6):
        summed = gradients(policy, batch, TrainConfig(norm_adv=norm_adv, accumulate_minibatches=count))
        assert torch.allclose(summed, whole, atol=1e-6)


def test_weights_equal_repeated_rows(policy):
    config = TrainConfig()
    twice = minibatch(policy, rows=4)
    rows = torch.tensor([0, 0, 1, 2, 3, 3])
    names = ("observations", "actions", "log_probs", "values", "advantages", "returns")
    repeated = dataclasses.replace(twice, **{name: getattr(twice, name)[:, rows] for name in names})
    weighted = dataclasses.replace(twice, weights=torch.tensor([[2.0, 1.0, 1.0, 2.0]]))
    assert torch.allclose(gradients(policy, weighted, config), gradients(policy, repeated, config), atol=1e-6)


class Vecenv:
    num_agents = 4

    def __init__(self, env):
        self.single_observation_space = env.single_observation_space


def filled_rollout(target_env, policy, minibatch_size=4):
    rollout = Rollout(Vecenv(target_env(4)), policy, horizon=2, minibatch_size=minibatch_size)
    rollout.observations[:] = torch.eye(3)[torch.arange(8).view(2, 4) % 3]
    rollout.log_probs[:] = -math.log(3)
    rollout.actions[:] = 1
    return rollout


@pytest.fixture
def rollout(target_env, policy):
    return filled_rollout(target_env, policy)


def test_update_raises_probability_of_rewarded_actions(policy, rollout):
    config = TrainConfig(learning_rate=0.01, update_epochs=20, norm_adv=False, ent_coef=0.0)
    rollout.actions[:] = 1
    generator = torch.Generator().manual_seed(0)
    figures = ppo.update(policy, build_optimizer(config, policy), rollout, torch.ones(2, 4), config, generator)
    params, _ = policy(rollout.observations)
    assert (params.softmax(-1)[..., 1] > 0.35).all()
    assert figures["losses/policy"] < 0
    assert set(figures) == {
        f"losses/{name}" for name in ("policy", "value", "entropy", "approx_kl", "clip_fraction", "explained_variance")
    }


def test_explained_variance_ignores_absent_agents(policy, rollout):
    config = TrainConfig(update_epochs=1)
    advantages = torch.zeros(2, 4)
    rollout.values[:-1] = torch.arange(8.0).view(2, 4)
    rollout.masks[1, 3] = False
    advantages[1, 3] = 1e6
    figures = ppo.update(policy, build_optimizer(config, policy), rollout, advantages, config, torch.Generator())
    assert figures["losses/explained_variance"] == 1.0


class CountingSGD(torch.optim.SGD):
    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


@pytest.mark.parametrize(("epochs", "target_kl", "steps"), [(1, 0.01, 2), (1, 0.0, 4), (50, 0.01, 2), (50, 0.0, 200)])
def test_target_kl_stops_update_within_pass(policy, target_env, epochs, target_kl, steps):
    rollout = filled_rollout(target_env, policy, minibatch_size=2)
    config = TrainConfig(update_epochs=epochs, target_kl=target_kl, norm_adv=False)
    optimizer = CountingSGD(policy.parameters(), lr=1.0)
    ppo.update(policy, optimizer, rollout, torch.ones(2, 4), config, torch.Generator().manual_seed(0))
    assert optimizer.steps == steps


def test_target_kl_of_adaptive_rate_does_not_end_update(policy, target_env):
    rollout = filled_rollout(target_env, policy, minibatch_size=2)
    config = TrainConfig(target_kl=0.01, lr_schedule="adaptive", update_epochs=1, norm_adv=False)
    optimizer = CountingSGD(policy.parameters(), lr=1.0)
    ppo.update(policy, optimizer, rollout, torch.ones(2, 4), config, torch.Generator().manual_seed(0))
    assert optimizer.steps == 4


@pytest.mark.parametrize(("max_grad_norm", "expected"), [(0.5, [0.3, -0.4]), (5.0, [3.0, -4.0]), (0.0, [3.0, -4.0])])
def test_gradients_are_clipped_to_max_grad_norm(max_grad_norm, expected):
    network = torch.nn.Linear(2, 1, bias=False)
    network.weight.grad = torch.tensor([[-3.0, 4.0]])
    before = network.weight.detach().clone()
    config = TrainConfig(max_grad_norm=max_grad_norm)
    ppo.apply_gradients(network, torch.optim.SGD(network.parameters(), lr=1.0), config)
    assert (network.weight - before).flatten().tolist() == pytest.approx(expected, rel=1e-4)


def test_nan_loss_raises(policy, rollout):
    config = TrainConfig(update_epochs=1, norm_adv=False)
    advantages = torch.full((2, 4), float("nan"))
    before = [parameter.clone() for parameter in policy.parameters()]
    with pytest.raises(PufferError, match="the loss must be finite, got nan; lower"):
        ppo.update(policy, build_optimizer(config, policy), rollout, advantages, config, torch.Generator())
    assert all(torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True))


def test_nan_in_another_term_of_the_loss_names_the_term(policy, rollout):
    def loss(policy, batch, config):
        losses = ppo.ppo_loss(policy, batch, config)
        return losses._replace(total=losses.total + float("nan"))

    config = TrainConfig(update_epochs=1)
    optimizer = build_optimizer(config, policy)
    with pytest.raises(PufferError, match=r"got nan; .* are finite, so check the other terms of your loss"):
        ppo.update(policy, optimizer, rollout, torch.ones(2, 4), config, torch.Generator().manual_seed(0), loss)


@torch.no_grad()
def test_vtrace_uses_current_policy(policy, rollout):
    config = TrainConfig(vtrace_rho_clip=1.0, vtrace_c_clip=0.9, gamma=0.9)
    generator = torch.Generator().manual_seed(3)
    rollout.actions[:] = torch.randint(3, (2, 4), generator=generator)
    rollout.log_probs[:] = torch.log(torch.rand(2, 4, generator=generator))
    rollout.rewards[:], rollout.values[:] = torch.randn(2, 4, generator=generator), 0.5
    advantages, returns = recompute_estimates(policy, rollout, config)
    params, values = policy(rollout.observations)
    ratios = (policy.distribution.log_prob(params, rollout.actions) - rollout.log_probs).exp()
    values = torch.cat([values, rollout.values[-1:]])
    expected = vtrace(rollout.rewards, values, rollout.episode_ends, 0.9, 0.95, ratios, 1.0, 0.9)
    assert torch.allclose(advantages, expected.advantages, atol=1e-6)
    assert torch.allclose(returns, expected.returns, atol=1e-6)


def test_vtrace_uses_memory_of_segments(target_env):
    policy = make_policy(target_env(4), hidden_size=4, memory="LSTM")
    rollout = Rollout(Vecenv(target_env(4)), policy, horizon=6, minibatch_size=12)
    generator = torch.Generator().manual_seed(0)
    rollout.observations[:] = torch.rand(6, 4, 3, generator=generator)
    rollout.initial_state["lstm_h"][:] = torch.rand(4, 4, generator=generator)
    rollout.episode_starts[3, 1] = True
    with torch.no_grad():
        params, values = policy(rollout.observations, rollout.initial_state, rollout.episode_starts)
        rollout.log_probs[:] = policy.distribution.log_prob(params, rollout.actions)
    rollout.values[:-1] = values
    rollout.rewards[:] = torch.rand(6, 4, generator=generator)
    config = TrainConfig(vtrace_rho_clip=1.0, vtrace_c_clip=1.0)
    fresh = vtrace(rollout.rewards, rollout.values, rollout.episode_ends, config.gamma, config.gae_lambda)
    for mine, expected in zip(recompute_estimates(policy, rollout, config), fresh, strict=True):
        assert torch.allclose(mine, expected, atol=1e-5)


@pytest.mark.parametrize(("vtrace_on", "calls"), [(False, 0), (True, 2)])
def test_vtrace_is_computed_from_second_pass(policy, rollout, monkeypatch, vtrace_on, calls):
    seen = []
    monkeypatch.setattr(ppo, "recompute_estimates", lambda *given: (seen.append(1), recompute_estimates(*given))[1])
    config = TrainConfig(update_epochs=3, vtrace_rho_clip=float(vtrace_on))
    generator = torch.Generator().manual_seed(0)
    ppo.update(policy, build_optimizer(config, policy), rollout, torch.ones(2, 4), config, generator)
    assert len(seen) == calls


def test_priorities_select_minibatch_rows(policy, rollout):
    config = TrainConfig(learning_rate=0.01, update_epochs=20, norm_adv=False, ent_coef=0.0, priority_alpha=1.0)
    rollout.actions[:] = 1
    rollout.actions[1, 3] = 2
    advantages = torch.zeros(2, 4)
    advantages[1, 3] = 1.0  # gets almost all draws
    generator = torch.Generator().manual_seed(0)
    batches = minibatches(rollout, Estimates(advantages, advantages), config, generator)
    assert all(batch.actions.eq(2).all() and batch.weights.eq(1).all() for batch in batches)
    figures = ppo.update(policy, build_optimizer(config, policy), rollout, advantages, config, generator)
    assert figures["losses/policy"] == pytest.approx(-1, abs=0.2)
