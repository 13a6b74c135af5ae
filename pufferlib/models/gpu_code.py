"""CUDA C kernels, compiled for the current GPU by NVRTC, which comes with torch and needs no other compiler."""

import functools
import warnings
from collections.abc import Callable
from importlib import resources
from typing import Any

import torch
from torch import Tensor

__all__ = ["can_compile", "launch"]

THREADS = 256  # per block


@functools.cache
def can_compile(device: torch.device) -> bool:
    """Return whether kernels can be compiled for ``device``. If not, warn once, and use torch operations instead."""
    try:
        _kernel("cells.cu", "lstm_forward", device)
    except (AttributeError, OSError, RuntimeError) as error:
        warnings.warn(
            f"acting and recurrent networks are several times slower on {device}, since kernels for it could not be "
            f"compiled: {error}",
            stacklevel=2,
        )
        return False
    return True


@functools.cache
def _kernel(file: str, name: str, device: torch.device) -> Callable[..., None]:
    source = resources.files(__package__).joinpath(file).read_text("utf-8")
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel(source, name)  # type: ignore[no-any-return]


def launch(file: str, name: str, threads: int, args: list[Any]) -> None:
    """Run a kernel.

    Args:
        file: Source file in this folder.
        name: Name of the kernel.
        threads: Minimum number of threads. Additional threads must return immediately.
        args: Tensors and ints. The first one is a tensor on the GPU that runs the kernel.
    """
    first: Tensor = args[0]
    with torch.cuda.device(first.device):
        _kernel(file, name, first.device)(grid=(-(-threads // THREADS), 1, 1), block=(THREADS, 1, 1), args=args)
