"""Weights of another run, with which a training starts: ``train.init``."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.runs import checkpoint
from pufferlib.runs.find import find_run
from pufferlib.settings.config import Config
from pufferlib.text import flag

__all__ = ["InitialWeights", "load_initial", "read_initial"]


class InitialWeights(NamedTuple):
    """Weights of a checkpoint, its file or folder, and its description."""

    path: Path
    about: checkpoint.About
    tensors: dict[str, Tensor]


def read_initial(init: str, device: torch.device) -> InitialWeights:
    """Read the weights of a run, a checkpoint or a policy file.

    Raises:
        APIUsageError: There is no such file, or it is damaged.
    """
    path = find_run("train.init", init, Path(init).parent).checkpoint
    return InitialWeights(path, checkpoint.read_about(path), checkpoint.read_policy(path, device))


def load_initial(initial: InitialWeights, policy: Policy, config: Config, is_given: bool) -> None:
    """Load weights into ``policy``.

    Args:
        initial: Weights of another run.
        policy: Policy to train.
        config: Settings of the training.
        is_given: Whether the caller made the policy, so that ``config.policy`` does not describe it.

    Raises:
        APIUsageError: The weights belong to another network or other spaces, or would act differently here. The message
            has the flags that make them fit.
    """
    theirs = Config.parse(str(initial.path), initial.about.config) if initial.about.config else None
    try:
        checkpoint.load_weights(policy, initial.tensors, initial.path, initial.about.env_name)
    except APIUsageError as error:
        checkpoint.check_spaces(policy, initial.about, initial.path)  # the cause, if they differ
        flags = _flags_of_network(theirs, config) if theirs else []
        raise APIUsageError(f"{error}{': ' if flags else ''}{' '.join(flags)}") from error
    if theirs and not is_given and theirs.policy.activation != config.policy.activation:  # weights do not show it
        raise APIUsageError(
            f"train.init: the network of {initial.path} was trained with policy.activation {theirs.policy.activation}, "
            f"got {config.policy.activation}, so its weights would act differently; "
            f"add {flag('policy.activation', theirs.policy.activation)}"
        )
    ours = config.train.rescale_actions
    if theirs and policy.distribution.is_far.any() and theirs.train.rescale_actions != ours:
        raise APIUsageError(
            f"train.init: the actions of {initial.path} have other units, since it was trained with "
            f"train.rescale_actions {str(not ours).lower()}, got {str(ours).lower()}; "
            f"add {flag('train.rescale_actions', not ours)}"
        )


def _flags_of_network(theirs: Config, ours: Config) -> list[str]:
    """Return the flags of the settings in which the network of a checkpoint differs."""
    named = dataclasses.asdict(ours.policy)
    pairs = dataclasses.asdict(theirs.policy).items()
    flags = [flag(f"policy.{name}", value) for name, value in pairs if value != named[name]]
    normalizes = bool(theirs.train.normalize_observations)  # the moments are buffers of the network
    is_same = normalizes == bool(ours.train.normalize_observations)
    return flags if is_same else [*flags, flag("train.normalize_observations", normalizes)]
