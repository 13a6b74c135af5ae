"""Advantages: by how much an action turned out better than expected; and the scale of rewards."""

import torch
from torch import Tensor

__all__ = ["fit_reward_scale", "generalized_advantage"]

MOST_DEVIATION = 2.0  # of returns that are learned from as they are


def generalized_advantage(
    rewards: Tensor, values: Tensor, episode_ends: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    r"""Generalised advantage estimate.

    .. math::
        \delta_t = r_t + \gamma V_{t+1} (1 - d_t) - V_t \qquad
        A_t = \delta_t + \gamma \lambda (1 - d_t) A_{t+1}

    An episode that was cut off, not lost, counts as ended here: its last reward already holds the
    discounted value of what would have followed.

    Source: Schulman et al., "High-Dimensional Continuous Control Using GAE" (2016), equation 16.

    Args:
        rewards: float32 ``(T, agents)``.
        values: Estimates for each step and for the observation after the last, ``(T + 1, agents)``.
        episode_ends: bool ``(T, agents)``; True where step t was the last of its episode.
        gamma: Discount per step.
        gae_lambda: 0 trusts the next value, 1 the whole sum of rewards.

    Returns:
        Advantages ``(T, agents)``; ``advantages + values[:-1]`` are the returns.
    """
    continues = (~episode_ends).to(values.dtype).mul_(gamma)
    advantages = torch.addcmul(rewards, continues, values[1:]).sub_(values[:-1])  # the deltas, for now
    continues.mul_(gae_lambda)
    for t in range(len(rewards) - 2, -1, -1):
        advantages[t].addcmul_(continues[t], advantages[t + 1])
    return advantages


def fit_reward_scale(rewards: Tensor, episode_ends: Tensor, masks: Tensor, gamma: float) -> float:
    """Factor for the rewards with which no value loss drowns the policy's.

    Args:
        rewards: Of the first rollout, float32 ``(T, agents)``.
        episode_ends: bool ``(T, agents)``; True where step t was the last of its episode.
        masks: bool ``(T, agents)``; False where an agent was absent.
        gamma: Discount per step.

    Returns:
        1, or where the discounted returns deviate by more than 2 what brings their deviation to 1.
    """
    nothing = rewards.new_zeros(len(rewards) + 1, *rewards.shape[1:])
    returns = generalized_advantage(rewards, nothing, episode_ends, gamma, gae_lambda=1.0)[masks]
    deviation = float(returns.std(correction=0)) if returns.numel() else 0.0
    return 1 / deviation if deviation > MOST_DEVIATION else 1.0
