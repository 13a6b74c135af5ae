"""Policies with an LSTM over segments in which any row may start anew at any step; its derivative is for a CPU.

Source: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the forget gate of Gers et al., "Learning to
Forget" (2000).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models.policies import Policy, State

__all__ = ["LSTMWrapper", "lstm", "step_by_step"]

aten = torch.ops.aten


class LSTMWrapper(Policy):
    """A policy with an LSTM between its encoder and its decoder.

    Args:
        env: The environment that describes one agent's spaces.
        policy: Encodes observations to ``input_size``, decodes actions from ``hidden_size``.
        input_size: Width of the LSTM's input.
        hidden_size: Width of the LSTM's memory.
    """

    def __init__(self, env: PufferEnv, policy: Policy, input_size: int = 128, hidden_size: int = 128) -> None:
        if policy.hidden_size != input_size or policy.hidden_size != hidden_size:
            raise APIUsageError(
                f"LSTMWrapper: the policy's hidden_size {policy.hidden_size} must equal input_size and hidden_size, "
                f"got input_size={input_size}, hidden_size={hidden_size}"
            )
        super().__init__(env, hidden_size)
        del self.decoder  # the wrapped policy decodes
        if self.is_continuous:
            del self.log_std
        self.policy = policy
        self.cell = nn.LSTMCell(input_size, hidden_size)
        for weight in (self.cell.weight_ih, self.cell.weight_hh):
            nn.init.orthogonal_(weight)
        for bias in (self.cell.bias_ih, self.cell.bias_hh):
            nn.init.zeros_(bias)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """See ``Policy``."""
        return self.policy.encode_observations(observations)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """See ``Policy``."""
        return self.policy.decode_actions(hidden)

    def action_mask(self, observations: Tensor) -> Tensor | None:
        """See ``Policy``."""
        return self.policy.action_mask(observations)

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """Zeros: ``lstm_h`` and ``lstm_c``, float32 ``(num_agents, hidden_size)``."""
        return {name: torch.zeros(num_agents, self.hidden_size, device=device) for name in ("lstm_h", "lstm_c")}

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """See ``Policy``; without ``state`` every row is at the start of an episode."""
        if state is None:
            state = self.initial_state(len(observations), observations.device)
        hidden = self.encode_observations(observations).unsqueeze(0)
        outputs, state["lstm_c"] = lstm(self.cell, hidden, state["lstm_h"], state["lstm_c"], None)
        state["lstm_h"] = outputs[0]
        params, values = self.decode_actions(state["lstm_h"])
        return self._allowed(params, observations), values

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """See ``Policy``: the memory passes from step to step, and restarts where an episode does."""
        steps, rows = observations.shape[:2]
        state = self.initial_state(rows, observations.device) if state is None else state
        inputs = self.encode_observations(observations.flatten(0, 1)).view(steps, rows, -1)
        outputs, _ = lstm(self.cell, inputs, state["lstm_h"], state["lstm_c"], episode_starts)
        params, values = self.decode_actions(outputs)
        return self._allowed(params, observations.flatten(0, 1)), values


def lstm(cell: nn.LSTMCell, inputs: Tensor, h: Tensor, c: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run ``cell`` over whole segments.

    Args:
        cell: Holds the weights.
        inputs: float32 ``(steps, rows, input_size)``.
        h: Output before the first step, ``(rows, hidden_size)``.
        c: Memory before the first step, ``(rows, hidden_size)``.
        starts: bool ``(steps, rows)``; where it is True, ``h`` and ``c`` are 0 before the step. None: nowhere.

    Returns:
        The outputs ``(steps, rows, hidden_size)``, and the memory after the last step ``(rows, hidden_size)``.
    """
    keep = inputs.new_ones(len(inputs), 1, 1) if starts is None else (~starts).unsqueeze(-1).to(inputs.dtype)
    tensors = inputs, h, c, *cell.parameters()
    is_plain = all(tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in tensors)
    if not is_plain or not cell.bias or torch.is_autocast_enabled("cpu"):
        return step_by_step(cell, inputs, h, c, keep)
    outputs, c = _LSTM.apply(  # type: ignore[no-untyped-call]
        inputs, cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh, h, c, keep
    )
    return outputs, c


def step_by_step(cell: nn.LSTMCell, inputs: Tensor, h: Tensor, c: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """``lstm`` by torch's own cell, which a GPU has in one kernel; ``keep`` is 0 where an episode starts, else 1."""
    outputs = []
    for x, kept in zip(inputs.unbind(0), keep.unbind(0), strict=True):  # each index would cost an array of all steps
        h, c = cell(x, (h * kept, c * kept))
        outputs.append(h)
    return torch.stack(outputs), c


class _LSTM(torch.autograd.Function):
    r"""The equations and their derivatives.

    .. math::
        i, f, o &= \sigma(W_{i,f,o} [x, h] + b_{i,f,o}), \quad g = \tanh(W_g [x, h] + b_g) \\
        c' &= f c + i g, \quad h' = o \tanh c'

    What a step works on stays in the cache of a core, and the gradients of the weights are summed where they lie;
    autograd makes new arrays for each step.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor, h: Tensor, c: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See ``lstm``; the gates' rows in the weights are in the order i, f, g, o."""
        outputs = h.new_empty(*inputs.shape[:2], h.shape[1])
        steps = []
        for x, kept, output in zip(inputs, keep, outputs, strict=True):
            h, c = h * kept, c * kept
            gates = torch.addmm(bias, x, weight_ih.t()).addmm_(h, weight_hh.t())
            i, f, g, o = gates.chunk(4, 1)
            for gate in (i, f, o):
                gate.sigmoid_()
            _tanh_(g)
            after = torch.addcmul(f * c, i, g)
            shown = _tanh_(after.clone())
            steps += [h, c, gates, shown]
            h, c = torch.mul(o, shown, out=output), after
        ctx.save_for_backward(inputs, weight_ih, weight_hh, keep, *steps)
        return outputs, c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_c: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first; names that begin with ``d`` are gradients of the loss."""
        inputs, weight_ih, weight_hh, keep, *steps = ctx.saved_tensors
        dinputs, dbias = torch.empty_like(inputs), weight_hh.new_zeros(len(weight_hh))
        dweight_ih, dweight_hh = torch.zeros_like(weight_ih), torch.zeros_like(weight_hh)
        dc, dh = grad_c.clone(), torch.zeros_like(grad_c)
        dgates = grad_c.new_empty(len(grad_c), len(weight_hh))
        di, df, dg, do = dgates.chunk(4, 1)
        for step in reversed(range(len(inputs))):
            h, c, gates, shown = steps[4 * step : 4 * step + 4]
            i, f, g, o = gates.chunk(4, 1)
            dh += grad_outputs[step]
            dc += aten.tanh_backward(dh * o, shown)
            for gradient, gate, one, other in ((di, i, dc, g), (df, f, dc, c), (do, o, dh, shown)):
                torch.mul(one, other, out=gradient)
                aten.sigmoid_backward.grad_input(gradient, gate, grad_input=gradient)
            aten.tanh_backward.grad_input(torch.mul(dc, i, out=dg), g, grad_input=dg)
            dweight_ih.addmm_(dgates.t(), inputs[step])
            dweight_hh.addmm_(dgates.t(), h)
            dbias += dgates.sum(0)
            torch.mm(dgates, weight_ih, out=dinputs[step])
            dc.mul_(f).mul_(keep[step])
            torch.mm(dgates, weight_hh, out=dh).mul_(keep[step])
        return dinputs, dweight_ih, dweight_hh, dbias, dh, dc, None


def _tanh_(x: Tensor) -> Tensor:
    r"""In place :math:`\tanh x = 2 \sigma(2 x) - 1`: torch's sigmoid takes a fifth of the time of its tanh."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)
