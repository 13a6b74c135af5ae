"""How much better an action turned out than expected."""

import torch
from torch import Tensor

__all__ = ["generalized_advantage"]


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
