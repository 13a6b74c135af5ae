"""A linear layer that learns faster on a CPU."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["Linear"]

ROWS = 512  # fewer, and a derivative in Python costs more than its products spare


class Linear(nn.Linear):
    """``torch.nn.Linear``, whose weights get their derivative from the product that a CPU is quicker at.

    Autograd multiplies the gradient, transposed, with the inputs; of these two, with few inputs or outputs, the wide
    one in front takes up to six times as long as behind.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """``(..., in_features)`` to ``(..., out_features)``."""
        is_plain = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and self.bias is not None
        if not is_plain or inputs.shape[:-1].numel() < ROWS or torch.is_autocast_enabled("cpu"):
            return super().forward(inputs)
        outputs: Tensor = _Product.apply(inputs, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return outputs


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Inputs times weights, plus biases."""
        ctx.save_for_backward(inputs, weight)
        return nn.functional.linear(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Derivatives by inputs, weights and biases."""
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        d_rows, rows = d_outputs.flatten(0, -2), inputs.flatten(0, -2)
        d_inputs = (d_rows @ weight).view(inputs.shape) if needs_inputs else None
        is_wide = weight.shape[0] > weight.shape[1]
        d_weight = ((rows.t() @ d_rows).t() if is_wide else d_rows.t() @ rows) if needs_weight else None
        return d_inputs, d_weight, d_rows.sum(0) if needs_bias else None
