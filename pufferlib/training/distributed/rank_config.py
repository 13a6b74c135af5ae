"""Settings and devices of a rank, among those of all."""

import dataclasses
from typing import Any

import torch

from pufferlib.errors import APIUsageError
from pufferlib.training.config import Config
from pufferlib.training.distributed.ranks import Ranks
from pufferlib.training.text import plural

__all__ = ["check_agents", "config_of_all", "config_of_rank", "device_of_rank"]


def config_of_all(config: Config, ranks: Ranks) -> Config:
    """The settings with ``train.processes`` as they are.

    Raises:
        APIUsageError: They ask for another number of processes.
    """
    wanted = config.train.processes
    if wanted not in (1, ranks.size):
        raise APIUsageError(
            f"train.processes asks for {wanted} processes, and there {'is' if ranks.size == 1 else 'are'} "
            f"{ranks.size}; puffer train and pufferlib.train start as many by themselves, torchrun --nproc-per-node "
            f"{wanted} starts them too"
        )
    return dataclasses.replace(config, train=dataclasses.replace(config.train, processes=ranks.size))


def config_of_rank(config: Config, ranks: Ranks) -> Config:
    """The settings with a seed of this rank's own, for its environments and actions."""
    train = config.train
    return dataclasses.replace(config, train=dataclasses.replace(train, seed=ranks.seed(train.seed)))


def device_of_rank(device: torch.device, ranks: Ranks) -> torch.device:
    """The GPU of this rank, in turn, where ranks are to use those of their machine; else ``device`` as it is."""
    is_chosen = str(device) != "cuda"  # a CPU, or a GPU by its number
    if is_chosen or ranks.size == 1:
        return device
    own = torch.device("cuda", ranks.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(own)
    return own


def check_agents(ranks: Ranks, vecenv: Any) -> None:
    """Raise APIUsageError unless every rank has as many agents."""
    found = ranks.gather(int(vecenv.num_agents))
    if len(set(found)) > 1:
        each = ", ".join(f"{plural(count, 'agent')} in rank {rank}" for rank, count in enumerate(found))
        raise APIUsageError(
            f"train.processes: every rank must have as many agents, got {each}; give vec.num_envs and env.num_envs "
            "instead of leaving them to each machine"
        )
