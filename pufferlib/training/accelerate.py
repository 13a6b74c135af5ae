"""Faster ways to compute the same results: C engine, bfloat16, torch.compile, CUDA graphs and the fused loss."""

import contextlib
import copy
import functools
import gc
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.cpus import warn_without_bfloat16
from pufferlib.models import Policy, State
from pufferlib.models._engine import Engine
from pufferlib.models.engine import compile_policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.kernels import build_step_in_c, fused_ppo_loss, kernel_matches_loss
from pufferlib.training.optimizers import on_device
from pufferlib.training.ppo import Loss, Losses, ppo_loss
from pufferlib.training.rollout import Minibatch

__all__ = [
    "CudaRecorder",
    "GraphedStep",
    "Recorded",
    "Recorder",
    "autocast",
    "build_actor",
    "build_fused_step",
    "build_loss",
    "check_compiler",
    "in_precision",
    "training_mode",
    "uses_cuda_graphs",
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


Result = TypeVar("Result")
WARM_UP = 2  # calls before recording, in which libraries choose kernels and allocate memory


def uses_cuda_graphs(config: TrainConfig, device: torch.device) -> bool:
    """Return ``train.cuda_graphs``. If it is unset: True on a GPU, unless learning overlaps collecting.

    Raises:
        APIUsageError: It is True, but the device is not a GPU or ``train.overlap`` is "learning".
    """
    if config.cuda_graphs and device.type != "cuda":
        raise APIUsageError(f"train.cuda_graphs records the work of a GPU, got train.device {device}; leave it out")
    if config.cuda_graphs and config.overlap == "learning":
        raise APIUsageError(
            "train.overlap 'learning' and train.cuda_graphs exclude each other: graphs cannot be recorded while "
            "another thread uses the GPU; set one of them"
        )
    if config.cuda_graphs is None:
        return device.type == "cuda" and config.overlap != "learning"
    return config.cuda_graphs


class Recorder(Protocol):
    """Recorder of the work of a device.

    Attributes:
        is_required: Whether work that cannot be recorded is an error. If False, it runs unrecorded, with a warning.
    """

    is_required: bool

    def aside(self) -> contextlib.AbstractContextManager[object]:
        """Return a context in which work runs under the same conditions as when recorded, but without recording."""

    def record(self, function: Callable[[], Result]) -> tuple[Callable[[], object], Result]:
        """Record the work of ``function`` without computing anything.

        Returns:
            Function that does the work on the same memory, and the result of ``function``, which it fills.
        """


class CudaRecorder:
    """Recorder of CUDA graphs, which all use one stream.

    Args:
        device: GPU, with its index.
        is_required: Whether work that cannot be recorded is an error.
    """

    def __init__(self, device: torch.device, is_required: bool = True) -> None:
        self._device, self.is_required = device, is_required
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Return a context that runs work on the stream of the recorder."""
        with torch.cuda.device(self._device):
            outer = torch.cuda.current_stream()
            self._stream.wait_stream(outer)
            with torch.cuda.stream(self._stream):
                yield
            outer.wait_stream(self._stream)

    def record(self, function: Callable[[], Result]) -> tuple[Callable[[], object], Result]:
        """Record the work of ``function`` as a CUDA graph."""
        graph = torch.cuda.CUDAGraph()
        # If another device were the current one, the graph would stay empty without an error.
        with (
            _garbage_kept(),
            torch.cuda.device(self._device),
            torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"),
        ):
            result = function()
        return graph.replay, result


@contextlib.contextmanager
def _garbage_kept() -> Iterator[None]:
    """Return a context without garbage collection. What it frees may wait for the GPU, which ends a recording."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Recorded:
    """Function whose work is recorded at the third call and replayed afterwards.

    Args:
        function: Function that reads and writes memory at fixed addresses. Its Python code runs only in the first
            three calls.
        recorder: Recorder of its device.
    """

    def __init__(self, function: Callable[[], Any], recorder: Recorder) -> None:
        self._function, self._recorder, self._calls = function, recorder, 0
        self._replay: Callable[[], object] | None = None
        self._result: Any = None

    def __call__(self) -> Any:
        """Do the work.

        Returns:
            Result of the function. The next call overwrites it.

        Raises:
            PufferError: The work cannot be recorded.
        """
        if self._replay is None:
            self._calls += 1
            if self._calls <= WARM_UP:
                with self._recorder.aside():
                    return self._function()
            try:
                self._replay, self._result = self._recorder.record(self._function)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                first = error.__context__ or error  # the end of a recording that has failed raises another error
                words = (
                    "train.cuda_graphs: the network must do the same work on the GPU in each step and never wait "
                    f"for a result, got {str(first).partition(chr(10))[0]}; remove .item(), bool(), .cpu() and boolean "
                    "indices from the network, or set train.cuda_graphs to false"
                )
                if self._recorder.is_required:
                    raise PufferError(words) from error
                warnings.warn(f"{words}; training continues without graphs, which is slower", stacklevel=2)
                self._replay = self._compute
        self._replay()
        return self._result

    def _compute(self) -> None:
        self._result = self._function()


class GraphedStep:
    """Gradient step that is recorded once for each shape of a minibatch.

    One launch computes the loss, its gradient, the clipping and the step of the optimizer, and the CPU never waits for
    the result. After a loss that is not finite, and after the minibatch that ends an update by ``target_kl``, further
    steps do not change the weights. ``has_failed`` and ``has_ended`` report it.

    Args:
        policy: Network that learns.
        optimizer: Optimizer of its parameters.
        loss: Loss, as ``ppo.ppo_loss``.
        recorder: Recorder of the device.
        device: Device of the policy.
    """

    def __init__(
        self, policy: Policy, optimizer: torch.optim.Optimizer, loss: ppo.Loss, recorder: Recorder, device: torch.device
    ) -> None:
        self._policy, self._optimizer, self._loss, self._recorder = policy, optimizer, loss, recorder
        self._failed, self._ended, self._rate, self._clip, self._entropy = torch.zeros(5, device=device).unbind()
        self._kl_limit = math.inf
        self._config: Any = None
        self._steps: dict[Any, tuple[Minibatch, Recorded]] = {}
        self._places: list[int] = []

    def begin(self, config: TrainConfig) -> None:
        """Set the learning rate and the coefficients for the next update."""
        self._failed.zero_()
        self._ended.zero_()
        self._kl_limit = ppo.kl_limit(config)
        self._rate.fill_(self._optimizer.param_groups[0]["lr"])
        self._clip.fill_(config.clip_coef)
        self._entropy.fill_(config.ent_coef)
        # A graph records numbers as constants, so coefficients that change are tensors.
        coefficients: dict[str, Any] = {"clip_coef": self._clip, "ent_coef": self._entropy}
        self._config = config.derived(**coefficients)
        if self._places != self._current_places():  # a checkpoint was loaded
            self._steps.clear()

    def __call__(self, batch: Minibatch) -> list[Tensor]:
        """Take a gradient step. Return the values of ``Losses``, in its order, for each part of the minibatch."""
        key = tuple((name, tensor.shape) for name, tensor in _tensors(batch).items())
        if key not in self._steps:
            self._steps[key] = batch, Recorded(functools.partial(self._step, batch), self._recorder)
        held, step = self._steps[key]
        for mine, given in zip(_tensors(held).values(), _tensors(batch).values(), strict=True):
            if mine.data_ptr() != given.data_ptr():
                mine.copy_(given)
        figures: Tensor = step()
        return list(figures.clone().unbind())

    def has_ended(self) -> bool:
        """Return whether ``target_kl`` has ended the update. The CPU waits for the GPU if ``target_kl`` is above 0."""
        return self._kl_limit < math.inf and bool(self._ended)

    def has_failed(self) -> bool:
        """Return whether a loss of the update was not finite. Call it at the end of an update."""
        self._places = self._current_places()
        return bool(self._failed)

    def _step(self, batch: Minibatch) -> Tensor:
        self._optimizer.zero_grad()
        parts = ppo.accumulate_gradients(self._policy, batch, self._config, self._loss, is_checked=False)
        figures = torch.stack(parts)
        fails = (~torch.isfinite(figures[:, 0])).any().float()
        if self._kl_limit == math.inf:
            self._failed.copy_(torch.maximum(self._failed, fails))
            self._apply(self._failed)
            return figures
        self._failed.copy_(torch.maximum(self._failed, fails * (1 - self._ended)))
        self._apply(torch.maximum(self._failed, self._ended))
        counted = torch.where(self._ended > 0, torch.nan, figures)
        self._ended.copy_(torch.maximum(self._ended, (ppo.mean_kl(figures) > self._kl_limit).float()))
        return counted

    def _apply(self, skips: Tensor) -> None:
        with on_device(self._optimizer, self._rate, skips):
            ppo.apply_gradients(self._policy, self._optimizer, self._config)

    def _current_places(self) -> list[int]:
        """Return the addresses of all tensors that steps read and write."""
        states = [tensor for state in self._optimizer.state.values() for tensor in state.values()]
        return [tensor.data_ptr() for tensor in [*self._policy.parameters(), *states] if isinstance(tensor, Tensor)]


def _tensors(batch: Minibatch) -> dict[str, Tensor]:
    return {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)} | batch.state


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
        self._coefficients = dict(zip(("clip_coef", "ent_coef"), torch.zeros(2, device=device).unbind(), strict=True))

    def __call__(self, policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        coefficient: Any = config.clip_coef
        if not isinstance(coefficient, Tensor):  # CUDA graphs have made it a tensor
            for name, tensor in self._coefficients.items():
                tensor.fill_(getattr(config, name))
            coefficients: dict[str, Any] = self._coefficients
            config = config.derived(**coefficients)
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
