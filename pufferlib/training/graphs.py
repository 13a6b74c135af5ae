"""CUDA graphs: work of a GPU that is recorded once and then replayed with one launch."""

import contextlib
import functools
import gc
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.optimizers import on_device
from pufferlib.training.rollout import Minibatch
from pufferlib.training.state import SCHEDULED

__all__ = ["CudaRecorder", "GraphedStep", "Recorded", "Recorder", "uses_cuda_graphs"]


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

    def aside(self) -> AbstractContextManager[object]:
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
        self._failed, self._ended, self._rate, *rest = torch.zeros(3 + len(SCHEDULED), device=device).unbind()
        # A graph records numbers as constants, so coefficients that change are tensors.
        self._coefficients: dict[str, Any] = dict(zip(SCHEDULED, rest, strict=True))
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
        for name, coefficient in self._coefficients.items():
            coefficient.fill_(getattr(config, name))
        self._config = config.derived(**self._coefficients)
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
