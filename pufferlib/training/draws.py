"""Draws: the parts of a rollout that make up each minibatch, and their weights in its loss."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pufferlib.training.config import TrainConfig

__all__ = ["Draw", "by_priority", "in_order", "shuffled"]

LEAST_PRIORITY = 1e-6  # so that a part whose advantage is 0 is drawn now and then


class Draw(NamedTuple):
    """The parts of one minibatch.

    Attributes:
        parts: int64 ``(rows,)``, indices of parts: single steps, or segments for a policy with memory.
        weights: Of each in the loss, float32 ``(rows,)``; None where all weigh the same.
    """

    parts: Tensor
    weights: Tensor | None = None


def in_order(num_parts: int, rows: int) -> Iterator[Draw]:
    """Every part once, from the first to the last."""
    for parts in torch.split(torch.arange(num_parts), rows):
        yield Draw(parts)


def shuffled(num_parts: int, rows: int, generator: torch.Generator) -> Iterator[Draw]:
    """Every part once, in random order."""
    for parts in torch.split(torch.randperm(num_parts, generator=generator, device=generator.device), rows):
        yield Draw(parts)


def by_priority(
    advantages: Tensor, masks: Tensor, rows: int, config: TrainConfig, generator: torch.Generator
) -> Iterator[Draw]:
    r"""As many minibatches as ``shuffled`` gives, each drawn anew, with replacement.

    .. math::
        P_i = \frac{p_i^\alpha}{\sum_k p_k^\alpha}, \quad w_i = (N P_i)^{-\beta}

    p is the mean size of a part's advantages. With :math:`\beta = 1` the weights make up for the draw in full.

    Source: Schaul et al., "Prioritized Experience Replay" (2016), equation 1 and section 3.4.

    Args:
        advantages: float32 ``(steps of a part, parts)``.
        masks: bool of the same shape; False where a step does not count. Parts without any are never drawn.
        rows: Parts of a minibatch.
        config: ``priority_alpha`` and ``priority_beta``.
        generator: Source of randomness.
    """
    counts = masks.sum(0)
    sizes = (advantages.abs() * masks).sum(0) / counts.clamp(min=1) + LEAST_PRIORITY
    chances = (sizes.double() ** config.priority_alpha) * (counts > 0)
    chances /= chances.sum()
    weights = (chances * (counts > 0).sum()) ** -config.priority_beta
    bounds = chances.cumsum(0)
    last = int((counts > 0).nonzero()[-1])  # where rounding leaves the sum of all below a draw
    for _ in range(0, len(chances), rows):
        draws = torch.rand(rows, dtype=torch.float64, generator=generator, device=generator.device).to(bounds.device)
        parts = torch.searchsorted(bounds, draws, right=True).clamp(max=last)
        yield Draw(parts, weights[parts].float())
