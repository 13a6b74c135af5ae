"""Preparation of segments for the kernels, and sums of products for their gradients."""

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

# Minimum number of rows in a product, from one or several steps. Smaller products are less efficient per row, and the
# data of larger ones does not stay in the cache.
ROWS = {torch.float32: 256, torch.bfloat16: 2048}


def kernel_dtype(inputs: Tensor, *others: Tensor) -> torch.dtype | None:
    """Return the dtype of products if the compiled kernels can compute a cell, or None if torch must.

    The dtype is float32, or bfloat16 inside ``torch.autocast`` with this dtype.

    Args:
        inputs: Inputs of the cell, in float32 or the dtype of the products.
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
    """Split ``starts``, bool ``(steps, rows)`` or None, into steps, followed by None for the step after the last."""
    return [*([None] * steps if starts is None else starts.contiguous().unbind(0)), None]


def without_memory(memory: Tensor, starts: Tensor | None) -> Tensor:
    """Return ``memory`` ``(rows, size)`` with zeros where ``starts``, bool ``(rows,)``, is True."""
    return memory if starts is None else memory.masked_fill(starts.unsqueeze(1), 0)


def parts(inputs: Tensor) -> list[slice]:
    """Return the groups of steps of ``(steps, rows, size)`` inputs that share one matrix product."""
    steps, rows = inputs.shape[:2]
    if not inputs.is_cpu:
        return [slice(0, steps)]
    size = max(ROWS[inputs.dtype] // max(rows, 1), 1)
    return [slice(start, min(start + size, steps)) for start in range(0, steps, size)]


def product(inputs: Tensor, weight: Tensor) -> Tensor:
    """Multiply ``inputs`` ``(steps, rows, size)`` by the transposed ``weight``, giving ``(steps, rows, outputs)``."""
    return torch.mm(inputs.flatten(0, 1), weight.t()).view(*inputs.shape[:2], -1)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the product of the transposed ``left`` and ``right``, both ``(steps, rows, ...)``, to ``total``.

    The two may have a shorter dtype than ``total``.
    """
    left, right = left.flatten(0, 1).t(), right.flatten(0, 1)
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total.add_(torch.mm(left, right))


def add_to_bias(dbias: Tensor, dgates: Tensor) -> None:
    """Add gradients of gates, ``(steps, rows, ...)``, to their bias's gradient, which the CPU kernels already do."""
    if not dgates.is_cpu:
        dbias.add_(dgates.flatten(0, 1).sum(0, dtype=dbias.dtype))
