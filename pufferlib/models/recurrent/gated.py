"""LSTM and GRU over segments in which an episode may start in any row at any step.

Sources: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the forget gate of Gers et al., "Learning to
Forget" (2000). Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine
Translation" (2014), in torch's variant: the reset gate is applied to the product of the memory and its weights.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pufferlib.models.recurrent.segments import (
    add_product,
    add_to_bias,
    kernel_dtype,
    kernels_of,
    parts,
    product,
    starts_of_steps,
    without_memory,
)

__all__ = ["gru", "gru_by_torch", "lstm", "lstm_by_torch"]


def lstm(cell: nn.LSTMCell, inputs: Tensor, h: Tensor, c: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run ``cell`` over whole segments.

    Args:
        cell: Module that holds the weights.
        inputs: Inputs, float32 ``(steps, rows, input_size)``.
        h: Output before the first step, ``(rows, hidden_size)``.
        c: Memory before the first step, ``(rows, hidden_size)``.
        starts: True where ``h`` and ``c`` are set to 0 before the step, bool ``(steps, rows)``, or None for nowhere.

    Returns:
        Outputs ``(steps, rows, hidden_size)``, and the memory after the last step, ``(rows, hidden_size)``.
    """
    dtype = kernel_dtype(inputs, h, c, *cell.parameters())
    if dtype is None or not cell.bias:
        return lstm_by_torch(cell, inputs, h, c, starts)
    bias = cell.bias_ih + cell.bias_hh
    outputs, c = _LSTM.apply(  # type: ignore[no-untyped-call]
        inputs.to(dtype), cell.weight_ih, cell.weight_hh, bias, h, c, starts
    )
    return outputs, c


def lstm_by_torch(
    cell: nn.LSTMCell, inputs: Tensor, h: Tensor, c: Tensor, starts: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute ``lstm`` with torch operations, for other devices and dtypes."""
    outputs = []
    products = functional.linear(inputs, cell.weight_ih, cell.bias_ih)  # for all steps at once
    # In the backward pass, indexing a step would allocate an array of all steps. unbind() does not.
    for given, begins in zip(products.unbind(0), starts_of_steps(starts, len(inputs)), strict=False):
        h, c = without_memory(h, begins), without_memory(c, begins)
        gates = given + functional.linear(h, cell.weight_hh, cell.bias_hh)
        i, f, g, o = gates.to(c.dtype).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs), c


class _LSTM(torch.autograd.Function):
    r"""LSTM equations and their derivatives.

    .. math::
        i, f, o &= \sigma(W_{i,f,o} [x, h] + b_{i,f,o}), \quad g = \tanh(W_g [x, h] + b_g) \\
        c' &= f c + i g, \quad h' = o \tanh c'

    The data of a step stays in the cache of a core, and gradients of weights are accumulated in place. Autograd would
    allocate new arrays for each step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor,
        h: Tensor,
        c: Tensor,
        starts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Compute ``lstm``. Products have the dtype of the inputs. The order of the gates is i, f, g, o."""
        weight_ih, weight_hh = weight_ih.to(inputs.dtype), weight_hh.to(inputs.dtype)
        inputs, shape = inputs.contiguous(), (len(inputs), *h.shape)
        outputs, cs, inners = h.new_empty(shape), c.new_empty(len(inputs) + 1, *c.shape), inputs.new_empty(shape)
        begins, inner = starts_of_steps(starts, len(inputs)), [*inners.unbind(0), None]
        inners[0], cs[0] = without_memory(h, begins[0]), c
        saved, kernels = [], kernels_of(inputs)
        for part in parts(inputs):
            gates = product(inputs[part], weight_ih)
            for step, gate in zip(range(part.start, part.stop), gates.unbind(0), strict=True):
                gate.addmm_(inners[step], weight_hh.t())
                arrays, starting = (cs[step], cs[step + 1], outputs[step]), (begins[step], begins[step + 1])
                kernels.lstm_forward(gate, bias, *arrays, inner[step + 1], *starting)
            saved.append(gates)
        ctx.save_for_backward(inputs, weight_ih, weight_hh, starts, inners, cs, *saved)
        return outputs, cs[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_c: Tensor) -> tuple[Tensor | None, ...]:
        """Compute gradients from the last step to the first. Names that start with ``d`` are gradients of the loss."""
        inputs, weight_ih, weight_hh, starts, inners, cs, *saved = ctx.saved_tensors
        kernels = kernels_of(inputs)
        begins, grad_outputs = starts_of_steps(starts, len(inputs)), grad_outputs.contiguous()
        dinputs, dbias = torch.empty_like(inputs), cs.new_zeros(len(weight_hh))
        dweight_ih, dweight_hh = (cs.new_zeros(weight.shape[::-1]) for weight in (weight_ih, weight_hh))
        dc, dnext = grad_c.clone(memory_format=torch.contiguous_format), torch.zeros_like(inners[0])
        for part, gates in zip(reversed(parts(inputs)), reversed(saved), strict=True):
            dgates = torch.empty_like(gates)
            for step in reversed(range(part.start, part.stop)):
                gate, dgate = gates[step - part.start], dgates[step - part.start]
                arrays, starting = (cs[step], cs[step + 1], grad_outputs[step]), (begins[step], begins[step + 1])
                kernels.lstm_backward(gate, *arrays, dnext, dc, dgate, dbias, *starting)
                torch.mm(dgate, weight_hh, out=dnext)
            add_to_bias(dbias, dgates)
            add_product(dweight_ih, inputs[part], dgates)
            add_product(dweight_hh, inners[part], dgates)
            torch.mm(dgates.flatten(0, 1), weight_ih, out=dinputs[part].flatten(0, 1))
        dh = without_memory(dnext.to(dc.dtype), begins[0])
        return dinputs, dweight_ih.t(), dweight_hh.t(), dbias, dh, dc, None


def gru(cell: nn.GRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> Tensor:
    """Run ``cell`` over whole segments.

    Args:
        cell: Module that holds the weights.
        inputs: Inputs, float32 ``(steps, rows, input_size)``.
        h: Output before the first step, ``(rows, hidden_size)``.
        starts: True where ``h`` is set to 0 before the step, bool ``(steps, rows)``, or None for nowhere.

    Returns:
        Outputs ``(steps, rows, hidden_size)``. The last one is the memory.
    """
    dtype = kernel_dtype(inputs, h, *cell.parameters())
    if dtype is None or not cell.bias:
        return gru_by_torch(cell, inputs, h, starts)
    outputs: Tensor = _GRU.apply(  # type: ignore[no-untyped-call]
        inputs.to(dtype), cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, h, starts
    )
    return outputs


def gru_by_torch(cell: nn.GRUCell, inputs: Tensor, h: Tensor, starts: Tensor | None) -> Tensor:
    """Compute ``gru`` with torch operations, for other devices and dtypes."""
    outputs = []
    products = functional.linear(inputs, cell.weight_ih, cell.bias_ih)  # for all steps at once
    for given, begins in zip(products.unbind(0), starts_of_steps(starts, len(inputs)), strict=False):
        h = without_memory(h, begins)
        r, z, n = given.to(h.dtype).chunk(3, 1)
        r_of_h, z_of_h, n_of_h = functional.linear(h, cell.weight_hh, cell.bias_hh).to(h.dtype).chunk(3, 1)
        n = (n + (r + r_of_h).sigmoid() * n_of_h).tanh()
        h = torch.lerp(n, h, (z + z_of_h).sigmoid())
        outputs.append(h)
    return torch.stack(outputs)


class _GRU(torch.autograd.Function):
    r"""GRU equations and their derivatives.

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
        """Compute ``gru``. Products have the dtype of the inputs. The order of the gates is r, z, n."""
        weight_ih, weight_hh = weight_ih.to(inputs.dtype), weight_hh.to(inputs.dtype)
        inputs, shape = inputs.contiguous(), (len(inputs), *h.shape)
        hs, inners, hidden_ns = h.new_empty(len(inputs) + 1, *h.shape), inputs.new_empty(shape), inputs.new_empty(shape)
        begins, inner = starts_of_steps(starts, len(inputs)), [*inners.unbind(0), None]
        inners[0], hs[0] = without_memory(h, begins[0]), h
        hidden = inputs.new_empty(len(h), len(weight_hh))
        saved, kernels = [], kernels_of(inputs)
        for part in parts(inputs):
            gates = product(inputs[part], weight_ih)
            for step, gate in zip(range(part.start, part.stop), gates.unbind(0), strict=True):
                torch.mm(inners[step], weight_hh.t(), out=hidden)
                arrays, starting = (hs[step], hs[step + 1], hidden_ns[step]), (begins[step], begins[step + 1])
                kernels.gru_forward(gate, hidden, bias_ih, bias_hh, *arrays, inner[step + 1], *starting)
            saved.append(gates)
        ctx.save_for_backward(inputs, weight_ih, weight_hh, starts, hs, inners, hidden_ns, *saved)
        return hs[1:].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Compute gradients from the last step to the first. Names that start with ``d`` are gradients of the loss."""
        inputs, weight_ih, weight_hh, starts, hs, inners, hidden_ns, *saved = ctx.saved_tensors
        kernels = kernels_of(inputs)
        begins, grad_outputs = starts_of_steps(starts, len(inputs)), grad_outputs.contiguous()
        dinputs, dbias, dbias_n = torch.empty_like(inputs), hs.new_zeros(len(weight_hh)), hs.new_zeros(hs.shape[2])
        dweight_ih, dweight_hh = (hs.new_zeros(weight.shape[::-1]) for weight in (weight_ih, weight_hh))
        dh, dnext = torch.zeros_like(hs[0]), torch.zeros_like(inners[0])  # past and through the gates
        for part, gates in zip(reversed(parts(inputs)), reversed(saved), strict=True):
            dgates, dhiddens = torch.empty_like(gates), torch.empty_like(gates)
            for step in reversed(range(part.start, part.stop)):
                gate, dgate, dhidden = (each[step - part.start] for each in (gates, dgates, dhiddens))
                arrays, starting = (hidden_ns[step], hs[step], grad_outputs[step]), (begins[step], begins[step + 1])
                kernels.gru_backward(gate, *arrays, dnext, dh, dgate, dhidden, dbias, dbias_n, *starting)
                torch.mm(dhidden, weight_hh, out=dnext)
            add_to_bias(dbias, dgates)
            add_to_bias(dbias_n, dhiddens[..., -len(dbias_n) :])
            add_product(dweight_ih, inputs[part], dgates)
            add_product(dweight_hh, inners[part], dhiddens)
            torch.mm(dgates.flatten(0, 1), weight_ih, out=dinputs[part].flatten(0, 1))
        dh += without_memory(dnext.to(dh.dtype), begins[0])
        dbias_hh = torch.cat([dbias[: -len(dbias_n)], dbias_n])
        return dinputs, dweight_ih.t(), dweight_hh.t(), dbias, dbias_hh, dh, None
