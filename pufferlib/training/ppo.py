"""Proximal policy optimization: the loss, and the update of a policy from a rollout."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

import torch
from torch import Tensor, nn

from pufferlib.models import Policy
from pufferlib.training.advantage import Estimates, deviation, vtrace
from pufferlib.training.config import TrainConfig
from pufferlib.training.diagnosis import NonFiniteError
from pufferlib.training.episodes import EpisodeMeans
from pufferlib.training.rollout import Minibatch, Rollout, by_priority, in_order

__all__ = [
    "Loss",
    "Losses",
    "RecordedStep",
    "Reduction",
    "accumulate_gradients",
    "estimate_anew",
    "explained_variance",
    "masked_mean",
    "minibatches",
    "normalize",
    "policy_loss",
    "ppo_loss",
    "update",
    "value_loss",
]


def minibatches(
    rollout: Rollout, estimates: Estimates, config: TrainConfig, generator: torch.Generator
) -> Iterator[Minibatch]:
    """One pass over the rollout: every part once, or with ``priority_alpha`` those of large advantages more often."""
    draws = None
    if config.priority_alpha > 0 and bool(rollout.masks.any()):
        advantages, masks = rollout.as_parts(estimates.advantages), rollout.as_parts(rollout.masks)
        draws = by_priority(advantages, masks, rollout.rows, config, generator)
    return rollout.minibatches(estimates.advantages, generator, estimates.returns, draws)


@torch.no_grad()
def estimate_anew(policy: Policy, rollout: Rollout, config: TrainConfig) -> Estimates:
    """V-trace by the policy as it is now, on a rollout that an older one collected.

    The value of the observation after the last, and those of observations at which episodes were cut off, stay
    as they were: the rollout does not hold these observations.
    """
    values, ratios = rollout.values.clone(), torch.empty_like(rollout.log_probs)
    parts = rollout.as_parts(ratios), rollout.as_parts(values[:-1])
    draws = list(in_order(parts[0].shape[1], rollout.rows))
    batches = rollout.minibatches(ratios, torch.default_generator, draws=draws)
    is_learning = policy.training
    policy.eval()  # as it acts
    for (chosen, _), batch in zip(draws, batches, strict=True):
        params, now = policy(batch.observations, batch.state, batch.episode_starts)
        log_probs = policy.distribution.log_prob(params, batch.actions)
        parts[0][:, chosen] = (log_probs - batch.log_probs).exp()
        parts[1][:, chosen] = now
    policy.train(is_learning)
    clips = config.vtrace_rho_clip, config.vtrace_c_clip
    return vtrace(rollout.rewards, values, rollout.episode_ends, config.gamma, config.gae_lambda, ratios, *clips)


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


#: Takes the policy, a minibatch and the settings, as ``ppo_loss`` does.
Loss = Callable[[Policy, Minibatch, TrainConfig], Losses]


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of ``x`` where ``mask`` is True, or weighted by it; of all without a mask; 0 where nothing is left."""
    if mask is None:
        return x.mean()
    total = mask.sum()
    return (x * mask).sum() / (total + (total == 0))


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
    r"""PPO's objective on one minibatch; on a CPU the trainer runs a C kernel of it, until you edit it or pass another.

    .. math::
        L = L^{policy} + c_v L^{value} - c_e H[\pi]

    ``approx_kl`` is the mean of (rho - 1) - log rho, which is never negative (Schulman,
    "Approximating KL Divergence", 2020, estimator k3).

    Args:
        policy: Evaluated anew, with gradients.
        batch: Steps and what was estimated of them when they were taken; steps that its mask leaves out do not
            count, and with ``weights`` some count more than others.
        config: ``clip_coef``, ``vf_clip_coef``, ``vf_coef``, ``ent_coef``, and with ``norm_adv`` the advantages are
            normalised within the minibatch.

    Returns:
        The objective, and the figures that tell how learning goes.
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
    return Losses(total, pg_loss.detach(), v_loss.detach(), entropy.detach(), approx_kl, clip_fraction)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor | None = None) -> float:
    """1 - Var[R - V] / Var[R] over the entries that count; NaN when all their returns are equal.

    1 for perfect values, 0 for a constant.
    """
    if mask is not None:
        values, returns = values[mask], returns[mask]
    variance = returns.var(correction=0)
    return float("nan") if variance == 0 else float(1 - (returns - values).var(correction=0) / variance)


def accumulate_gradients(
    policy: Policy, batch: Minibatch, config: TrainConfig, loss: Loss = ppo_loss, is_checked: bool = True
) -> list[Tensor]:
    """Add the gradient of the mean loss of ``batch`` to that of the parameters.

    In ``accumulate_minibatches`` parts, one after the other: each part weighs as much as it has steps that count, and
    the advantages are normalised over all of them, so that the sum is the gradient of one large minibatch.

    Args:
        policy: Network that learns.
        batch: Minibatch.
        config: ``accumulate_minibatches``, ``norm_adv``, and all that ``loss`` reads.
        loss: Loss, as ``ppo_loss``.
        is_checked: Raise an error if the loss is not finite, for which the CPU waits for the loss.

    Returns:
        The figures of each part, in the order of ``Losses``.

    Raises:
        PufferError: The loss is not finite.
    """
    count, total = config.accumulate_minibatches, batch.counted
    if count > 1 and config.norm_adv:
        batch = dataclasses.replace(batch, advantages=normalize(batch.advantages, total))
        config = dataclasses.replace(config, norm_adv=False)
    figures = []
    for part in batch.split(count) if count > 1 else [batch]:
        losses = loss(policy, part, config)
        if is_checked and not torch.isfinite(losses.total):
            raise NonFiniteError(
                f"ppo.update: the loss must be finite, got {losses.total.item()}; lower train.learning_rate "
                "or train.reward_scale, and look for NaN in the observations",
                part.observations,
                part.state,
                episode_starts=part.episode_starts,
                losses=losses._asdict(),
            )
        share = None if count == 1 else _share(part.counted, total, torch.full_like(losses.total, 1 / count))
        torch.autograd.backward(losses.total, share)
        figures.append(torch.stack([figure.detach() for figure in losses]))
    return figures


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

    def merge_moments(self, vecenv: Any) -> None:
        """Merge the running moments of all processes."""

    def start_moments(self, vecenv: Any) -> None:
        """Take the current running moments as those that the processes have in common."""

    def state_dict(self) -> dict[str, Any]:
        """Return the moments that the processes have in common."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the moments of ``state_dict``."""


class RecordedStep(Protocol):
    """Gradient step that is recorded once and launched for each minibatch, as with CUDA graphs."""

    def begin(self, config: TrainConfig) -> None:
        """Take the coefficients of an update."""

    def __call__(self, batch: Minibatch) -> list[Tensor]:
        """Take a step and return the figures of each part, in the order of ``Losses``."""

    def has_failed(self) -> bool:
        """Return whether a loss of the update was not finite."""


def _share(part: Tensor | None, whole: Tensor | None, even: Tensor) -> Tensor:
    """Share of a part in the mean over a whole minibatch; ``even`` where all steps count alike."""
    return even if part is None or whole is None else part.sum() / whole.sum().clamp(min=1)


def apply_gradients(policy: Policy, optimizer: torch.optim.Optimizer, config: TrainConfig) -> None:
    """Take a gradient step. A gradient longer than ``max_grad_norm`` is scaled down to it, unless that is 0."""
    if config.max_grad_norm > 0:
        nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
    optimizer.step()


def raise_for_loss(
    policy: Policy, rollout: Rollout, estimates: Estimates, config: TrainConfig, loss: Loss = ppo_loss
) -> NoReturn:
    """Raise the error for a loss that was not finite, found by computing it again for all of the rollout.

    Raises:
        NonFiniteError: Always, with the first minibatch whose loss is not finite.
    """
    draws = in_order(rollout.as_parts(rollout.masks).shape[1], rollout.rows)
    for batch in rollout.minibatches(estimates.advantages, torch.default_generator, estimates.returns, draws):
        policy.zero_grad()
        accumulate_gradients(policy, batch, config, loss)
    raise NonFiniteError("ppo.update: the loss must be finite, got NaN or infinity", batch.observations, batch.state)


def _passes(
    policy: Policy, rollout: Rollout, estimates: Estimates, config: TrainConfig, generator: torch.Generator
) -> Iterator[Minibatch]:
    """Yield the minibatches of all passes over ``rollout``."""
    for epoch in range(config.update_epochs):
        is_stale = epoch > 0 or config.overlap == "learning"  # another policy acted than the one that learns
        if is_stale and (config.vtrace_rho_clip or config.vtrace_c_clip):
            estimates = estimate_anew(policy, rollout, config)
        yield from minibatches(rollout, estimates, config, generator)


def _approx_kl(parts: list[Tensor]) -> float:
    """Return the mean ``approx_kl`` of the parts of a minibatch."""
    return float(torch.stack(parts)[:, Losses._fields.index("approx_kl")].mean())


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: Tensor,
    config: TrainConfig,
    generator: torch.Generator,
    loss: Loss = ppo_loss,
    reduction: Reduction | None = None,
    graphed: RecordedStep | None = None,
) -> dict[str, float]:
    """Learn from one rollout: ``update_epochs`` passes over it in minibatches.

    With ``target_kl`` above 0, the first minibatch whose ``approx_kl`` exceeds it is the last one of the update.

    Args:
        policy: Is changed.
        optimizer: Of the policy's parameters.
        rollout: What was experienced.
        advantages: float32 ``(horizon, num_agents)``.
        config: Coefficients.
        generator: Shuffles the minibatches.
        loss: Takes the policy, a minibatch and the settings.
        reduction: Joins gradients and figures with those of other processes; None where there are none.
        graphed: Takes the gradient steps instead, as CUDA graphs; None without them.

    Returns:
        ``losses/<name>``: means over the minibatches; ``explained_variance`` of the values used.

    Raises:
        PufferError: The loss is not finite; the policy is left as it was before that minibatch.
    """
    estimates = Estimates(advantages, advantages + rollout.values[:-1])
    accumulate = accumulate_gradients if reduction is None else reduction.accumulate_gradients
    explain = explained_variance if reduction is None else reduction.explained_variance
    explained = explain(rollout.values[:-1], estimates.returns, rollout.masks)
    figures: list[Tensor] = []
    if graphed is not None:
        graphed.begin(config)
    for batch in _passes(policy, rollout, estimates, config, generator):
        if graphed is not None:
            parts = graphed(batch)
        else:
            optimizer.zero_grad()
            parts = accumulate(policy, batch, config, loss)
            apply_gradients(policy, optimizer, config)
        figures += parts
        if config.target_kl > 0 and _approx_kl(parts) > config.target_kl:
            break
    if graphed is not None and graphed.has_failed():
        raise_for_loss(policy, rollout, estimates, config, loss)
    means = dict(zip(Losses._fields, torch.stack(figures).mean(0).tolist(), strict=True))
    del means["total"]
    means["explained_variance"] = explained
    return {f"losses/{name}": value for name, value in means.items()}
