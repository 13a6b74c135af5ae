"""``ppo_loss`` as a kernel in C for CPUs: two passes over a minibatch instead of about 100 small torch calls."""

import dataclasses
import dis
import hashlib
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pufferlib.models import Policy
from pufferlib.models.distributions import ActionDistribution
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training._objective import objective
from pufferlib.training.ppo import Losses
from pufferlib.training.rollout import Minibatch

__all__ = ["fused_ppo_loss", "kernel_matches_loss"]

TERMS = ("ppo_loss", "policy_loss", "value_loss", "normalize", "masked_mean", "accumulate_gradients", "apply_gradients")
#: Fingerprint of these functions of ``ppo``, which C code reimplements. Change them and the C code together.
KERNEL_FINGERPRINT = "010b1739d21cf3d7"


def kernel_matches_loss() -> bool:
    """Return whether ``ppo_loss``, the functions that it calls and the gradient step are unedited."""
    return fingerprint() == KERNEL_FINGERPRINT


def fingerprint() -> str:
    """Return a hash of the code of ``TERMS``, without docstrings, comments and layout."""
    text = repr([_instructions(getattr(ppo, name)) for name in TERMS])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _instructions(code: Any) -> list[tuple[str, Any]]:
    """Return the instructions of a function, and of those inside it."""
    # Under python -OO, docstrings become NOPs, which shift the targets of jumps.
    jumps = {*dis.hasjrel, *dis.hasjabs}
    return [
        (each.opname, _instructions(inner) if isinstance(inner := each.argval, CodeType) else inner)
        if each.opcode not in jumps
        else (each.opname, None)
        for each in dis.get_instructions(code)
        if each.opname != "NOP"
    ]


def fused_ppo_loss(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
    """Compute ``ppo_loss`` with the kernel, or with torch if a tensor is not float32 on a CPU."""
    params, values = policy(batch.observations, batch.state, batch.episode_starts)
    floats = params, values, batch.log_probs, batch.values, batch.advantages, batch.returns
    if all(field.device.type == "cpu" and field.dtype == torch.float32 for field in floats):
        total, figures = _Fused.apply(params, values, policy.distribution, batch, config)  # type: ignore[no-untyped-call]
        return Losses(total, *figures.unbind())
    known: Any = _Evaluated(policy.distribution, params, values)
    return ppo.ppo_loss(known, batch, config)


class _Evaluated(NamedTuple):
    """Policy with known outputs, so that its network does not run twice."""

    distribution: ActionDistribution
    params: Tensor
    values: Tensor

    def __call__(self, *_: Any) -> tuple[Tensor, Tensor]:
        """Return the outputs."""
        return self.params, self.values


class _Fused(torch.autograd.Function):
    """``ppo_loss`` as a function of a network's outputs, with its derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        params: Tensor,
        values: Tensor,
        distribution: ActionDistribution,
        batch: Minibatch,
        config: TrainConfig,
    ) -> tuple[Tensor, Tensor]:
        """Return the loss, and the other fields of ``Losses``."""
        if not batch.log_probs.is_contiguous():  # the batch is part of a larger one
            fields: dict[str, Any] = {k: x.contiguous() for k, x in vars(batch).items() if isinstance(x, Tensor)}
            batch = dataclasses.replace(batch, **fields)
        log_probs, entropies = distribution.evaluate(params, batch.actions)
        d_log_probs, d_entropies, d_values = torch.empty(3, *values.shape).unbind()
        figures = objective(
            log_probs, entropies, values.contiguous(), batch, config, d_log_probs, d_entropies, d_values
        )
        d_params = distribution.differentiate(params, batch.actions, d_log_probs, d_entropies)
        ctx.save_for_backward(d_params, d_values)
        rest = torch.tensor(figures[1:])
        ctx.mark_non_differentiable(rest)
        return torch.tensor(figures[0]), rest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives with respect to ``params`` and ``values``."""
        d_params, d_values = ctx.saved_tensors
        return d_params * d_total, d_values * d_total, None, None, None
