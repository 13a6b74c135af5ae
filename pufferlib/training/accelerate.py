"""Faster ways to compute the same results: C engine, bfloat16, torch.compile and the fused loss."""

import contextlib
import copy
import functools
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError
from pufferlib.machine.cpus import warn_without_bfloat16
from pufferlib.models import Policy, State
from pufferlib.models._engine import Engine
from pufferlib.models.engine import compile_policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.graphs import CudaRecorder, GraphedStep, uses_cuda_graphs
from pufferlib.training.kernels import build_step_in_c, fused_ppo_loss, kernel_matches_loss
from pufferlib.training.ppo import Loss, Losses, ppo_loss
from pufferlib.training.rollout import Minibatch
from pufferlib.training.state import SCHEDULED

__all__ = [
    "autocast",
    "build_actor",
    "build_fused_step",
    "build_loss",
    "check_compiler",
    "in_precision",
    "training_mode",
]


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return a context that computes matrix products and convolutions in ``precision`` and casts each weight once."""
    return nullcontext() if precision == "float32" else torch.autocast(device.type, torch.bfloat16)


def in_precision(policy: Policy, precision: str, device: torch.device, cache: bool = True) -> Policy:
    """Return ``policy`` with forward passes in ``precision``. It shares the weights, and its outputs are float32.

    Args:
        policy: Policy, which stays unchanged. With "float32" it is returned itself.
        precision: "float32" or "bfloat16".
        device: Device of the policy. A device without instructions for bfloat16 causes a warning.
        cache: Cast each weight only once per ``autocast`` context. Must be False for work recorded in a CUDA graph.
    """
    if precision == "float32":
        return policy
    if device.type == "cpu":
        warn_without_bfloat16("train.precision")
    elif torch.cuda.get_device_capability(device) < (8, 0):
        warnings.warn(
            f"train.precision: {torch.cuda.get_device_name(device)} has no instructions for bfloat16 (compute "
            "capability 8.0 or later is needed), so it is slower than float32; use float32",
            stacklevel=2,
        )
    twin = copy.copy(policy)  # shares parameters and layers
    for name in ("forward", "forward_eval"):
        setattr(twin, name, _cast(getattr(policy, name), device, cache))
    return twin


def _cast(
    forward: Callable[..., tuple[Tensor, Tensor]], device: torch.device, cache: bool
) -> Callable[..., tuple[Tensor, Tensor]]:
    @functools.wraps(forward)
    def cast(observations: Tensor, state: State | None = None, *rest: Any) -> tuple[Tensor, Tensor]:
        has_gradients = torch.is_grad_enabled()
        # Autocast keeps no casts in inference mode, so a collector would cast all weights again for each step.
        with (
            torch.inference_mode(False),
            torch.set_grad_enabled(has_gradients),
            torch.autocast(device.type, torch.bfloat16, cache_enabled=cache),
        ):
            params, values = forward(observations, state, *rest)
        if state:
            state.update((name, memory.float()) for name, memory in state.items())
        return params.float(), values.float()

    return cast


def build_actor(
    policy: Policy, config: TrainConfig, device: torch.device, rows: int
) -> tuple[Policy, Callable[[], None]]:
    """Return the policy for the collector, and a function to call after its weights have changed.

    If the C engine supports the network, and the precision is float32, the engine computes the actions. It is up to
    100 times as fast as torch with one row, and 10% faster with 4,096 rows. Otherwise torch computes them.

    Args:
        policy: Policy, which stays unchanged.
        config: Settings, of which ``act_threads`` and ``precision`` are read.
        device: Device of the policy.
        rows: Number of observations in a batch.
    """
    engine = compile_policy(policy, config.act_threads) if config.precision == "float32" else None
    if engine is not None:
        return _act_in_c(policy, engine, rows), engine.refresh
    # Work that is recorded and replayed must cast the weights each time.
    return in_precision(policy, config.precision, device, cache=device.type == "cpu"), _nothing


def _act_in_c(policy: Policy, engine: Engine, rows: int) -> Policy:
    """Return the policy with a ``forward_eval`` in C. Each call with ``rows`` observations reuses its outputs."""
    outputs = _outputs(engine, rows)

    def forward_eval(observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        count = observations.shape[0]
        params, values = outputs if count == rows else _outputs(engine, count)
        engine.forward(observations, policy.initial_state(count) if state is None else state, params, values)
        return params, values

    twin = copy.copy(policy)  # shares parameters and layers
    twin.forward_eval = forward_eval  # type: ignore[method-assign]
    return twin


def _outputs(engine: Engine, rows: int) -> tuple[Tensor, Tensor]:
    return torch.empty(rows, engine.num_params), torch.empty(rows)


def _nothing() -> None:
    """Do nothing, since torch always reads the current weights."""


COMPILERS = ("c++", "g++", "clang++")


def build_loss(loss: Loss, config: TrainConfig, device: torch.device) -> Loss:
    """Return ``loss`` in its fastest form: compiled by ``torch.compile``, as the C kernel, or unchanged.

    Args:
        loss: ``ppo_loss``, or a custom loss, for which there is no kernel.
        config: Settings, of which ``compile`` is read.
        device: Device of the network. The kernel is used on CPUs only.

    Raises:
        APIUsageError: There is no compiler, or ``loss`` is not a function.
    """
    if not callable(loss):
        raise APIUsageError(f"Trainer: loss must be a function (policy, minibatch, config) -> Losses, got {loss!r}")
    is_own = loss is not ppo_loss
    if config.compile:
        check_compiler(device)
        loss = _Compiled(loss, device)
    elif not is_own and device.type == "cpu" and kernel_matches_loss():
        return fused_ppo_loss
    return _checked(loss) if is_own else loss


def _checked(loss: Loss) -> Loss:
    """Return a custom loss with a check of its result. The check reads no values, so it never waits for a GPU."""

    @functools.wraps(loss, updated=())
    def checked(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        losses: Any = loss(policy, batch, config)
        if not isinstance(losses, Losses):
            raise APIUsageError(
                f"Trainer: loss must return pufferlib.training.Losses, got {type(losses).__name__}; change one of "
                "ppo_loss by losses._replace(total=...)"
            )
        for name, figure in zip(Losses._fields, losses, strict=True):
            if not isinstance(figure, Tensor) or figure.shape:
                got = f"shape {tuple(figure.shape)}" if isinstance(figure, Tensor) else type(figure).__name__
                raise APIUsageError(f"Trainer: {name} of the loss must be a scalar tensor, got {got}")
        if not losses.total.requires_grad:
            raise APIUsageError(
                "Trainer: total of the loss must have gradients, got a tensor without; remove detach(), item() "
                "and torch.no_grad from the loss"
            )
        return losses

    return checked


class _Compiled:
    """Loss compiled by ``torch.compile``.

    ``torch.compile`` compiles again when a number in the settings changes. Therefore coefficients that have a schedule
    are passed as tensors.
    """

    def __init__(self, loss: Loss, device: torch.device) -> None:
        self._loss: Loss = torch.compile(loss, dynamic=False)
        tensors = torch.zeros(len(SCHEDULED), device=device).unbind()
        self._coefficients: dict[str, Any] = dict(zip(SCHEDULED, tensors, strict=True))

    def __call__(self, policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        if not isinstance(getattr(config, SCHEDULED[0]), Tensor):  # CUDA graphs have made them tensors
            for name, tensor in self._coefficients.items():
                tensor.fill_(getattr(config, name))
            config = config.derived(**self._coefficients)
        return self._loss(policy, batch, config)


def build_fused_step(
    policy: Policy, optimizer: torch.optim.Optimizer, loss: Loss, config: TrainConfig, device: torch.device, ranks: int
) -> ppo.FusedStep | None:
    """Return a gradient step in one call: a CUDA graph on a GPU, or C on a CPU.

    The result is None with several ranks, on a GPU without ``train.cuda_graphs``, and on a CPU for what C does not
    have. See ``build_step_in_c``.

    Raises:
        APIUsageError: ``train.cuda_graphs`` is True but cannot be used.
    """
    is_graphed = uses_cuda_graphs(config, device)
    if ranks > 1:
        return None
    if is_graphed:
        return GraphedStep(policy, optimizer, loss, CudaRecorder(device, bool(config.cuda_graphs)), device)
    return build_step_in_c(policy, optimizer, loss, config) if device.type == "cpu" else None


def check_compiler(device: torch.device) -> None:
    """Raise APIUsageError if there is no C++ compiler, or, for a GPU, no C compiler. Triton needs the C compiler."""
    needs = [("C++", "CXX", COMPILERS, "g++")]
    if device.type == "cuda":
        needs.append(("C", "CC", ("cc", "gcc", "clang"), "gcc"))
    for language, variable, names, package in needs:
        named = os.environ.get(variable)
        if not any(shutil.which(name) for name in ([named] if named else names)):
            tried = f"{variable}={named}" if named else ", ".join(names)
            raise APIUsageError(
                f"train.compile needs a {language} compiler, found none ({tried}); install {package}, set {variable}, "
                "or leave it out"
            )


@contextlib.contextmanager
def training_mode(*policies: Policy) -> Iterator[None]:
    """Return a context in which policies are in training mode and gradients are computed.

    Outside this context policies are in evaluation mode, which affects modules such as dropout and batch normalization.
    """
    for policy in policies:
        policy.train()
    try:
        with torch.enable_grad():
            yield
    finally:
        for policy in policies:
            policy.eval()
