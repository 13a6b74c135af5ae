"""The learning pass as the settings want it: plain, compiled, or recorded as CUDA graphs."""

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.training.config import TrainConfig
from pufferlib.training.cuda_graphs import CudaRecorder, GraphedStep, uses_cuda_graphs
from pufferlib.training.fused_loss import fused_ppo_loss, is_what_the_kernel_computes
from pufferlib.training.ppo import Loss, Losses, ppo_loss
from pufferlib.training.rollout import Minibatch

__all__ = ["build_graphed_step", "build_loss", "check_compiler", "training_mode"]

COMPILERS = ("c++", "g++", "clang++")


def build_loss(loss: Loss, config: TrainConfig, device: torch.device) -> Loss:
    """Return ``loss`` as it is computed: by ``torch.compile``, by the C kernel, or as it stands.

    Args:
        loss: ``ppo_loss``, or a user's own, which has no kernel.
        config: ``compile``.
        device: Of the network. Kernels are for CPUs.

    Raises:
        APIUsageError: There is no compiler, or ``loss`` is no function.
    """
    if not callable(loss):
        raise APIUsageError(f"Trainer: loss must be a function (policy, minibatch, config) -> Losses, got {loss!r}")
    is_own = loss is not ppo_loss
    if config.compile:
        check_compiler(device)
        loss = _Compiled(loss, device)
    elif not is_own and device.type == "cpu" and is_what_the_kernel_computes():
        return fused_ppo_loss
    return _checked(loss) if is_own else loss


def _checked(loss: Loss) -> Loss:
    """Return the loss of a user with a check of what it returns, which looks at no value."""

    @functools.wraps(loss, updated=())
    def checked(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        losses: Any = loss(policy, batch, config)
        if not isinstance(losses, Losses):
            raise APIUsageError(
                f"Trainer: loss must return pufferlib.training.Losses, got {type(losses).__name__}; change one of "
                "ppo_loss by losses._replace(total=...)"
            )
        for name, figure in zip(Losses._fields, losses, strict=True):
            if not isinstance(figure, Tensor) or figure.shape:
                got = f"shape {tuple(figure.shape)}" if isinstance(figure, Tensor) else type(figure).__name__
                raise APIUsageError(f"Trainer: {name} of the loss must be a scalar tensor, got {got}")
        if not losses.total.requires_grad:
            raise APIUsageError(
                "Trainer: total of the loss must have gradients, got a tensor without; look for detach(), item() "
                "and torch.no_grad"
            )
        return losses

    return checked


class _Compiled:
    """A loss by ``torch.compile``, which compiles again if a number in the settings changes.

    So coefficients that have a schedule are tensors here.
    """

    def __init__(self, loss: Loss, device: torch.device) -> None:
        self._loss: Loss = torch.compile(loss, dynamic=False)
        self._coefficients = dict(zip(("clip_coef", "ent_coef"), torch.zeros(2, device=device).unbind(), strict=True))

    def __call__(self, policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        coefficient: Any = config.clip_coef
        if not isinstance(coefficient, Tensor):  # CUDA graphs have made it a tensor
            for name, tensor in self._coefficients.items():
                tensor.fill_(getattr(config, name))
            coefficients: dict[str, Any] = self._coefficients
            config = dataclasses.replace(config, **coefficients)
        return self._loss(policy, batch, config)


def build_graphed_step(
    policy: Policy, optimizer: torch.optim.Optimizer, loss: Loss, config: TrainConfig, device: torch.device, ranks: int
) -> GraphedStep | None:
    """Return the gradient step as a CUDA graph, or None without ``train.cuda_graphs`` and with several ranks.

    Raises:
        APIUsageError: ``train.cuda_graphs`` is True where it cannot be.
    """
    if not uses_cuda_graphs(config, device) or ranks > 1:
        return None
    return GraphedStep(policy, optimizer, loss, CudaRecorder(device, bool(config.cuda_graphs)), device)


def check_compiler(device: torch.device) -> None:
    """Raise APIUsageError if there is no C++ compiler, or for a GPU no C compiler, which Triton needs."""
    needs = [("C++", "CXX", COMPILERS, "g++")]
    if device.type == "cuda":
        needs.append(("C", "CC", ("cc", "gcc", "clang"), "gcc"))
    for language, variable, names, package in needs:
        named = os.environ.get(variable)
        if not any(shutil.which(name) for name in ([named] if named else names)):
            tried = f"{variable}={named}" if named else ", ".join(names)
            raise APIUsageError(
                f"train.compile needs a {language} compiler, found none ({tried}); install {package}, set {variable}, "
                "or leave it out"
            )


@contextlib.contextmanager
def training_mode(*policies: Policy) -> Iterator[None]:
    """Context in which modules such as dropout and batch normalization learn, and gradients are computed.

    Outside, policies act and evaluate, and gradients are computed if the caller's ``torch.no_grad`` lets them.
    """
    for policy in policies:
        policy.train()
    try:
        with torch.enable_grad():
            yield
    finally:
        for policy in policies:
            policy.eval()
