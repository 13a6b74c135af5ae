"""Estimates of a rollout while it is learned from, and the minibatches that are drawn by them."""

from collections.abc import Iterator

import torch

from pufferlib.models import Policy
from pufferlib.training.advantage import Estimates, vtrace
from pufferlib.training.config import TrainConfig
from pufferlib.training.draws import by_priority, in_order
from pufferlib.training.rollout import Minibatch, Rollout

__all__ = ["estimate_anew", "minibatches"]


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
