"""CUDA graphs: the kernels of a step of acting or learning, recorded once and then launched by a single call."""

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Policy
from pufferlib.training import ppo
from pufferlib.training.config import TrainConfig
from pufferlib.training.optimizers import on_device
from pufferlib.training.rollout import Minibatch

__all__ = ["CudaRecorder", "GraphedStep", "Recorded", "Recorder", "uses_cuda_graphs"]

Result = TypeVar("Result")
WARM_UP = 2  # calls in which libraries choose their kernels and take their memory


def uses_cuda_graphs(config: TrainConfig, device: torch.device) -> bool:
    """Return ``train.cuda_graphs``. If it is unset: True on a GPU, unless learning overlaps collecting.

    Raises:
        APIUsageError: It is True, and the device is no GPU or ``train.overlap`` is "learning".
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
    """Records work of a device.

    Attributes:
        is_required: What cannot be recorded is an error. Otherwise it runs without, with a warning.
    """

    is_required: bool

    def aside(self) -> contextlib.AbstractContextManager[object]:
        """Context in which work runs as it does when it is recorded, without being recorded."""

    def record(self, function: Callable[[], Result]) -> tuple[Callable[[], object], Result]:
        """Record the work of ``function``. Nothing is computed.

        Returns:
            A function that does the work again, on the same memory, and the result, which it fills.
        """


class CudaRecorder:
    """Recorder of CUDA graphs, which have one stream.

    Args:
        device: GPU, with its index.
        is_required: See ``Recorder``.
    """

    def __init__(self, device: torch.device, is_required: bool = True) -> None:
        self._device, self.is_required = device, is_required
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """See ``Recorder``."""
        with torch.cuda.device(self._device):
            outer = torch.cuda.current_stream()
            self._stream.wait_stream(outer)
            with torch.cuda.stream(self._stream):
                yield
            outer.wait_stream(self._stream)

    def record(self, function: Callable[[], Result]) -> tuple[Callable[[], object], Result]:
        """See ``Recorder``."""
        graph = torch.cuda.CUDAGraph()
        # On another device nothing would be recorded, without an error.
        with (
            torch.cuda.device(self._device),
            torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"),
        ):
            result = function()
        return graph.replay, result


class Recorded:
    """A function whose work is recorded at the third call, and replayed from then on.

    Args:
        function: Reads and writes memory that stays where it is. Its Python code runs only in the first three calls.
        recorder: Recorder of its device.
    """

    def __init__(self, function: Callable[[], Any], recorder: Recorder) -> None:
        self._function, self._recorder, self._calls = function, recorder, 0
        self._replay: Callable[[], object] | None = None
        self._result: Any = None

    def __call__(self) -> Any:
        """Do the work.

        Returns:
            The result of the function. The next call overwrites it.

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
            except RuntimeError as error:
                words = (
                    "train.cuda_graphs: the network's work on the GPU must be the same in each step, and never wait "
                    "for a result, to be recorded; remove .item(), bool(), .cpu() and boolean indices from the "
                    f"network, or set train.cuda_graphs to false; got {str(error).partition(chr(10))[0]}"
                )
                if self._recorder.is_required:
                    raise PufferError(words) from error
                warnings.warn(f"{words}; training goes on without graphs, which is slower", stacklevel=2)
                self._replay = self._compute
        self._replay()
        return self._result

    def _compute(self) -> None:
        self._result = self._function()


class GraphedStep:
    """A gradient step whose work is recorded once for each shape of a minibatch.

    The loss, its gradient, the clipping and the step of the optimizer are one launch, and the CPU waits for none of
    it. After a loss that is not finite, nothing changes the weights any more; ``has_failed`` tells.

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
        self._failed, self._rate, self._clip, self._entropy = torch.zeros(4, device=device).unbind()
        self._config: Any = None
        self._steps: dict[Any, tuple[Minibatch, Recorded]] = {}
        self._places: list[int] = []

    def begin(self, config: TrainConfig) -> None:
        """Take the learning rate and the coefficients of an update."""
        self._failed.zero_()
        self._rate.fill_(self._optimizer.param_groups[0]["lr"])
        self._clip.fill_(config.clip_coef)
        self._entropy.fill_(config.ent_coef)
        # Coefficients that change are read from memory, since numbers are recorded too.
        coefficients: dict[str, Any] = {"clip_coef": self._clip, "ent_coef": self._entropy}
        self._config = dataclasses.replace(config, **coefficients)
        if self._places != self._current_places():  # a checkpoint was loaded
            self._steps.clear()

    def __call__(self, batch: Minibatch) -> list[Tensor]:
        """Take a step; returns the figures of each part of the minibatch, in the order of ``Losses``."""
        key = tuple((name, tensor.shape) for name, tensor in _tensors(batch).items())
        if key not in self._steps:
            self._steps[key] = batch, Recorded(functools.partial(self._step, batch), self._recorder)
        held, step = self._steps[key]
        for mine, given in zip(_tensors(held).values(), _tensors(batch).values(), strict=True):
            if mine.data_ptr() != given.data_ptr():
                mine.copy_(given)
        figures: Tensor = step()
        return list(figures.clone().unbind())

    def has_failed(self) -> bool:
        """Return whether a loss of the update was not finite. Call it at the end of an update."""
        self._places = self._current_places()
        return bool(self._failed)

    def _step(self, batch: Minibatch) -> Tensor:
        self._optimizer.zero_grad()
        parts = ppo.accumulate_gradients(self._policy, batch, self._config, self._loss, is_checked=False)
        figures = torch.stack(parts)
        self._failed.copy_(torch.maximum(self._failed, (~torch.isfinite(figures[:, 0])).any().float()))
        with on_device(self._optimizer, self._rate, self._failed):
            ppo.apply_gradients(self._policy, self._optimizer, self._config)
        return figures

    def _current_places(self) -> list[int]:
        """Addresses of all that steps read and write."""
        states = [tensor for state in self._optimizer.state.values() for tensor in state.values()]
        return [tensor.data_ptr() for tensor in [*self._policy.parameters(), *states] if isinstance(tensor, Tensor)]


def _tensors(batch: Minibatch) -> dict[str, Tensor]:
    return {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)} | batch.state
