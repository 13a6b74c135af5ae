"""Proximal policy optimization: the loss, and the update of a policy from a rollout."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

import torch
from torch import Tensor, nn

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training.advantage import Estimates, deviation, vtrace
from pufferlib.training.diagnosis import NonFiniteError
from pufferlib.training.episodes import EpisodeMeans
from pufferlib.training.rollout import Minibatch, Rollout, by_priority, in_order
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = [
    "FusedStep",
    "Loss",
    "Losses",
    "Reduction",
    "accumulate_gradients",
    "explained_variance",
    "kl_limit",
    "masked_mean",
    "mean_kl",
    "minibatches",
    "normalize",
    "policy_loss",
    "ppo_loss",
    "recompute_estimates",
    "update",
    "value_loss",
]


def minibatches(
    rollout: Rollout, estimates: Estimates, config: TrainConfig, generator: torch.Generator
) -> Iterator[Minibatch]:
    """Yield the minibatches of one pass over the rollout.

    Each part occurs once. With ``priority_alpha``, parts with large advantages are drawn more often.
    """
    draws = None
    if config.priority_alpha > 0 and bool(rollout.masks.any()):
        advantages, masks = rollout.as_parts(estimates.advantages), rollout.as_parts(rollout.masks)
        draws = by_priority(advantages, masks, rollout.rows, config, generator)
    return rollout.minibatches(estimates.advantages, generator, estimates.returns, draws)


@torch.no_grad()
def recompute_estimates(policy: Policy, rollout: Rollout, config: TrainConfig) -> Estimates:
    """Compute V-trace with the current policy on a rollout that an older policy collected.

    The rollout does not contain the observation after the last step, nor the last observations of truncated episodes.
    Their values stay unchanged.
    """
    values, ratios = rollout.values.clone(), torch.empty_like(rollout.log_probs)
    parts = rollout.as_parts(ratios), rollout.as_parts(values[:-1])
    draws = list(in_order(parts[0].shape[1], rollout.rows, ratios.device))
    batches = rollout.minibatches(ratios, torch.default_generator, draws=draws)
    is_learning = policy.training
    policy.eval()  # the mode in which it acts
    for (chosen, _), batch in zip(draws, batches, strict=True):
        params, now = policy(batch.observations, batch.state, batch.episode_starts)
        log_probs = policy.distribution.log_prob(params, batch.actions)
        parts[0][:, chosen] = (log_probs - batch.log_probs).exp()
        parts[1][:, chosen] = now
    policy.train(is_learning)
    clips = config.vtrace_rho_clip, config.vtrace_c_clip
    return vtrace(rollout.rewards, values, rollout.episode_ends, config.gamma, config.gae_lambda, ratios, *clips)


class Losses(NamedTuple):
    """Losses and statistics of one minibatch, as scalar tensors.

    Only ``total`` is minimized. ``ppo_loss`` also returns ``policy``, ``value`` and ``entropy`` with gradients, so that
    another ``total`` can be composed of them.

    Attributes:
        total: Loss to minimize.
        policy: Mean of ``policy_loss``.
        value: Mean of ``value_loss``.
        entropy: Mean entropy of the policy, in nats.
        approx_kl: Estimated KL divergence between the policy that acted and the policy that learns, in nats.
        clip_fraction: Share of steps whose ratio differs from 1 by more than ``clip_coef``.
    """

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


#: Loss function of the policy, a minibatch and the settings, like ``ppo_loss``.
Loss = Callable[[Policy, Minibatch, TrainConfig], Losses]


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of ``x`` weighted by ``mask``, or of all entries without a mask. An empty mask gives 0."""
    if mask is None:
        return x.mean()
    total = mask.sum()
    return (x * mask).sum() / (total + (total == 0))


def normalize(advantages: Tensor, mask: Tensor | None) -> Tensor:
    """Return (A - mean) / (std + 1e-8) over the entries that count."""
    centred = advantages - masked_mean(advantages, mask)
    return centred / (masked_mean(centred.square(), mask).sqrt() + 1e-8)


def policy_loss(ratio: Tensor, advantages: Tensor, clip_coef: float) -> Tensor:
    r"""Compute the clipped surrogate loss of each step (equation 7 of Schulman et al., 2017).

    .. math::
        L_t = -\min(\rho_t A_t, \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A_t)

    Args:
        ratio: Current probability of the action divided by its probability when it was chosen (rho), of any shape.
        advantages: Advantages (A), of the same shape.
        clip_coef: Clip range (epsilon).

    Returns:
        Loss of each step, of the same shape.
    """
    return -torch.minimum(advantages * ratio, advantages * ratio.clamp(1 - clip_coef, 1 + clip_coef))


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip_coef: float) -> Tensor:
    r"""Compute half the squared error of each step, clipped if ``clip_coef`` is above 0 (equation 9).

    .. math::
        L_t = \tfrac12 \max((V_t - R_t)^2, (V^{old}_t + \mathrm{clip}(V_t - V^{old}_t, \pm c) - R_t)^2)

    Args:
        values: Current value estimates (V), of any shape.
        old_values: Value estimates when the actions were chosen, of the same shape.
        returns: Targets (R), of the same shape.
        clip_coef: Clip range (c) in the units of the values. 0 disables clipping.

    Returns:
        Loss of each step, of the same shape.
    """
    error = (values - returns).square()
    if clip_coef > 0:
        clipped = old_values + (values - old_values).clamp(-clip_coef, clip_coef)
        error = torch.maximum(error, (clipped - returns).square())
    return 0.5 * error


def ppo_loss(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
    r"""Compute the loss of PPO on one minibatch. On a CPU it runs in C, unless you edit it or pass another loss.

    .. math::
        L = L^{policy} + c_v L^{value} - c_e H[\pi]

    ``approx_kl`` is the mean of (rho - 1) - log rho, which is never negative (Schulman,
    "Approximating KL Divergence", 2020, estimator k3).

    Args:
        policy: Policy, which is evaluated with gradients.
        batch: Steps, with the estimates from the time when they were taken. Steps where the mask is False do not
            count. With ``weights``, some steps count more than others.
        config: Settings, of which ``clip_coef``, ``vf_clip_coef``, ``vf_coef``, ``ent_coef`` and ``norm_adv`` are
            read. With ``norm_adv`` the advantages are normalized within the minibatch.

    Returns:
        Loss, and statistics of learning.
    """
    params, values = policy(batch.observations, batch.state, batch.episode_starts)
    counted = batch.counted
    log_ratio = policy.distribution.log_prob(params, batch.actions) - batch.log_probs
    ratio = log_ratio.exp()
    advantages = normalize(batch.advantages, counted) if config.norm_adv else batch.advantages
    pg_loss = masked_mean(policy_loss(ratio, advantages, config.clip_coef), counted)
    v_loss = masked_mean(value_loss(values, batch.values, batch.returns, config.vf_clip_coef), counted)
    entropy = masked_mean(policy.distribution.entropy(params), counted)
    total = pg_loss + config.vf_coef * v_loss - config.ent_coef * entropy
    with torch.no_grad():
        approx_kl = masked_mean(ratio - 1 - log_ratio, batch.mask)
        clip_fraction = masked_mean(((ratio - 1).abs() > config.clip_coef).float(), batch.mask)
    return Losses(total, pg_loss, v_loss, entropy, approx_kl, clip_fraction)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor | None = None) -> float:
    """Return 1 - Var[R - V] / Var[R] over the entries that count, or NaN if all their returns are equal.

    It is 1 for perfect values and 0 for constant ones.
    """
    if mask is not None:
        values, returns = values[mask], returns[mask]
    variance = returns.var(correction=0)
    return float("nan") if variance == 0 else float(1 - (returns - values).var(correction=0) / variance)


def accumulate_gradients(
    policy: Policy, batch: Minibatch, config: TrainConfig, loss: Loss = ppo_loss, is_checked: bool = True
) -> list[Tensor]:
    """Add the gradient of the mean loss of ``batch`` to the gradients of the parameters.

    The batch is computed in ``accumulate_minibatches`` parts, one after the other. Each part is weighted by its number
    of counted steps, and the advantages are normalized over all parts. Therefore the sum is the gradient of one large
    minibatch.

    Args:
        policy: Network that learns.
        batch: Minibatch.
        config: Settings, of which ``accumulate_minibatches``, ``norm_adv`` and those of ``loss`` are read.
        loss: Loss, as ``ppo_loss``.
        is_checked: Raise an error if the loss is not finite. The CPU waits for the loss to check it.

    Returns:
        Values of ``Losses`` for each part, in its order.

    Raises:
        PufferError: The loss is not finite.
        APIUsageError: The loss does not depend on the parameters.
    """
    count, total = config.accumulate_minibatches, batch.counted
    if count > 1 and config.norm_adv:
        batch = dataclasses.replace(batch, advantages=normalize(batch.advantages, total))
        config = config.derived(norm_adv=False)
    figures = []
    for part in batch.split(count) if count > 1 else [batch]:
        losses = loss(policy, part, config)
        if is_checked and not torch.isfinite(losses.total):
            raise NonFiniteError(
                f"ppo.update: the loss must be finite, got {losses.total.item()}; {_advice(losses)}",
                part.observations,
                part.state,
                episode_starts=part.episode_starts,
                losses=losses._asdict(),
            )
        share = None if count == 1 else _share(part.counted, total, torch.full_like(losses.total, 1 / count))
        torch.autograd.backward(losses.total, share)
        if is_checked and all(parameter.grad is None for parameter in policy.parameters()):
            raise APIUsageError(
                "Trainer: total of the loss must depend on the policy, got no gradient of any parameter; compute it "
                "from the policy that the loss is called with"
            )
        figures.append(torch.stack([figure.detach() for figure in losses]))
    return figures


def _advice(losses: Losses) -> str:
    """Return how to fix a total loss that is not finite."""
    if torch.stack([losses.policy, losses.value, losses.entropy]).isfinite().all():
        return "the losses of policy, value and entropy are finite, so check the other terms of your loss"
    return "lower train.learning_rate or train.reward_scale, and look for NaN in the observations"


class Reduction:
    """Work that several processes share in an update. This class does it for a single process."""

    def collect(self, take: Callable[[], Rollout]) -> Rollout:
        """Return the rollout that ``take`` returns."""
        return take()

    def accumulate_gradients(self, policy: Policy, batch: Minibatch, config: TrainConfig, loss: Loss) -> list[Tensor]:
        """Add the gradient of a minibatch. See ``accumulate_gradients``."""
        return accumulate_gradients(policy, batch, config, loss)

    def explained_variance(self, values: Tensor, returns: Tensor, mask: Tensor) -> float:
        """Return the explained variance of ``values``. See ``explained_variance``."""
        return explained_variance(values, returns, mask)

    def deviation(self, returns: Tensor) -> float:
        """Return the standard deviation of ``returns``. See ``advantage.deviation``."""
        return deviation(returns)

    def count_experience(self, steps: int, episodes: EpisodeMeans) -> int:
        """Return the steps of all processes, and add the episodes of the others to ``episodes``."""
        return steps

    def merge_moments(self, vecenv: AnyVectorEnv) -> None:
        """Merge the running moments of all processes."""

    def start_moments(self, vecenv: AnyVectorEnv) -> None:
        """Use the current running moments as the moments that all processes share."""

    def state_dict(self) -> dict[str, Any]:
        """Return the moments that all processes share."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore ``state_dict``."""


class FusedStep(Protocol):
    """Gradient step that does all work of a minibatch in one call: a CUDA graph on a GPU, or C on a CPU."""

    def begin(self, config: TrainConfig) -> None:
        """Set the coefficients of an update."""

    def __call__(self, batch: Minibatch) -> list[Tensor]:
        """Take a step and return the values of ``Losses`` for each part, in its order."""

    def has_ended(self) -> bool:
        """Return whether ``target_kl`` has ended the update. Further steps change nothing and return NaN."""

    def has_failed(self) -> bool:
        """Return whether a loss of the update was not finite."""


def _share(part: Tensor | None, whole: Tensor | None, even: Tensor) -> Tensor:
    """Return the share of a part in the mean over a whole minibatch, or ``even`` if all steps count equally."""
    return even if part is None or whole is None else part.sum() / whole.sum().clamp(min=1)


def apply_gradients(policy: Policy, optimizer: torch.optim.Optimizer, config: TrainConfig) -> None:
    """Take a gradient step. Gradients longer than ``max_grad_norm`` are scaled down to it. 0 disables clipping."""
    if config.max_grad_norm > 0:
        nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
    optimizer.step()


def raise_for_loss(
    policy: Policy, rollout: Rollout, estimates: Estimates, config: TrainConfig, loss: Loss = ppo_loss
) -> NoReturn:
    """Raise the error for a loss that was not finite. It is found by computing the loss of the whole rollout again.

    Raises:
        NonFiniteError: Always, for the first minibatch whose loss is not finite.
    """
    draws = in_order(rollout.as_parts(rollout.masks).shape[1], rollout.rows)
    gradients = [parameter.grad for parameter in policy.parameters()]
    try:
        for batch in rollout.minibatches(estimates.advantages, torch.default_generator, estimates.returns, draws):
            policy.zero_grad()
            accumulate_gradients(policy, batch, config, loss)
    finally:  # the error report contains those of the last step
        for parameter, gradient in zip(policy.parameters(), gradients, strict=True):
            parameter.grad = gradient
    raise NonFiniteError("ppo.update: the loss must be finite, got NaN or infinity", batch.observations, batch.state)


def _passes(
    policy: Policy,
    rollout: Rollout,
    estimates: Estimates,
    config: TrainConfig,
    generator: torch.Generator,
    fused: FusedStep | None,
) -> Iterator[Minibatch]:
    """Yield the minibatches of all passes over ``rollout``."""
    for epoch in range(config.update_epochs):
        if epoch > 0 and fused is not None and fused.has_ended():
            return
        is_stale = epoch > 0 or config.overlap == "learning"  # the policy has changed since it acted
        if is_stale and (config.vtrace_rho_clip or config.vtrace_c_clip):
            estimates = recompute_estimates(policy, rollout, config)
        yield from minibatches(rollout, estimates, config, generator)


def kl_limit(config: TrainConfig) -> float:
    """Return the KL divergence of a minibatch that ends an update, or infinity."""
    ends = config.target_kl > 0 and config.lr_schedule != "adaptive"
    return config.target_kl if ends else math.inf


def mean_kl(figures: Tensor) -> Tensor:
    """Return the mean ``approx_kl`` of the parts of a minibatch, given the values of ``Losses`` for each."""
    return figures[:, Losses._fields.index("approx_kl")].mean()


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: Tensor,
    config: TrainConfig,
    generator: torch.Generator,
    loss: Loss = ppo_loss,
    reduction: Reduction | None = None,
    fused: FusedStep | None = None,
) -> dict[str, float]:
    """Learn from one rollout, with ``update_epochs`` passes over it in minibatches.

    With ``target_kl`` above 0, the update ends after the first minibatch whose ``approx_kl`` exceeds it, unless
    ``lr_schedule`` is "adaptive". A CUDA graph checks this on the GPU, and the CPU waits for it once per pass.

    Args:
        policy: Policy to train.
        optimizer: Optimizer of the policy's parameters.
        rollout: Rollout to learn from.
        advantages: Advantages, float32 ``(horizon, num_agents)``.
        config: Settings.
        generator: Random number generator that shuffles the minibatches.
        loss: Loss, a function of the policy, a minibatch and the settings.
        reduction: Reduction of gradients and statistics over several processes, or None for one process.
        fused: Gradient step in one call, or None for torch's calls.

    Returns:
        Means over the minibatches as ``losses/<name>``, and ``losses/explained_variance`` of the values.

    Raises:
        PufferError: The loss is not finite. The policy stays as it was before that minibatch.
    """
    estimates = Estimates(advantages, advantages + rollout.values[:-1])
    reduction = reduction or Reduction()
    explained = reduction.explained_variance(rollout.values[:-1], estimates.returns, rollout.masks)
    figures: list[Tensor] = []
    limit = kl_limit(config)
    if fused is not None:
        fused.begin(config)
    for batch in _passes(policy, rollout, estimates, config, generator, fused):
        if fused is not None:
            parts = fused(batch)
        else:
            optimizer.zero_grad()
            parts = reduction.accumulate_gradients(policy, batch, config, loss)
            apply_gradients(policy, optimizer, config)
        figures += parts
        if fused is None and limit < math.inf and float(mean_kl(torch.stack(parts))) > limit:
            break
    # A fused step does not raise, so its losses are checked once at the end.
    if fused is not None and fused.has_failed():
        raise_for_loss(policy, rollout, estimates, config, loss)
    table = torch.stack(figures)
    if fused is not None and limit < math.inf:
        table = table[table[:, 0].isfinite()]  # without the steps after the end
    means = dict(zip(Losses._fields, table.mean(0).tolist(), strict=True))
    del means["total"]
    means["explained_variance"] = explained
    return {f"losses/{name}": value for name, value in means.items()}
