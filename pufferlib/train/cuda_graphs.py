"""CUDA graphs: the kernels of acting and learning, recorded once and then launched by a single call each."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, State
from pufferlib.train.config import TrainConfig
from pufferlib.train.ppo import Loss, Losses
from pufferlib.train.rollout import Minibatch

__all__ = ["GraphedLoss", "Recorded", "act_by_graph", "check_cuda_graphs", "record_on_gpu"]

#: Runs a function once, and returns how to run it again on the same memory, and what it returned.
Record = Callable[[Callable[[], Any]], tuple[Callable[[], Any], Any]]
WARM_UP = 3  # runs in which libraries choose their kernels and take their memory


def check_cuda_graphs(config: TrainConfig, device: torch.device) -> None:
    """Raise APIUsageError where ``train.cuda_graphs`` cannot be."""
    if device.type != "cuda":
        raise APIUsageError(f"train.cuda_graphs records the work of a GPU, got train.device {device}; leave it out")
    for name in ("clip_schedule", "ent_schedule"):
        if getattr(config, name) != "constant":
            raise APIUsageError(
                f"train.cuda_graphs records the coefficients too, so train.{name} must be constant, got "
                f"{getattr(config, name)!r}; leave one of them out"
            )


def record_on_gpu(function: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    """Record the kernels that ``function`` launches; see ``Record``."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = function()
    return graph.replay, outputs


class Recorded:
    """A function of tensors that runs on memory of its own, so that it can be replayed.

    Args:
        function: Takes tensors and returns a tuple of them; the same kernels each time.
        inputs: Of the shapes and dtypes that it will get.
        record: Records it.
    """

    def __init__(
        self, function: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], record: Record = record_on_gpu
    ) -> None:
        self._inputs = tuple(tensor.clone() for tensor in inputs)
        self._replay, self._outputs = record(lambda: function(*self._inputs))

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs, which the next call overwrites."""
        for mine, given in zip(self._inputs, inputs, strict=True):
            mine.copy_(given)
        self._replay()
        return self._outputs  # type: ignore[no-any-return]


def act_by_graph(policy: Policy, rows: int, record: Record = record_on_gpu) -> Policy:
    """The policy with a recorded ``forward_eval`` for ``rows`` observations; any other number runs as before.

    The weights may change between calls, but not move.
    """
    forward_eval, recorded = policy.forward_eval, list[Recorded]()

    def replayed(observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        if len(observations) != rows or state is None:
            return forward_eval(observations, state)
        names = list(state)

        def step(observations: Tensor, *memory: Tensor) -> tuple[Tensor, ...]:
            after = dict(zip(names, memory, strict=True))
            params, values = forward_eval(observations, after)
            return params, values, *(after[name] for name in names)

        if not recorded:
            recorded.append(Recorded(step, (observations, *state.values()), record))
        params, values, *memory = recorded[0](observations, *state.values())
        state.update((name, after.clone()) for name, after in zip(names, memory, strict=True))
        return params, values

    twin = copy.copy(policy)  # shares parameters and layers
    twin.forward_eval = replayed  # type: ignore[method-assign]
    return twin


class GraphedLoss:
    """A loss whose kernels, and those of its gradient, are recorded: once for each shape of a minibatch.

    Args:
        loss: Takes the policy, a minibatch and the settings.
    """

    def __init__(self, loss: Loss) -> None:
        self._loss, self._graphs = loss, dict[Any, Callable[..., Any]]()

    def __call__(self, policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
        """See ``ppo_loss``."""
        fields = {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)}
        inputs = (*fields.values(), *batch.state.values())
        fixed = dataclasses.replace(config, learning_rate=0.0, priority_beta=0.0)  # these are not the loss's
        key = (*fields, fixed, *(tensor.shape for tensor in inputs))
        if key not in self._graphs:
            module = _OfTensors(self._loss, policy, config, tuple(fields), tuple(batch.state))
            # Its inputs must be apart from the buffers of the rollout, which are written before each call.
            samples = tuple(tensor.clone() for tensor in inputs)
            self._graphs[key] = torch.cuda.make_graphed_callables(module, samples, allow_unused_input=True)
        figures = self._graphs[key](*inputs)
        return Losses(figures[0], *figures[1:].detach())


class _OfTensors(nn.Module):
    """The loss as a module of the policy's parameters that takes nothing but tensors."""

    def __init__(
        self, loss: Loss, policy: Policy, config: TrainConfig, fields: tuple[str, ...], memory: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.policy = policy
        self._loss, self._config, self._fields, self._memory = loss, config, fields, memory

    def forward(self, *tensors: Tensor) -> Tensor:
        given = dict(zip(self._fields, tensors, strict=False))
        state = dict(zip(self._memory, tensors[len(given) :], strict=True))
        absent = dict.fromkeys(("mask", "episode_starts", "weights"))
        batch = Minibatch(**{**absent, **given}, state=state)  # type: ignore[arg-type]
        return torch.stack(self._loss(self.policy, batch, self._config))
