"""The learning pass as the settings want it: plain, compiled, or recorded as CUDA graphs."""

import os
import shutil

import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.train.config import TrainConfig
from pufferlib.train.cuda_graphs import GraphedLoss, check_cuda_graphs
from pufferlib.train.ppo import Loss, Losses, objective_by_terms, ppo_loss
from pufferlib.train.rollout import Minibatch

__all__ = ["build_loss", "check_compiler"]

COMPILERS = ("c++", "g++", "clang++")


def build_loss(config: TrainConfig, device: torch.device) -> Loss:
    """``ppo_loss``, compiled with ``train.compile``, recorded with ``train.cuda_graphs``.

    Raises:
        APIUsageError: There is no C++ compiler, or no GPU.
    """
    loss: Loss = ppo_loss
    if config.compile:
        check_compiler()
        loss = torch.compile(_loss_by_terms, dynamic=False)
    if config.cuda_graphs:
        check_cuda_graphs(config, device)
        loss = GraphedLoss(loss)
    return loss


def _loss_by_terms(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
    """``ppo_loss`` without what a compiler cannot look into."""
    params, values = policy(batch.observations, batch.state, batch.episode_starts)
    return objective_by_terms(policy.distribution, params, values, batch, config)


def check_compiler() -> None:
    """Raise APIUsageError if there is no C++ compiler: torch writes C++ for a CPU, and to launch kernels of a GPU."""
    named = os.environ.get("CXX")
    if not any(shutil.which(name) for name in ([named] if named else COMPILERS)):
        raise APIUsageError(
            f"train.compile needs a C++ compiler, found none ({f'CXX={named}' if named else ', '.join(COMPILERS)}); "
            "install g++, set CXX, or leave it out"
        )
