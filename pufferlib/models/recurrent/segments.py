"""Segments as the kernels take them, and the sums of products that their derivatives are made of."""

import torch
from torch import Tensor

__all__ = ["add_product", "kernel_dtype", "parts", "product", "starts_of_steps", "without_memory"]

# Least rows of a product, of one step or of several: fewer cost more each, and what more work on leaves the cache.
ROWS = {torch.float32: 256, torch.bfloat16: 2048}


def kernel_dtype(inputs: Tensor, *others: Tensor) -> torch.dtype | None:
    """The number format of products if the kernels for a CPU can compute a cell; None if torch must.

    float32, or bfloat16 inside ``torch.autocast("cpu", torch.bfloat16)``.

    Args:
        inputs: Of the cell; may be in the format of the products.
        others: Its weights and memory.
    """
    if torch.compiler.is_compiling():
        return None
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    is_known = dtype in (torch.float32, torch.bfloat16) and inputs.dtype in (torch.float32, dtype)
    is_plain = all(tensor.is_cpu and tensor.dtype == torch.float32 for tensor in others)
    return dtype if is_known and is_plain and inputs.is_cpu else None


def starts_of_steps(starts: Tensor | None, steps: int) -> list[Tensor | None]:
    """``starts``, bool ``(steps, rows)`` or None, step by step, and None for the step after the last."""
    return [*([None] * steps if starts is None else starts.contiguous().unbind(0)), None]


def without_memory(memory: Tensor, starts: Tensor | None) -> Tensor:
    """``memory`` ``(rows, size)`` with 0 in the rows that begin an episode, bool ``(rows,)``."""
    return memory if starts is None else memory.masked_fill(starts.unsqueeze(1), 0)


def parts(inputs: Tensor) -> list[slice]:
    """Steps whose inputs ``(steps, rows, size)`` are multiplied together."""
    steps, rows = inputs.shape[:2]
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
