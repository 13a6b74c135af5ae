"""Element-wise arithmetic of recurrent networks on a GPU, with the same functions and arguments as ``_kernels``.

Unlike those, these functions do not add up the gradients of biases, since one product over all steps is faster.
"""

from typing import Any

import torch
from torch import Tensor

from pufferlib.models import gpu_code

__all__ = ["gru_backward", "gru_forward", "lstm_backward", "lstm_forward", "mingru_backward", "mingru_forward"]

HALF, STARTS, STARTS_NEXT, NEXT = 1, 2, 4, 8  # as in cells.cu


def _launch(name: str, shown: Tensor, gates: Tensor, arrays: list[Tensor], steps: tuple[int, ...], flags: int) -> None:
    """Compute each element of a step of ``shown``, ``(..., rows, size)``, in its own thread."""
    rows, size = shown.shape[-2:]
    flags |= HALF if gates.dtype is torch.bfloat16 else 0
    gpu_code.launch("cells.cu", name, rows * size, [*arrays, *steps, rows, size, flags])


def _optional(stand_in: Tensor, **arrays: Tensor | None) -> tuple[list[Tensor], int]:
    """Return the arrays, with ``stand_in`` instead of None, and the flags of those that are not None."""
    kinds = {"starts": STARTS, "starts_next": STARTS_NEXT, "next": NEXT}
    flags = sum(kinds[name] for name, array in arrays.items() if array is not None)
    return [stand_in if array is None else array for array in arrays.values()], flags


def lstm_forward(
    gates: Tensor, bias: Tensor, c: Tensor, c_next: Tensor, output: Tensor,
    next: Tensor | None, starts: Tensor | None, starts_next: Tensor | None,
) -> None:  # fmt: skip
    """Compute gates, memory and output. See ``_kernels.lstm_forward``."""
    more, flags = _optional(gates, next=next, starts=starts, starts_next=starts_next)
    _launch("lstm_forward", output, gates, [gates, bias, c, c_next, output, *more], (), flags)


def lstm_backward(
    gates: Tensor, c: Tensor, c_next: Tensor, doutput: Tensor, dnext: Tensor, dc: Tensor, dgates: Tensor,
    dbias: Any, starts: Tensor | None, starts_next: Tensor | None,
) -> None:  # fmt: skip
    """Compute the gradients of gates and memory. See ``_kernels.lstm_backward``."""
    more, flags = _optional(gates, starts=starts, starts_next=starts_next)
    _launch("lstm_backward", doutput, gates, [gates, c, c_next, doutput, dnext, dc, dgates, *more], (), flags)


def gru_forward(
    gates: Tensor, hidden: Tensor, bias: Tensor, bias_hidden: Tensor, h: Tensor, output: Tensor, hidden_n: Tensor,
    next: Tensor | None, starts: Tensor | None, starts_next: Tensor | None,
) -> None:  # fmt: skip
    """Compute gates and output. See ``_kernels.gru_forward``."""
    more, flags = _optional(gates, next=next, starts=starts, starts_next=starts_next)
    arrays = [gates, hidden, bias, bias_hidden, h, output, hidden_n, *more]
    _launch("gru_forward", output, gates, arrays, (), flags)


def gru_backward(
    gates: Tensor, hidden_n: Tensor, h: Tensor, doutput: Tensor, dnext: Tensor, dh: Tensor, dgates: Tensor,
    dhidden: Tensor, dbias: Any, dbias_n: Any, starts: Tensor | None, starts_next: Tensor | None,
) -> None:  # fmt: skip
    """Compute the gradients of gates and memory. See ``_kernels.gru_backward``."""
    more, flags = _optional(gates, starts=starts, starts_next=starts_next)
    arrays = [gates, hidden_n, h, doutput, dnext, dh, dgates, dhidden, *more]
    _launch("gru_backward", doutput, gates, arrays, (), flags)


def mingru_forward(
    gates: Tensor, bias: Tensor, inputs: Tensor, h: Tensor, h_next: Tensor, outputs: Tensor, starts: Tensor | None
) -> None:
    """Compute gates, memories and outputs of all steps. See ``_kernels.mingru_forward``."""
    more, flags = _optional(gates, starts=starts)
    arrays = [gates, bias, inputs, h, h_next, outputs, *more]
    _launch("mingru_forward", outputs, gates, arrays, (len(outputs),), flags)


def mingru_backward(
    gates: Tensor, inputs: Tensor, h: Tensor, h_next: Tensor, doutputs: Tensor, dh: Tensor, dgates: Tensor,
    dinputs: Tensor, dbias: Any, starts: Tensor | None,
) -> None:  # fmt: skip
    """Compute the gradients of gates, inputs and memory. See ``_kernels.mingru_backward``."""
    more, flags = _optional(gates, starts=starts)
    arrays = [gates, inputs, h, h_next, doutputs, dh, dgates, dinputs, *more]
    _launch("mingru_backward", doutputs, gates, arrays, (len(doutputs),), flags)
