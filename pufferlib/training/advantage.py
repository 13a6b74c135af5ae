"""Advantages: by how much an action turned out better than expected; and the scale of rewards."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pufferlib.training._advantage import sum_backwards

__all__ = ["Estimates", "deviation", "fit_reward_scale", "generalized_advantage", "vtrace"]

MOST_DEVIATION = 2.0  # of returns that are learned from as they are


class Estimates(NamedTuple):
    """Targets of learning, float32 ``(T, agents)`` each.

    Attributes:
        advantages: Of the actions; what the policy learns from.
        returns: What the values should have been.
    """

    advantages: Tensor
    returns: Tensor


def generalized_advantage(
    rewards: Tensor, values: Tensor, episode_ends: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    r"""Generalised advantage estimate: the advantages of ``vtrace`` for actions of the policy that is learned.

    .. math::
        \delta_t = r_t + \gamma V_{t+1} (1 - d_t) - V_t \qquad
        A_t = \delta_t + \gamma \lambda (1 - d_t) A_{t+1}

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
    return vtrace(rewards, values, episode_ends, gamma, gae_lambda).advantages


@torch.no_grad()
def vtrace(
    rewards: Tensor,
    values: Tensor,
    episode_ends: Tensor,
    gamma: float,
    gae_lambda: float,
    ratios: Tensor | None = None,
    rho_clip: float = 0.0,
    c_clip: float = 0.0,
) -> Estimates:
    r"""V-trace: what to learn from the actions of an older policy; generalised advantages where it is none.

    .. math::
        \delta_t &= r_t + \gamma V_{t+1} (1 - d_t) - V_t \\
        e_t &= \rho_t \delta_t + \gamma \lambda (1 - d_t) c_t e_{t+1} \\
        R_t &= V_t + e_t \qquad A_t = \delta_t + \gamma \lambda (1 - d_t) e_{t+1}

    with the ratios of probabilities, now over then, limited: rho_t to ``rho_clip`` and c_t to ``c_clip``. R is
    equation 1 of the source with the lambda of its remark 2. The policy gradient of its section 4.2 is weighted by
    rho_t; here A is without it, since PPO's objective multiplies A by the ratio itself.

    An episode that was cut off, not lost, counts as ended here: its last reward already holds the
    discounted value of what would have followed.

    Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
    Architectures" (2018).

    Args:
        rewards: float32 ``(T, agents)``.
        values: Estimates for each step and for the observation after the last, ``(T + 1, agents)``.
        episode_ends: bool ``(T, agents)``; True where step t was the last of its episode.
        gamma: Discount per step.
        gae_lambda: 0 trusts the next value, 1 the whole sum of rewards.
        ratios: Probability of each action now, over that when it was chosen, ``(T, agents)``; None if it is the same.
        rho_clip: Limit of rho; 0 takes 1 for it.
        c_clip: Limit of c; 0 takes 1 for it.

    Returns:
        Advantages and returns; without ``ratios`` the returns are the advantages plus the values.
    """
    continues = (~episode_ends).to(values.dtype).mul_(gamma)
    deltas = torch.addcmul(rewards, continues, values[1:]).sub_(values[:-1])
    continues.mul_(gae_lambda)
    if ratios is None:
        advantages = _sum_backwards(deltas, continues)
        return Estimates(advantages, advantages + values[:-1])
    rho = ratios.clamp(max=rho_clip) if rho_clip else 1.0
    c = ratios.clamp(max=c_clip) if c_clip else 1.0
    errors = _sum_backwards(deltas * rho, continues * c)
    deltas[:-1].addcmul_(continues[:-1], errors[1:])
    return Estimates(deltas, errors + values[:-1])


def _sum_backwards(x: Tensor, decay: Tensor) -> Tensor:
    """x_t + decay_t (x_{t+1} + decay_{t+1} (...)), in place of ``x``."""
    if all(each.device.type == "cpu" and each.dtype == torch.float32 and each.is_contiguous() for each in (x, decay)):
        sum_backwards(x, decay)
        return x
    rows, decays = x.unbind(0), decay.unbind(0)
    for t in range(len(rows) - 2, -1, -1):
        rows[t].addcmul_(decays[t], rows[t + 1])
    return x


def deviation(returns: Tensor) -> float:
    """Standard deviation of ``returns``; 0 where there are none."""
    return float(returns.std(correction=0)) if returns.numel() else 0.0


def fit_reward_scale(
    rewards: Tensor,
    episode_ends: Tensor,
    masks: Tensor,
    gamma: float,
    deviation: Callable[[Tensor], float] = deviation,
) -> float:
    """Factor for the rewards with which no value loss drowns the policy's.

    Args:
        rewards: Of the first rollout, float32 ``(T, agents)``.
        episode_ends: bool ``(T, agents)``; True where step t was the last of its episode.
        masks: bool ``(T, agents)``; False where an agent was absent.
        gamma: Discount per step.
        deviation: Of returns, ``(steps,)``; with several processes it is that of all.

    Returns:
        1, or where the discounted returns deviate by more than 2 what brings their deviation to 1.
    """
    nothing = rewards.new_zeros(len(rewards) + 1, *rewards.shape[1:])
    returns = generalized_advantage(rewards, nothing, episode_ends, gamma, gae_lambda=1.0)[masks]
    found = deviation(returns)
    return 1 / found if found > MOST_DEVIATION else 1.0
