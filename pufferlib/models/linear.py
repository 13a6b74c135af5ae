"""Linear layer with a faster backward pass on CPUs."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["Linear"]

ROWS = 512  # with fewer rows, a backward pass in Python costs more than it saves


class Linear(nn.Linear):
    """``torch.nn.Linear`` that computes the gradient of its weights in the faster order of factors.

    Autograd multiplies the transposed gradient by the inputs. With few inputs or outputs, a CPU is up to six times
    slower if the wider of the two matrices comes first.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute ``(..., out_features)`` from ``(..., in_features)``."""
        is_plain = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and self.bias is not None
        if not is_plain or inputs.shape[:-1].numel() < ROWS or torch.is_autocast_enabled("cpu"):
            return super().forward(inputs)
        outputs: Tensor = _Product.apply(inputs, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return outputs


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Multiply inputs by weights and add biases."""
        ctx.save_for_backward(inputs, weight)
        return nn.functional.linear(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the gradients of inputs, weights and biases."""
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        d_rows, rows = d_outputs.flatten(0, -2), inputs.flatten(0, -2)
        d_inputs = (d_rows @ weight).view(inputs.shape) if needs_inputs else None
        is_wide = weight.shape[0] > weight.shape[1]
        d_weight = ((rows.t() @ d_rows).t() if is_wide else d_rows.t() @ rows) if needs_weight else None
        return d_inputs, d_weight, d_rows.sum(0) if needs_bias else None
