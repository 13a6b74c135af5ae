"""Segments as the kernels take them, and the sums of products that their derivatives are made of."""

from types import ModuleType

import torch
from torch import Tensor

from pufferlib.models import gpu_code
from pufferlib.models.recurrent import _kernels, gpu_kernels

__all__ = [
    "add_product",
    "add_to_bias",
    "kernel_dtype",
    "kernels_of",
    "parts",
    "product",
    "starts_of_steps",
    "without_memory",
]

# Least rows of a product, of one step or of several: fewer cost more each, and what more work on leaves the cache.
ROWS = {torch.float32: 256, torch.bfloat16: 2048}


def kernel_dtype(inputs: Tensor, *others: Tensor) -> torch.dtype | None:
    """Return the number format of products if our kernels can compute a cell, or None if torch must.

    float32, or bfloat16 inside ``torch.autocast`` with that dtype.

    Args:
        inputs: Inputs of the cell. They may be in the format of the products.
        others: Weights and memory of the cell.
    """
    device = inputs.device
    if torch.compiler.is_compiling() or device.type not in ("cpu", "cuda"):
        return None
    dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
    is_known = dtype in (torch.float32, torch.bfloat16) and inputs.dtype in (torch.float32, dtype)
    is_plain = all(tensor.device == device and tensor.dtype == torch.float32 for tensor in others)
    if not (is_known and is_plain):
        return None
    return dtype if device.type == "cpu" or gpu_code.can_compile(device) else None


def kernels_of(tensor: Tensor) -> ModuleType:
    """Return the kernels for the device of ``tensor``."""
    return _kernels if tensor.is_cpu else gpu_kernels


def starts_of_steps(starts: Tensor | None, steps: int) -> list[Tensor | None]:
    """``starts``, bool ``(steps, rows)`` or None, step by step, and None for the step after the last."""
    return [*([None] * steps if starts is None else starts.contiguous().unbind(0)), None]


def without_memory(memory: Tensor, starts: Tensor | None) -> Tensor:
    """``memory`` ``(rows, size)`` with 0 in the rows that begin an episode, bool ``(rows,)``."""
    return memory if starts is None else memory.masked_fill(starts.unsqueeze(1), 0)


def parts(inputs: Tensor) -> list[slice]:
    """Steps whose inputs ``(steps, rows, size)`` are multiplied together."""
    steps, rows = inputs.shape[:2]
    if not inputs.is_cpu:
        return [slice(0, steps)]
    size = max(ROWS[inputs.dtype] // max(rows, 1), 1)
    return [slice(start, min(start + size, steps)) for start in range(0, steps, size)]


def product(inputs: Tensor, weight: Tensor) -> Tensor:
    """``inputs`` ``(steps, rows, size)`` times the transposed ``weight``, ``(steps, rows, len(weight))``."""
    return torch.mm(inputs.flatten(0, 1), weight.t()).view(*inputs.shape[:2], -1)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add to ``total`` what ``left`` and ``right``, ``(steps, rows, ...)``, are as a product over all rows.

    They may be in a shorter number format than ``total``.
    """
    left, right = left.flatten(0, 1).t(), right.flatten(0, 1)
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total.add_(torch.mm(left, right))


def add_to_bias(dbias: Tensor, dgates: Tensor) -> None:
    """Add the derivatives of gates, ``(steps, rows, ...)``, to that of their bias, as kernels of a CPU have done."""
    if not dgates.is_cpu:
        dbias.add_(dgates.flatten(0, 1).sum(0, dtype=dbias.dtype))
