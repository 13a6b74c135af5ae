"""Proximal policy optimisation: the losses as pure functions, and one update with them.

Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equation numbers below.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pufferlib.models import Policy
from pufferlib.train.config import TrainConfig
from pufferlib.train.diagnosis import NonFiniteError
from pufferlib.train.rollout import Minibatch, Rollout

__all__ = [
    "Losses",
    "explained_variance",
    "masked_mean",
    "normalize",
    "policy_loss",
    "ppo_loss",
    "update",
    "value_loss",
]


class Losses(NamedTuple):
    """The figures of one minibatch, scalar tensors; only ``total`` carries gradients.

    Attributes:
        total: What is minimised.
        policy: Mean of ``policy_loss``, without its gradient like all that follow.
        value: Mean of ``value_loss``.
        entropy: Mean of the policy's, in nats.
        approx_kl: From the policy that acted to the one that is learned, estimated; in nats.
        clip_fraction: Of the steps, whose ratio is further than ``clip_coef`` from 1.
    """

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of ``x`` where ``mask`` is True; of all of it without a mask; 0 where nothing is left."""
    if mask is None:
        return x.mean()
    return (x * mask).sum() / mask.sum().clamp(min=1)


def normalize(advantages: Tensor, mask: Tensor | None) -> Tensor:
    """(A - mean) / (std + 1e-8) over the entries that count."""
    centred = advantages - masked_mean(advantages, mask)
    return centred / (masked_mean(centred.square(), mask).sqrt() + 1e-8)


def policy_loss(ratio: Tensor, advantages: Tensor, clip_coef: float) -> Tensor:
    r"""Clipped surrogate, to be minimised, one entry per step (equation 7).

    .. math::
        L_t = -\min(\rho_t A_t, \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A_t)

    Args:
        ratio: rho: probability of the action now, over that when it was chosen; any shape.
        advantages: A, of the same shape.
        clip_coef: epsilon.

    Returns:
        The loss of each step, of the same shape.
    """
    return -torch.minimum(advantages * ratio, advantages * ratio.clamp(1 - clip_coef, 1 + clip_coef))


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip_coef: float) -> Tensor:
    r"""Squared error halved, one entry per step; clipped when ``clip_coef`` is above 0 (equation 9).

    .. math::
        L_t = \tfrac12 \max((V_t - R_t)^2, (V^{old}_t + \mathrm{clip}(V_t - V^{old}_t, \pm c) - R_t)^2)

    Args:
        values: V, as estimated now; any shape.
        old_values: As estimated when the actions were chosen, of the same shape.
        returns: R, what they should be, of the same shape.
        clip_coef: c, in the unit of the values; 0 for no clipping.

    Returns:
        The loss of each step, of the same shape.
    """
    error = (values - returns).square()
    if clip_coef > 0:
        clipped = old_values + (values - old_values).clamp(-clip_coef, clip_coef)
        error = torch.maximum(error, (clipped - returns).square())
    return 0.5 * error


def ppo_loss(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
    r"""The whole objective on one minibatch.

    .. math::
        L = L^{policy} + c_v L^{value} - c_e H[\pi]

    ``approx_kl`` is the mean of (rho - 1) - log rho, which is never negative (Schulman,
    "Approximating KL Divergence", 2020, estimator k3).

    Args:
        policy: Evaluated anew, with gradients.
        batch: Steps and what was estimated of them when they were taken; steps that its mask leaves out do not
            count.
        config: ``clip_coef``, ``vf_clip_coef``, ``vf_coef``, ``ent_coef``, and with ``norm_adv`` the advantages are
            normalised within the minibatch.

    Returns:
        The objective, and the figures that tell how learning goes.
    """
    params, values = policy(batch.observations, batch.state, batch.episode_starts)
    log_ratio = policy.distribution.log_prob(params, batch.actions) - batch.log_probs
    ratio = log_ratio.exp()
    advantages = normalize(batch.advantages, batch.mask) if config.norm_adv else batch.advantages
    pg_loss = masked_mean(policy_loss(ratio, advantages, config.clip_coef), batch.mask)
    v_loss = masked_mean(value_loss(values, batch.values, batch.returns, config.vf_clip_coef), batch.mask)
    entropy = masked_mean(policy.distribution.entropy(params), batch.mask)
    total = pg_loss + config.vf_coef * v_loss - config.ent_coef * entropy
    with torch.no_grad():
        approx_kl = masked_mean(ratio - 1 - log_ratio, batch.mask)
        clip_fraction = masked_mean(((ratio - 1).abs() > config.clip_coef).float(), batch.mask)
    return Losses(total, pg_loss.detach(), v_loss.detach(), entropy.detach(), approx_kl, clip_fraction)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor | None = None) -> float:
    """1 - Var[R - V] / Var[R] over the entries that count; NaN when all their returns are equal.

    1 for perfect values, 0 for a constant.
    """
    if mask is not None:
        values, returns = values[mask], returns[mask]
    variance = returns.var(correction=0)
    return float("nan") if variance == 0 else float(1 - (returns - values).var(correction=0) / variance)


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: Tensor,
    config: TrainConfig,
    generator: torch.Generator,
) -> dict[str, float]:
    """Learn from one rollout: ``update_epochs`` passes over it in minibatches.

    Args:
        policy: Is changed.
        optimizer: Of the policy's parameters.
        rollout: What was experienced.
        advantages: float32 ``(horizon, num_agents)``.
        config: Coefficients.
        generator: Shuffles the minibatches.

    Returns:
        ``losses/<name>``: means over the minibatches; ``explained_variance`` of the values used.

    Raises:
        PufferError: The loss is not finite; the policy is left as it was before that minibatch.
    """
    figures: list[Tensor] = []
    for _ in range(config.update_epochs):
        for batch in rollout.minibatches(advantages, generator):
            losses = ppo_loss(policy, batch, config)
            if not torch.isfinite(losses.total):
                raise NonFiniteError(
                    f"ppo.update: the loss must be finite, got {losses.total.item()}; lower train.learning_rate "
                    "or train.reward_scale, and look for NaN in the observations",
                    batch.observations,
                    batch.state,
                    episode_starts=batch.episode_starts,
                    losses=losses._asdict(),
                )
            optimizer.zero_grad()
            torch.autograd.backward(losses.total)
            nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
            optimizer.step()
            figures.append(torch.stack([figure.detach() for figure in losses]))
        if config.target_kl > 0 and figures[-1][Losses._fields.index("approx_kl")] > config.target_kl:
            break
    means = dict(zip(Losses._fields, torch.stack(figures).mean(0).tolist(), strict=True))
    del means["total"]
    returns = advantages + rollout.values[:-1]
    means["explained_variance"] = explained_variance(rollout.values[:-1], returns, rollout.masks)
    return {f"losses/{name}": value for name, value in means.items()}
