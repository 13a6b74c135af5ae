"""Rollouts: the steps of all agents between two updates, and the minibatches drawn from them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box
from torch import Tensor

from pufferlib.errors import PufferError, UsageError
from pufferlib.models import Policy, State
from pufferlib.settings.config import TrainConfig
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["CollectingStopped", "Draw", "Minibatch", "Reports", "Rollout", "by_priority", "in_order", "shuffled"]


LEAST_PRIORITY = 1e-6  # a part whose advantage is 0 is still drawn sometimes


class CollectingStopped(Exception):  # noqa: N818  # not an error
    """Raised in the thread that collects a rollout when the collector is stopped."""


class Draw(NamedTuple):
    """Parts of one minibatch.

    Attributes:
        parts: Indices of parts, int64 ``(rows,)``. A part is a single step, or a segment if the policy has a memory.
        weights: Weight of each part in the loss, float32 ``(rows,)``. None if all weights are equal.
    """

    parts: Tensor
    weights: Tensor | None = None


def in_order(num_parts: int, rows: int, device: torch.device | str = "cpu") -> Iterator[Draw]:
    """Yield every part once, in order."""
    for parts in torch.split(torch.arange(num_parts, device=device), rows):
        yield Draw(parts)


def shuffled(num_parts: int, rows: int, generator: torch.Generator) -> Iterator[Draw]:
    """Yield every part once, in random order."""
    for parts in torch.split(torch.randperm(num_parts, generator=generator, device=generator.device), rows):
        yield Draw(parts)


def by_priority(
    advantages: Tensor, masks: Tensor, rows: int, config: TrainConfig, generator: torch.Generator
) -> Iterator[Draw]:
    r"""Yield as many minibatches as ``shuffled``, drawn independently with replacement.

    .. math::
        P_i = \frac{p_i^\alpha}{\sum_k p_k^\alpha}, \quad w_i = (N P_i)^{-\beta}

    p is the mean absolute advantage of a part. With :math:`\beta = 1` the weights fully compensate for the draw.

    Source: Schaul et al., "Prioritized Experience Replay" (2016), equation 1 and section 3.4.

    Args:
        advantages: Advantages, float32 ``(steps of a part, parts)``.
        masks: Whether each step counts, bool of the same shape. Parts without counted steps are never drawn.
        rows: Number of parts in a minibatch.
        config: Settings, of which ``priority_alpha`` and ``priority_beta`` are read.
        generator: Random number generator.
    """
    counts = masks.sum(0)
    sizes = (advantages.abs() * masks).sum(0) / counts.clamp(min=1) + LEAST_PRIORITY
    chances = (sizes.double() ** config.priority_alpha) * (counts > 0)
    chances /= chances.sum()
    weights = (chances * (counts > 0).sum()) ** -config.priority_beta
    bounds = chances.cumsum(0)
    last = int((counts > 0).nonzero()[-1])  # due to rounding, a draw may exceed the sum of all chances
    for _ in range(0, len(chances), rows):
        draws = torch.rand(rows, dtype=torch.float64, generator=generator, device=generator.device).to(bounds.device)
        parts = torch.searchsorted(bounds, draws, right=True).clamp(max=last)
        yield Draw(parts, weights[parts].float())


@dataclass(frozen=True)
class Minibatch:
    """Minibatch of segments with ``steps`` steps (1 without memory). Fields have shape ``(steps, rows, ...)``.

    Attributes:
        observations: Observations, with the dtype of the space.
        actions: Actions taken.
        log_probs: Log-probabilities of the actions when they were taken.
        values: Value estimates when the actions were taken.
        advantages: Advantages, not normalized.
        returns: Targets of the values.
        mask: Whether each step counts: the agent was present, and its action had an effect. None if all steps count.
        state: Memory before the first step, with tensors of shape ``(rows, ...)``.
        episode_starts: Whether an episode starts at each step. None without memory.
        weights: Weight of each step in the loss, 0 where ``mask`` is False. The sum is the number of steps that
            count. None if all of those have equal weights.
    """

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    mask: Tensor | None
    state: State
    episode_starts: Tensor | None
    weights: Tensor | None = None

    @property
    def counted(self) -> Tensor | None:
        """Weight of each step in the means of a loss. This is ``weights``, or ``mask`` without weights."""
        return self.mask if self.weights is None else self.weights

    def split(self, count: int) -> "Iterator[Minibatch]":
        """Yield ``count`` minibatches with equal numbers of rows. They share the memory of this one."""
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        parts = {name: value.tensor_split(count, 1) for name, value in tensors.items()}
        states = {name: value.tensor_split(count) for name, value in self.state.items()}
        for part in range(count):
            state = {name: values[part] for name, values in states.items()}
            yield replace(self, state=state, **{name: values[part] for name, values in parts.items()})


class Reports(NamedTuple):
    """Values that environments report for each step, as arrays ``(horizon, num_agents)`` in CPU memory.

    Each step writes one row. With arrays in GPU memory, each row would be a small copy.
    """

    rewards: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    episode_starts: npt.NDArray[np.bool_]
    episode_ends: npt.NDArray[np.bool_]


class Rollout:
    """Storage for the steps of one update, time-major: ``(horizon, num_agents, ...)``. It is allocated once.

    Args:
        vecenv: Environments, which define the number of agents and the shape of observations.
        policy: Policy, which defines the shape of actions, and the memory if it has one.
        horizon: Number of steps of each agent.
        minibatch_size: Agent-steps of one minibatch. It must divide ``horizon * num_agents``, and be a multiple of
            ``horizon`` if the policy has a memory. If it is larger than the rollout, a minibatch is the whole rollout.
        device: Device of the tensors.
        cpu_offload: Keep the observations in CPU memory, from which a GPU can copy asynchronously.

    Raises:
        APIUsageError: The minibatches do not fill the rollout evenly.
        PufferError: The rollout does not fit into the memory.
    """

    def __init__(
        self,
        vecenv: AnyVectorEnv,
        policy: Policy,
        horizon: int,
        minibatch_size: int,
        device: torch.device | str = "cpu",
        cpu_offload: bool = False,
    ) -> None:
        self.horizon, self.num_agents, self._is_offloaded = horizon, int(vecenv.num_agents), cpu_offload
        self.batch_size = horizon * self.num_agents
        try:
            self._allocate(vecenv.single_observation_space, policy, device, cpu_offload)
        except RuntimeError as error:
            raise PufferError(
                f"Rollout: {horizon} steps of {self.num_agents} agents do not fit into the memory of {device}; "
                "lower train.horizon or take fewer environments"
            ) from error
        self.initial_state = policy.initial_state(self.num_agents, device)
        self._out: dict[str, Tensor] = {}
        self._segment = horizon if self.initial_state else 1
        self._rows = _rows_of_minibatch(horizon, self.num_agents, self._segment, minibatch_size)

    def _allocate(self, space: Box, policy: Policy, device: torch.device | str, cpu_offload: bool) -> None:
        dtype = torch.from_numpy(np.zeros(0, space.dtype)).dtype
        shape = (self.horizon, self.num_agents)
        is_pinned = cpu_offload and torch.device(device).type == "cuda"
        self.observations = torch.zeros(
            *shape, *space.shape, dtype=dtype, device="cpu" if cpu_offload else device, pin_memory=is_pinned
        )
        self.actions = torch.zeros(*shape, *policy.distribution.shape, dtype=policy.distribution.dtype, device=device)
        self.log_probs = torch.zeros(shape, device=device)
        self.values = torch.zeros(self.horizon + 1, self.num_agents, device=device)
        self.rewards = torch.zeros(shape, device=device)
        self.episode_starts = torch.zeros(shape, dtype=torch.bool, device=device)
        self.episode_ends = torch.zeros(shape, dtype=torch.bool, device=device)
        self.masks = torch.ones(shape, dtype=torch.bool, device=device)
        reports = (self.rewards, self.masks, self.episode_starts, self.episode_ends)
        self.reports = Reports(*(report.cpu().numpy() for report in reports))  # views of the tensors on a CPU

    def state_dict(self) -> dict[str, Any]:
        """Return all tensors of experience, without copying them."""
        names = ("observations", "actions", "log_probs", "values", "rewards", "episode_starts", "episode_ends", "masks")
        return {"initial_state": dict(self.initial_state), **{name: getattr(self, name) for name in names}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy the experience of a rollout of the same sizes."""
        mine = self.state_dict()
        memory, kept = mine.pop("initial_state"), state["initial_state"]
        for name, tensor in mine.items():
            tensor.copy_(state[name])
        for name, tensor in memory.items():
            tensor.copy_(kept[name])

    def take_reports(self) -> None:
        """Copy ``reports`` to the device. On a CPU there is nothing to do."""
        if self.rewards.device.type != "cpu":
            for name, report in self.reports._asdict().items():
                getattr(self, name).copy_(torch.from_numpy(report))

    @property
    def rows(self) -> int:
        """Number of parts in a minibatch. Parts are segments if the policy has a memory, otherwise single steps."""
        return self._rows

    def as_parts(self, field: Tensor) -> Tensor:
        """Reshape ``(horizon, num_agents, ...)`` to ``(steps of a part, parts, ...)``."""
        parts = field.shape[0] * field.shape[1] // self._segment  # -1 is ambiguous for observations without elements
        return field.reshape(self._segment, parts, *field.shape[2:])

    def minibatches(
        self,
        advantages: Tensor,
        generator: torch.Generator,
        returns: Tensor | None = None,
        draws: Iterable[Draw] | None = None,
    ) -> Iterator[Minibatch]:
        """Yield minibatches of the rollout: each part once in random order, or as in ``draws``.

        All minibatches share the same memory, so use each one before the next.

        Args:
            advantages: Advantages, float32 ``(horizon, num_agents)``.
            generator: Random number generator for the order.
            returns: Returns, of the same shape. None uses the advantages plus the values.
            draws: Parts of each minibatch.
        """
        fields = {
            "observations": self.observations,
            "actions": self.actions,
            "log_probs": self.log_probs,
            "values": self.values[:-1],
            "advantages": advantages,
            "returns": advantages + self.values[:-1] if returns is None else returns,
            "masks": self.masks,
            "episode_starts": self.episode_starts,
        }
        if self._segment == 1:
            del fields["episode_starts"]
        if bool(self.masks.all()):
            del fields["masks"]
        segments = {name: self.as_parts(field) for name, field in fields.items()}
        for parts, weights in draws or shuffled(self.batch_size // self._segment, self._rows, generator):
            chosen = parts.to(self.values.device)
            part = {name: self._gather(name, field, 1, chosen) for name, field in segments.items()}
            state = {name: self._gather(name, field, 0, chosen) for name, field in self.initial_state.items()}
            mask, starts = part.pop("masks", None), part.pop("episode_starts", None)
            weights = None if weights is None else _of_steps(weights, part["advantages"], mask)
            yield Minibatch(**part, mask=mask, state=state, episode_starts=starts, weights=weights)

    def _gather(self, name: str, source: Tensor, dim: int, chosen: Tensor) -> Tensor:
        """Copy rows of ``source`` into a reused tensor, since new memory would cost more than the copy."""
        if name not in self._out:
            shape = list(source.shape)
            shape[dim] = len(chosen)
            self._out[name] = source.new_empty(shape, pin_memory=source.is_pinned())
        if self._is_offloaded and name == "observations":
            return torch.index_select(source, dim, chosen.cpu(), out=self._out[name]).to(chosen.device)
        return torch.index_select(source, dim, chosen, out=self._out[name])


def _of_steps(weights: Tensor, like: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights of parts as weights of their steps. The mean over the steps that count is 1."""
    steps = weights.expand_as(like) if mask is None else weights * mask
    count = steps.numel() if mask is None else mask.sum().clamp(min=1)
    return steps * (count / steps.sum().clamp(min=torch.finfo(steps.dtype).tiny))


def _rows_of_minibatch(horizon: int, num_agents: int, segment: int, minibatch_size: int) -> int:
    """Return the number of segments in a minibatch. Each segment has ``segment`` steps."""
    batch_size = horizon * num_agents
    size = min(minibatch_size, batch_size)
    if size % segment == 0 and batch_size % size == 0:
        return size // segment
    segments = batch_size // segment
    sizes = [segment * count for count in range(1, segments + 1) if segments % count == 0]
    near = [fits for fits in sizes if fits < size][-1:] + [fits for fits in sizes if fits > size][:1]
    whole = "be a multiple of train.horizon, because the policy is recurrent, and " if size % segment else ""
    raise UsageError(
        f"train.minibatch_size must {whole}divide train.horizon * agents = {horizon} * {num_agents} = {batch_size}, "
        f"got {minibatch_size}; try {' or '.join(map(str, near))}"
    )
