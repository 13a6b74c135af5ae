"""Linear layer with a faster backward pass on CPUs, initialization of layers, and perceptrons."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["ACTIVATIONS", "Linear", "layer_init", "perceptron"]

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: nn.ReLU(inplace=True),
    "tanh": nn.Tanh,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
}
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


def layer_init(layer: Layer, std: float = math.sqrt(2), bias_const: float = 0.0) -> Layer:
    """Initialize ``layer`` with orthogonal weights of gain ``std`` and constant biases, and return it.

    Source: Andrychowicz et al., "What Matters In On-Policy Reinforcement Learning?" (2021).
    """
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, bias_const)
    return layer


def perceptron(
    inputs: int, sizes: Sequence[int], activation: str = "relu", layer_norm: bool = False, orthogonal: bool = True
) -> nn.Sequential:
    """Return linear layers, each followed by an activation.

    Args:
        inputs: Width of the input.
        sizes: Width of each layer.
        activation: Key of ``ACTIVATIONS``.
        layer_norm: Whether to normalize the outputs of each linear layer before the activation.
        orthogonal: Whether to use ``layer_init``. Otherwise weights and biases are those of ``torch.nn.Linear``.
    """
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *sizes]):
        layer = Linear(before, after)
        layers += [layer_init(layer) if orthogonal else layer]
        layers += [nn.LayerNorm(after)] if layer_norm else []
        layers += [ACTIVATIONS[activation]()]
    return nn.Sequential(*layers)
