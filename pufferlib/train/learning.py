"""The learning pass as the settings want it: plain, compiled, or recorded as CUDA graphs."""

import os
import shutil

import torch

from pufferlib.errors import APIUsageError
from pufferlib.train.config import TrainConfig
from pufferlib.train.cuda_graphs import GraphedLoss, check_cuda_graphs
from pufferlib.train.ppo import Loss, ppo_loss

__all__ = ["build_loss"]

COMPILERS = ("c++", "g++", "clang++")


def build_loss(config: TrainConfig, device: torch.device) -> Loss:
    """``ppo_loss``, compiled with ``train.compile``, recorded with ``train.cuda_graphs``.

    Raises:
        APIUsageError: There is no C++ compiler, or no GPU.
    """
    loss: Loss = ppo_loss
    if config.compile:
        _check_compiler()
        loss = torch.compile(loss, dynamic=False)
    if config.cuda_graphs:
        check_cuda_graphs(config, device)
        loss = GraphedLoss(loss)
    return loss


def _check_compiler() -> None:
    """Torch writes C++ for a CPU, and for a GPU what launches its kernels."""
    named = os.environ.get("CXX")
    if not any(shutil.which(name) for name in ([named] if named else COMPILERS)):
        raise APIUsageError(
            f"train.compile needs a C++ compiler, found none ({f'CXX={named}' if named else ', '.join(COMPILERS)}); "
            "install g++, set CXX, or leave it out"
        )
