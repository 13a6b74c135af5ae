"""A GRU over segments in which any row may start anew at any step.

Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation"
(2014), in torch's form: the reset gate acts on the product of the memory with its weights.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pufferlib.models.recurrent import _kernels
from pufferlib.models.recurrent.segments import add_product, kernel_dtype, starts_of_steps, without_memory

__all__ = ["gru", "gru_by_torch"]


def gru(cell: nn.GRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> Tensor:
    """Run ``cell`` over whole segments.

    Args:
        cell: Holds the weights.
        inputs: float32 ``(steps, rows, input_size)``.
        h: Output before the first step, ``(rows, hidden_size)``.
        starts: bool ``(steps, rows)``; where it is True, ``h`` is 0 before the step. None: nowhere.

    Returns:
        The outputs ``(steps, rows, hidden_size)``, of which the last are the memory.
    """
    dtype = kernel_dtype(inputs, h, *cell.parameters())
    if dtype is None or not cell.bias:
        return gru_by_torch(cell, inputs, h, starts)
    outputs: Tensor = _GRU.apply(  # type: ignore[no-untyped-call]
        inputs.to(dtype), cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, h, starts
    )
    return outputs


def gru_by_torch(cell: nn.GRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> Tensor:
    """``gru`` in torch's own operations, for other devices and number formats."""
    outputs = []
    products = functional.linear(inputs, cell.weight_ih, cell.bias_ih)  # of all steps at once
    for product, begins in zip(products.unbind(0), starts_of_steps(starts, len(inputs)), strict=False):
        h = without_memory(h, begins)
        r, z, n = product.to(h.dtype).chunk(3, 1)
        r_of_h, z_of_h, n_of_h = functional.linear(h, cell.weight_hh, cell.bias_hh).to(h.dtype).chunk(3, 1)
        n = (n + (r + r_of_h).sigmoid() * n_of_h).tanh()
        h = torch.lerp(n, h, (z + z_of_h).sigmoid())
        outputs.append(h)
    return torch.stack(outputs)


class _GRU(torch.autograd.Function):
    r"""The equations and their derivatives.

    .. math::
        r, z &= \sigma(W_{r,z} x + b_{r,z} + U_{r,z} h + d_{r,z}), \quad
        n = \tanh(W_n x + b_n + r (U_n h + d_n)) \\
        h' &= (1 - z) n + z h
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        h: Tensor,
        starts: Tensor | None,
    ) -> Tensor:
        """See ``gru``; products have the number format of the inputs, and the order of the gates is r, z, n."""
        weight_ih, weight_hh = weight_ih.to(inputs.dtype), weight_hh.to(inputs.dtype)
        outputs = h.new_empty(*inputs.shape[:2], h.shape[1])
        begins = starts_of_steps(starts, len(inputs))
        h = h.contiguous()
        inner = without_memory(h, begins[0]).to(inputs.dtype)
        hidden = inputs.new_empty(len(h), len(weight_hh))
        saved = [h, inner]
        for step, (x, output) in enumerate(zip(inputs.contiguous().unbind(0), outputs.unbind(0), strict=True)):
            gates = torch.mm(x, weight_ih.t())
            torch.mm(inner, weight_hh.t(), out=hidden)
            hidden_n, inner = torch.empty_like(inner), torch.empty_like(inner)
            now, after = begins[step], begins[step + 1]
            _kernels.gru_forward(gates, hidden, bias_ih, bias_hh, h, output, hidden_n, inner, now, after)
            h = output
            saved += [gates, hidden_n, inner]
        ctx.save_for_backward(inputs, weight_ih, weight_hh, starts, outputs, *saved)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first; names that begin with ``d`` are gradients of the loss."""
        inputs, weight_ih, weight_hh, starts, outputs, h, inner, *saved = ctx.saved_tensors
        begins = starts_of_steps(starts, len(inputs))
        dinputs, dbias, dbias_n = torch.empty_like(inputs), h.new_zeros(len(weight_hh)), h.new_zeros(h.shape[1])
        dweight_ih, dweight_hh = (h.new_zeros(weight.shape[::-1]) for weight in (weight_ih, weight_hh))
        dh, dnext = torch.zeros_like(h), torch.zeros_like(inner)  # past the gates, and through them
        dgates, dhidden = (inputs.new_empty(len(h), len(weight_hh)) for _ in range(2))
        inners, hs = [inner, *saved[2::3]], [h, *outputs.unbind(0)]
        grad_outputs = grad_outputs.contiguous()
        for step in reversed(range(len(inputs))):
            gates, hidden_n = saved[3 * step : 3 * step + 2]
            made, starting = (dgates, dhidden, dbias, dbias_n), (begins[step], begins[step + 1])
            _kernels.gru_backward(gates, hidden_n, hs[step], grad_outputs[step], dnext, dh, *made, *starting)
            add_product(dweight_ih, inputs[step].t(), dgates)
            add_product(dweight_hh, inners[step].t(), dhidden)
            torch.mm(dgates, weight_ih, out=dinputs[step])
            torch.mm(dhidden, weight_hh, out=dnext)
        dh += without_memory(dnext.to(h.dtype), begins[0])
        dbias_hh = torch.cat([dbias[: -len(dbias_n)], dbias_n])
        return dinputs, dweight_ih.t(), dweight_hh.t(), dbias, dbias_hh, dh, None
