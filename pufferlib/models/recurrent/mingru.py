"""Minimal GRU, whose gates depend only on the input, so that a scan can compute its memory for all steps.

Source: Feng et al., "Were RNNs All We Needed?" (2024). Outputs have a skip connection from the inputs as in Srivastava
et al., "Highway Networks" (2015).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pufferlib.models.recurrent.segments import add_product, add_to_bias, kernel_dtype, kernels_of, parts, product

__all__ = ["MinGRUCell", "linear_scan", "mingru", "mingru_by_torch"]


class MinGRUCell(nn.Module):
    """Weights of a minimal GRU.

    Args:
        hidden_size: Width of inputs, memory and outputs.

    Attributes:
        weight: Weights ``(3 * hidden_size, hidden_size)``, with rows for the gates z (update of the memory), n (new
            content) and r (share of the memory in the output, instead of the input).
        bias: Biases ``(3 * hidden_size,)``.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size))
        nn.init.orthogonal_(self.weight)

    def forward(self, inputs: Tensor, h: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the cell over whole segments. See ``mingru``."""
        return mingru(self, inputs, h, starts)


def mingru(cell: MinGRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run ``cell`` over whole segments.

    Args:
        cell: Module that holds the weights.
        inputs: Inputs, float32 ``(steps, rows, hidden_size)``.
        h: Memory before the first step, ``(rows, hidden_size)``.
        starts: True where ``h`` is set to 0 before the step, bool ``(steps, rows)``, or None for nowhere.

    Returns:
        Outputs ``(steps, rows, hidden_size)``, and the memory after the last step, ``(rows, hidden_size)``.
    """
    dtype = kernel_dtype(inputs, h, *cell.parameters())
    if dtype is None:
        return mingru_by_torch(cell, inputs, h, starts)
    outputs, h = _MinGRU.apply(inputs.to(dtype), cell.weight, cell.bias, h, starts)  # type: ignore[no-untyped-call]
    return outputs, h


def mingru_by_torch(cell: MinGRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute ``mingru`` with torch operations, all steps in parallel, for other devices and dtypes."""
    z, n, r = functional.linear(inputs, cell.weight, cell.bias).to(h.dtype).chunk(3, -1)
    z = z.sigmoid()
    kept = 1 - z if starts is None else (1 - z).masked_fill(starts.unsqueeze(-1), 0)
    memory = linear_scan(kept, z * n, h)
    return torch.lerp(inputs.to(h.dtype), memory, r.sigmoid()), memory[-1]


def linear_scan(factors: Tensor, terms: Tensor, first: Tensor) -> Tensor:
    r"""Compute :math:`h_t = a_t h_{t-1} + b_t` for all steps at once.

    Steps are joined in pairs, then in groups of four, and so on, which takes a logarithmic number of operations (Hillis
    and Steele, "Data Parallel Algorithms", 1986). There is no division by products of factors. Factors may therefore be
    0, and the result is as exact as a sequential computation for any number of steps.

    Args:
        factors: Factors a, ``(steps, ...)``.
        terms: Terms b, of the same shape.
        first: Value of h before the first step.

    Returns:
        Values of h, of the same shape.
    """
    scanned: Tensor = _LinearScan.apply(factors, terms, first)  # type: ignore[no-untyped-call]
    return scanned


def _scan(factors: Tensor, terms: Tensor) -> Tensor:
    """Compute ``linear_scan`` with an initial value of 0."""
    distance = 1
    while distance < len(terms):
        earlier, later = terms[:-distance], factors[distance:]
        terms = torch.cat([terms[:distance], torch.addcmul(terms[distance:], later, earlier)])
        factors = torch.cat([factors[:distance], later * factors[:-distance]])
        distance *= 2
    return terms


class _LinearScan(torch.autograd.Function):
    """Linear scan with gradients. Its derivative is also a scan, from the last step to the first."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor, terms: Tensor, first: Tensor) -> Tensor:
        """Compute ``linear_scan``."""
        terms = torch.cat([torch.addcmul(terms[:1], factors[:1], first.unsqueeze(0)), terms[1:]])
        scanned = _scan(factors, terms)
        ctx.save_for_backward(factors, first, scanned)
        return scanned

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the factors, the terms and the initial value."""
        factors, first, scanned = ctx.saved_tensors
        after = torch.cat([factors[1:], torch.zeros_like(factors[:1])])
        dterms = _scan(after.flip(0), grad.flip(0)).flip(0)
        before = torch.cat([first.unsqueeze(0), scanned[:-1]])
        return dterms * before, dterms, dterms[0] * factors[0]


class _MinGRU(torch.autograd.Function):
    r"""Minimal GRU equations and their derivatives.

    .. math::
        z, r &= \sigma(W_{z,r} x + b_{z,r}), \quad n = W_n x + b_n \\
        h' &= (1 - z) h + z n, \quad y = r h' + (1 - r) x
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, h: Tensor, starts: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Compute ``mingru``. Products have the dtype of the inputs. The order of the gates is z, n, r."""
        inputs, weight = inputs.contiguous(), weight.to(inputs.dtype)
        memory = h.new_empty(len(inputs) + 1, *h.shape)
        memory[0] = h
        outputs = torch.empty_like(memory[1:])
        starts = None if starts is None else starts.contiguous()
        saved, kernels = [], kernels_of(inputs)
        for part in parts(inputs):
            gates = product(inputs[part], weight)
            begins = None if starts is None else starts[part]
            kernels.mingru_forward(
                gates, bias, inputs[part], memory[:-1][part], memory[1:][part], outputs[part], begins
            )
            saved.append(gates)
        ctx.save_for_backward(inputs, weight, starts, memory, *saved)
        return outputs, memory[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_h: Tensor) -> tuple[Tensor | None, ...]:
        """Compute gradients from the last step to the first. Names that start with ``d`` are gradients of the loss."""
        inputs, weight, starts, memory, *saved = ctx.saved_tensors
        kernels = kernels_of(inputs)
        grad_outputs = grad_outputs.contiguous()
        dinputs, dweight = torch.empty_like(inputs), memory.new_zeros(weight.shape[::-1])
        dh, dbias = grad_h.clone(memory_format=torch.contiguous_format), memory.new_zeros(len(weight))
        for part, gates in zip(reversed(parts(inputs)), reversed(saved), strict=True):
            dgates, begins = torch.empty_like(gates), None if starts is None else starts[part]
            x, before, after, given = inputs[part], memory[:-1][part], memory[1:][part], grad_outputs[part]
            kernels.mingru_backward(gates, x, before, after, given, dh, dgates, dinputs[part], dbias, begins)
            add_to_bias(dbias, dgates)
            add_product(dweight, x, dgates)
            dinputs[part].flatten(0, 1).addmm_(dgates.flatten(0, 1), weight)
        return dinputs, dweight.t(), dbias, dh, None
