"""Devices that policies run on: their choice, checks before they are used, and copies on the CPU."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pufferlib.errors import APIUsageError, PufferError, UsageError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.models.engine import compile_policy
from pufferlib.models.policies import Policy
from pufferlib.text import plural

__all__ = [
    "acts_fast_on_cpu",
    "check_device",
    "describe_device",
    "is_large",
    "memory_explained",
    "pick_device",
    "policy_to_play",
    "ready_device",
    "threads_kept",
]

LARGE = 500_000  # parameters; NatureCNN has 1.7 million, an LSTM of width 128 has 0.2 million


def check_device(name: str, setting: str = "train.device") -> torch.device:
    """Return the torch device called ``name``, which may be missing on this machine. "auto" is CUDA.

    Args:
        name: Name of the device.
        setting: Name of the setting, for messages.

    Raises:
        UsageError: ``name`` is not the name of a device.
    """
    try:
        device = torch.device("cuda" if name == "auto" else name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UsageError(f"{setting} must be auto, cpu, cuda or cuda:<n>, got {name!r}")
    return device


def pick_device(name: str, setting: str = "train.device") -> torch.device:
    """Return the torch device called ``name``. "auto" is CUDA if there is a GPU, otherwise the CPU.

    Args:
        name: Name of the device.
        setting: Name of the setting, for messages.

    Raises:
        UsageError: ``name`` is not the name of a device.
        APIUsageError: There is no such device on this machine.
    """
    device = check_device(name, setting)
    count = torch.cuda.device_count() if device.type == "cuda" and torch.cuda.is_available() else 0
    if name == "auto" and not count:
        return torch.device("cpu")
    if device.type == "cuda" and (device.index or 0) >= count:
        seen = plural(count, "GPU") if count else "no GPU"
        raise APIUsageError(
            f"{setting}: this torch ({torch.__version__}) sees {seen}, got {name!r}; use {'cuda:0, ' if count else ''}"
            "auto or cpu, or run puffer doctor to see why"
        )
    return device


def ready_device(device: torch.device) -> torch.device:
    """Make ``device`` the current one of this process and run a kernel on it. Return it with its index.

    Raises:
        APIUsageError: The GPU cannot be used.
    """
    if device.type != "cuda":
        return device
    try:
        device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        torch.cuda.set_device(device)  # streams and graphs use the current device
        torch.ones(8, device=device).sum().item()
    except RuntimeError as error:  # driver error, out of memory, or a GPU that torch has no kernels for
        reason = str(error).strip().partition("\n")[0]
        raise APIUsageError(
            f"train.device {device} cannot be used: {reason}; run puffer doctor --gpu, choose another GPU, or set "
            "train.device to cpu"
        ) from error
    return device


@contextmanager
def memory_explained(device: torch.device) -> Iterator[None]:
    """Return a context that explains if the memory of a GPU is full.

    Raises:
        PufferError: The memory is full.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise PufferError(
            f"train: the memory of {device} is full: {str(error).partition(' If reserved')[0].strip()}; lower "
            "train.minibatch_size or train.horizon, take fewer environments, set train.cpu_offload to true, or stop "
            "other processes that use this GPU (nvidia-smi lists them)"
        ) from error


def describe_device(device: torch.device) -> str:
    """Describe the torch device, for example "the CPU, 2 cores" or "the GPU, NVIDIA H200"."""
    if device.type == "cuda":
        return f"the GPU, {torch.cuda.get_device_name(device)}"
    return f"the CPU, {plural(usable_cpus(), 'core')}" if device.type == "cpu" else f"device {device}"


def acts_fast_on_cpu(policy: Policy) -> bool:
    """Return whether a policy on the CPU is so small that the C engine acts faster than torch does on a GPU."""
    return not is_large(policy) and compile_policy(policy) is not None


def policy_to_play(policy: Policy) -> Policy:
    """Return ``policy``, or a copy on the CPU if ``policy`` is on a GPU and the copy acts faster."""
    if next(policy.parameters()).device.type == "cpu" or is_large(policy):
        return policy
    twin = copy.deepcopy(policy).cpu()
    return twin if acts_fast_on_cpu(twin) else policy


def is_large(policy: Policy) -> bool:
    """Return whether a policy has so many parameters that it runs faster with several threads or on a GPU."""
    return sum(parameter.numel() for parameter in policy.parameters()) >= LARGE


@contextmanager
def threads_kept() -> Iterator[None]:
    """Return a context that restores torch's number of CPU threads at its end."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
