"""Replacement of CUDA graphs on a CPU. It replays operations on the recorded memory without running Python code."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Tape(TorchDispatchMode):
    """Recorded operations in order, with their input and output tensors."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with self:  # in inference mode an operation such as item() comes as a whole
            outputs = func.decompose(*args, **kwargs or {})
        if outputs is not NotImplemented:
            return outputs
        if str(func) == "aten._local_scalar_dense.default":
            raise RuntimeError("operation not permitted when stream is capturing")
        outputs = func(*args, **kwargs or {})
        self.operations.append((func, args, kwargs or {}, outputs))
        return outputs

    @torch.no_grad()
    def replay(self):
        for func, args, kwargs, outputs in self.operations:
            for mine, given in zip(tree_leaves(outputs), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(mine, torch.Tensor) and mine.data_ptr() != given.data_ptr():
                    mine.copy_(given)


class TapeRecorder:
    """Recorder with the interface of ``CudaRecorder``. Recording computes results, so the first replay does nothing."""

    def __init__(self):
        self.tapes = []
        self.replays = 0
        self.is_required = True

    def aside(self):
        return contextlib.nullcontext()

    def record(self, function):
        tape = Tape()
        with tape:
            result = function()
        self.tapes.append(tape)

        def replay():
            self.replays += 1
            if replay.is_first:
                replay.is_first = False
            else:
                tape.replay()

        replay.is_first = True
        return replay, result
