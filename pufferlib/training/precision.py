"""Mixed precision: networks that compute in bfloat16, with weights, losses and optimizer in float32."""

import copy
import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from pufferlib.machine.cpus import warn_without_bfloat16
from pufferlib.models import Policy, State

__all__ = ["autocast", "in_precision"]


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Context in which matrix products and convolutions are computed in ``precision``, and weights converted once."""
    return nullcontext() if precision == "float32" else torch.autocast(device.type, torch.bfloat16)


def in_precision(policy: Policy, precision: str, device: torch.device, cache: bool = True) -> Policy:
    """The policy as it computes in ``precision``; its weights are the same tensors, and its outputs are float32.

    Args:
        policy: Stays as it is, and is returned itself for "float32".
        precision: "float32" or "bfloat16".
        device: The policy's. A CPU that has no instructions for bfloat16 is told of in a warning.
        cache: Convert each weight once in a context of ``autocast``; not for what is recorded and replayed.
    """
    if precision == "float32":
        return policy
    if device.type == "cpu":
        warn_without_bfloat16("train.precision")
    elif torch.cuda.get_device_capability(device) < (8, 0):
        warnings.warn(
            f"train.precision: {torch.cuda.get_device_name(device)} has no instructions for bfloat16, which newer GPUs "
            "have from compute capability 8.0 on, so that it is slower than float32; use float32",
            stacklevel=2,
        )
    twin = copy.copy(policy)  # shares parameters and layers
    for name in ("forward", "forward_eval"):
        setattr(twin, name, _cast(getattr(policy, name), device, cache))
    return twin


def _cast(
    forward: Callable[..., tuple[Tensor, Tensor]], device: torch.device, cache: bool
) -> Callable[..., tuple[Tensor, Tensor]]:
    @functools.wraps(forward)
    def cast(observations: Tensor, state: State | None = None, *rest: Any) -> tuple[Tensor, Tensor]:
        with torch.autocast(device.type, torch.bfloat16, cache_enabled=cache):
            params, values = forward(observations, state, *rest)
        if state:
            state.update((name, memory.float()) for name, memory in state.items())
        return params.float(), values.float()

    return cast
