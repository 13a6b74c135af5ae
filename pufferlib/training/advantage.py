"""Advantages (how much better an action was than expected) and the scale of rewards."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pufferlib.training._advantage import sum_backwards

__all__ = ["Estimates", "deviation", "fit_reward_scale", "generalized_advantage", "vtrace"]

MAX_UNSCALED_STD = 2.0  # largest standard deviation of returns that are not scaled


class Estimates(NamedTuple):
    """Targets of learning, each float32 ``(T, agents)``.

    Attributes:
        advantages: Advantages of the actions, for the policy loss.
        returns: Targets for the values.
    """

    advantages: Tensor
    returns: Tensor


def generalized_advantage(
    rewards: Tensor, values: Tensor, episode_ends: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    r"""Compute the generalized advantage estimate (GAE) of each action.

    .. math::
        \delta_t = r_t + \gamma V_{t+1} (1 - d_t) - V_t \qquad
        A_t = \delta_t + \gamma \lambda (1 - d_t) A_{t+1}

    Source: Schulman et al., "High-Dimensional Continuous Control Using GAE" (2016), equation 16.

    Args:
        rewards: Rewards, float32 ``(T, agents)``.
        values: Value estimates for each step and for the observation after the last, ``(T + 1, agents)``.
        episode_ends: Whether step t was the last of its episode, bool ``(T, agents)``.
        gamma: Discount per step.
        gae_lambda: Weight of later rewards: 0 relies on the value of the next step, 1 on the whole sum of rewards.

    Returns:
        Advantages, ``(T, agents)``. The returns are ``advantages + values[:-1]``.
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
    r"""Compute advantages and returns with V-trace, which corrects for actions of an older policy.

    Without ``ratios`` the result is the generalized advantage estimate.

    .. math::
        \delta_t &= r_t + \gamma V_{t+1} (1 - d_t) - V_t \\
        e_t &= \rho_t \delta_t + \gamma \lambda (1 - d_t) c_t e_{t+1} \\
        R_t &= V_t + e_t \qquad A_t = \delta_t + \gamma \lambda (1 - d_t) e_{t+1}

    Here rho_t and c_t are ``ratios``, limited to ``rho_clip`` and ``c_clip``. R is equation 1 of the source with the
    lambda of its remark 2. The source's policy gradient (section 4.2) is weighted by rho_t. A does not contain this
    weight, because PPO's objective multiplies A by the ratio itself.

    A truncated episode counts as ended. Its last reward must already contain the discounted value of the last
    observation.

    Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
    Architectures" (2018).

    Args:
        rewards: Rewards, float32 ``(T, agents)``.
        values: Value estimates for each step and for the observation after the last, ``(T + 1, agents)``.
        episode_ends: Whether step t was the last of its episode, bool ``(T, agents)``.
        gamma: Discount per step.
        gae_lambda: Weight of later rewards: 0 relies on the value of the next step, 1 on the whole sum of rewards.
        ratios: Current probability of each action divided by its probability when it was chosen, ``(T, agents)``.
            None if the policy has not changed.
        rho_clip: Upper limit of rho. 0 replaces rho by 1.
        c_clip: Upper limit of c. 0 replaces c by 1.

    Returns:
        Advantages and returns. Without ``ratios``, the returns are the advantages plus the values.
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
    """Compute x_t + decay_t (x_{t+1} + decay_{t+1} (...)) for each t, in place of ``x``."""
    if all(each.device.type == "cpu" and each.dtype == torch.float32 and each.is_contiguous() for each in (x, decay)):
        sum_backwards(x, decay)
        return x
    rows, decays = x.unbind(0), decay.unbind(0)
    for t in range(len(rows) - 2, -1, -1):
        rows[t].addcmul_(decays[t], rows[t + 1])
    return x


def deviation(returns: Tensor) -> float:
    """Return the standard deviation of ``returns``, or 0 if it is empty."""
    return float(returns.std(correction=0)) if returns.numel() else 0.0


def fit_reward_scale(
    rewards: Tensor,
    episode_ends: Tensor,
    masks: Tensor,
    gamma: float,
    deviation: Callable[[Tensor], float] = deviation,
) -> float:
    """Return a factor for the rewards that keeps the value loss from dominating the policy loss.

    Args:
        rewards: Rewards of the first rollout, float32 ``(T, agents)``.
        episode_ends: Whether step t was the last of its episode, bool ``(T, agents)``.
        masks: Whether the agent was present, bool ``(T, agents)``.
        gamma: Discount per step.
        deviation: Function that returns the standard deviation of returns of shape ``(steps,)``. With several processes
            it covers the returns of all processes.

    Returns:
        The factor that brings the standard deviation of the discounted returns to 1 if it exceeds 2, otherwise 1.
    """
    nothing = rewards.new_zeros(len(rewards) + 1, *rewards.shape[1:])
    returns = generalized_advantage(rewards, nothing, episode_ends, gamma, gae_lambda=1.0)[masks]
    found = deviation(returns)
    return 1 / found if found > MAX_UNSCALED_STD else 1.0
