"""Action distributions, which convert network outputs to actions, log probabilities and entropies."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor

from pufferlib.errors import APIUsageError
from pufferlib.models import _gaussian, gpu_code
from pufferlib.models._categorical import CategoricalKernel
from pufferlib.spaces import MixedBox, Space

__all__ = ["ActionDistribution", "Categorical", "Gaussian", "Mixed", "action_distribution", "is_plain"]


MAX_SIZE = 128  # largest component that the GPU kernel draws from
MAX_VALUES = 65_536  # limit for a Box of integers, since each value is an output of the network
NEAR = 2.0  # factor between bounds and -1 and 1 up to which a Gaussian learns well
UNBOUNDED = 1e15  # bounds beyond this, such as the largest float32, count as infinite


class ActionDistribution(Protocol):
    """Distribution over one agent's action space, given parameters ``(..., num_params)``.

    It holds no tensors. The parameters are the output of the network and are passed to every call.
    Actions have shape ``(..., *shape)``. They are int64 and start at 0 for Categorical, and float32 for Gaussian and
    Mixed.

    Attributes:
        num_params: Number of parameters.
        num_logits: Number of logits, which are the first parameters.
        num_log_stds: Number of log standard deviations, which are the last parameters.
        shape: Shape of an action.
        dtype: Dtype of actions.
        is_far: True for elements that ``rescale`` changes: reals with bounds that differ from -1 and 1 by more than a
            factor of 2.
    """

    num_params: int
    num_logits: int
    num_log_stds: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    is_far: npt.NDArray[np.bool_]

    @property
    def is_rescaled(self) -> bool:
        """True if ``rescale`` has changed any element."""

    @property
    def start(self) -> npt.NDArray[np.generic]:
        """Environment actions that correspond to 0, broadcastable to ``shape``."""

    @property
    def scale(self) -> npt.NDArray[np.generic]:
        """Changes of environment actions that correspond to 1, broadcastable to ``shape``."""

    def rescale(self, is_on: bool) -> None:
        """Map -1 and 1 to the bounds of the elements in ``is_far``, or stop doing so.

        Each of these then starts at the middle of its interval, with a standard deviation of half its width.
        """

    def noise(self, rows: Sequence[int], generator: torch.Generator) -> Tensor:
        """Return random numbers ``(*rows, n)`` for ``draw``, on the generator's device."""

    def draw(self, params: Tensor, noise: Tensor, actions: Tensor, log_probs: Tensor) -> bool | Tensor:
        """Write a sampled action and its log probability for each row.

        Args:
            params: Distribution parameters ``(rows, num_params)``.
            noise: Random numbers ``(rows, n)`` from ``noise``.
            actions: Contiguous output tensor for the actions, ``(rows, *shape)``.
            log_probs: Contiguous output tensor for the log probabilities, float32 ``(rows,)``.

        Returns:
            False if ``params`` contain NaN, in which case the outputs are meaningless, otherwise True. The result is a
            scalar tensor on the device if reading it would require a synchronization.
        """

    def sample(self, params: Tensor, generator: torch.Generator) -> Tensor:
        """Return a sampled action for each row."""

    def mode(self, params: Tensor) -> Tensor:
        """Return the most likely action of each row."""

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Return the log probability (density) of each row's action, ``(...)``."""

    def entropy(self, params: Tensor) -> Tensor:
        """Return the entropy of each row in nats, ``(...)``."""

    def evaluate(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``log_prob`` and ``entropy`` together, without gradients."""

    def differentiate(self, params: Tensor, actions: Tensor, d_log_probs: Tensor, d_entropies: Tensor) -> Tensor:
        """Return the derivative with respect to ``params``, given the derivatives of both results of ``evaluate``."""

    def to_env(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.generic]:
        """Convert actions to the dtype, start and bounds of the environment's action space."""


def action_distribution(space: Space) -> ActionDistribution:
    """Return the distribution for an action space.

    Raises:
        APIUsageError: The space is not a Discrete, MultiDiscrete or Box, or is an integer Box with too many values.
    """
    if isinstance(space, MixedBox):
        return Mixed(space)
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating):
        return Gaussian(space)
    if isinstance(space, Box):
        values = int(np.sum(space.high.astype(object) - space.low + 1))  # Python's integers do not overflow
        if values > MAX_VALUES:
            raise APIUsageError(
                f"action_distribution: a Box of integers may have at most {MAX_VALUES} values, got {values} in "
                f"{space!r}; give it smaller bounds, or make it a Box of floats"
            )
        return Categorical(space)
    if isinstance(space, Discrete | MultiDiscrete):
        return Categorical(space)
    raise APIUsageError(
        f"action_distribution: expected a Discrete, MultiDiscrete or Box space, got {space!r}; "
        "wrap it with pufferlib.emulation"
    )


class Categorical:
    """Independent categorical distributions, one per component of the space.

    The parameters are the concatenated logits of all components. The space may also be a Box of integers.

    Attributes:
        sizes: Number of values of each component.
    """

    dtype = torch.int64
    num_log_stds = 0
    scale = np.ones((), np.int64)
    is_far, is_rescaled = np.zeros((), bool), False

    def __init__(self, space: Discrete | MultiDiscrete | Box) -> None:
        self.shape = tuple(space.shape or ())
        if isinstance(space, Box):
            sizes: Any = space.high.astype(object) - space.low + 1
        else:
            sizes = space.nvec if isinstance(space, MultiDiscrete) else space.n
        self.sizes = [int(n) for n in np.ravel(sizes)]
        self._env_dtype = space.dtype if isinstance(space, Box) else np.dtype(np.int32)
        self.start = np.asarray(space.low if isinstance(space, Box) else space.start, self._env_dtype)
        self._starts_elsewhere = bool(np.any(self.start))
        self.num_params = self.num_logits = sum(self.sizes)
        self._kernel = CategoricalKernel(self.sizes)

    def rescale(self, is_on: bool) -> None:
        """Do nothing, because integers have no scale."""

    def noise(self, rows: Sequence[int], generator: torch.Generator) -> Tensor:
        """Return uniform random numbers in [0, 1), one per component."""
        return torch.rand(*rows, len(self.sizes), generator=generator, dtype=torch.float32, device=generator.device)

    def draw(self, params: Tensor, noise: Tensor, actions: Tensor, log_probs: Tensor) -> bool | Tensor:
        """Draw, for each component, the first value whose cumulative probability exceeds the noise.

        Values with probability 0 are never drawn.
        """
        if is_plain(params):
            return self._kernel.draw(params, noise, actions, log_probs)
        if _is_drawn_on_gpu(params, self.sizes):
            sizes = _on_gpu(tuple(self.sizes), params.device)
            arrays = [params, noise.contiguous(), actions, log_probs, sizes]
            gpu_code.launch("categorical.cu", "draw", len(params), [*arrays, len(sizes), params.stride(0), len(params)])
            return torch.isfinite(log_probs.sum())
        chosen = []
        for logits, uniform in zip(torch.split(params.float(), self.sizes, -1), noise.unbind(-1), strict=True):
            reached = logits.softmax(-1).cumsum(-1)
            chosen.append((reached <= uniform.unsqueeze(-1) * reached[..., -1:]).sum(-1))
        actions.copy_(torch.stack(chosen, -1).view(actions.shape))
        log_probs.copy_(self.log_prob(params, actions))
        return torch.isfinite(log_probs.sum())

    def sample(self, params: Tensor, generator: torch.Generator) -> Tensor:
        """Return a sampled value for each component."""
        return _sample(self, params, generator)

    def mode(self, params: Tensor) -> Tensor:
        """Return the most likely value of each component."""
        best = [logits.argmax(-1) for logits in torch.split(params, self.sizes, -1)]
        return torch.stack(best, -1).view(*params.shape[:-1], *self.shape)

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Return the sum over the components of log softmax(logits)[action]."""
        chosen = actions.reshape(*params.shape[:-1], len(self.sizes)).unbind(-1)
        parts = [
            logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
            for logits, action in zip(torch.split(params, self.sizes, -1), chosen, strict=True)
        ]
        return torch.stack(parts).sum(0)

    def entropy(self, params: Tensor) -> Tensor:
        """Return the sum over the components of -sum p log p."""
        logs = [logits.log_softmax(-1) for logits in torch.split(params, self.sizes, -1)]
        return torch.stack([-(log.exp() * log).sum(-1) for log in logs]).sum(0)

    def evaluate(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``log_prob`` and ``entropy`` together, without gradients."""
        if not is_plain(params):
            return self.log_prob(params, actions), self.entropy(params)
        log_probs, entropies = params.new_empty(2, *params.shape[:-1]).unbind()
        self._kernel.evaluate(params.flatten(0, -2), actions.contiguous(), log_probs, entropies)
        return log_probs, entropies

    def differentiate(self, params: Tensor, actions: Tensor, d_log_probs: Tensor, d_entropies: Tensor) -> Tensor:
        """Return the derivative with respect to the logits, given the derivatives of both results of ``evaluate``."""
        d_params = torch.empty(params.shape, device=params.device)
        self._kernel.differentiate(params.flatten(0, -2), actions.contiguous(), d_log_probs, d_entropies, d_params)
        return d_params

    def to_env(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.generic]:
        """Add the start of the space, and convert to int32 or the dtype of the Box."""
        taken: npt.NDArray[Any] = actions.astype(self._env_dtype)
        return taken + self.start if self._starts_elsewhere else taken


class Gaussian:
    """Independent normal distributions, one per component of a Box.

    The parameters are the means, followed by the log standard deviations. The environment gets actions clipped to its
    bounds. Log probabilities refer to the unclipped actions.

    Attributes:
        start: Environment action that corresponds to 0.
        scale: Change of the environment action that corresponds to 1. Both are scalars unless actions are rescaled.
    """

    dtype = torch.float32
    num_logits = 0

    def __init__(self, space: Box) -> None:
        self.shape = space.shape
        self._low, self._high, self._env_dtype = space.low, space.high, space.dtype
        self._size = self.num_log_stds = int(np.prod(space.shape))
        self.num_params = 2 * self._size
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        is_bounded = (np.abs(low) <= UNBOUNDED) & (np.abs(high) <= UNBOUNDED) & (low < high)
        is_near = (low >= -NEAR) & (low <= -1 / NEAR) & (high >= 1 / NEAR) & (high <= NEAR)
        self.is_far = is_bounded & ~is_near
        self.rescale(False)

    def rescale(self, is_on: bool) -> None:
        """Map -1 and 1 to the bounds of the components in ``is_far``, or stop doing so."""
        self.is_rescaled = is_on and bool(self.is_far.any())
        self.start, self.scale = np.zeros(()), np.ones(())
        if self.is_rescaled:
            low, high = (np.where(self.is_far, each, 0).astype(np.float64) for each in (self._low, self._high))
            self.start, self.scale = (low + high) / 2, np.where(self.is_far, (high - low) / 2, 1)

    def noise(self, rows: Sequence[int], generator: torch.Generator) -> Tensor:
        """Return standard normal random numbers, one per component."""
        return torch.randn(*rows, self._size, generator=generator, dtype=torch.float32, device=generator.device)

    def draw(self, params: Tensor, noise: Tensor, actions: Tensor, log_probs: Tensor) -> bool | Tensor:
        """Compute mean + std * noise."""
        mean, log_std = params.chunk(2, -1)
        torch.addcmul(mean, log_std.exp(), noise, out=actions.view(noise.shape))
        log_probs.copy_(self.log_prob(params, actions))
        return torch.isfinite(params.sum())

    def sample(self, params: Tensor, generator: torch.Generator) -> Tensor:
        """Return a sampled number for each component."""
        return _sample(self, params, generator)

    def mode(self, params: Tensor) -> Tensor:
        """Return the mean."""
        return params[..., : self._size].reshape(*params.shape[:-1], *self.shape)

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Return the sum over the components of -(x - mean)^2 / (2 std^2) - log std - log(2 pi) / 2."""
        mean, log_std = params.chunk(2, -1)
        scaled = (actions.reshape(mean.shape) - mean) * (-log_std).exp()
        return (-0.5 * scaled.square() - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self, params: Tensor) -> Tensor:
        """Return the sum over the components of log std + log(2 pi e) / 2."""
        log_std = params[..., self._size :]
        return (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def evaluate(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``log_prob`` and ``entropy`` together, without gradients."""
        if not is_plain(params):
            return self.log_prob(params, actions), self.entropy(params)
        log_probs, entropies = params.new_empty(2, *params.shape[:-1]).unbind()
        _gaussian.evaluate(self._size, params.flatten(0, -2), actions.contiguous(), log_probs, entropies)
        return log_probs, entropies

    def differentiate(self, params: Tensor, actions: Tensor, d_log_probs: Tensor, d_entropies: Tensor) -> Tensor:
        """Return the derivative with respect to ``params``.

        With z = (x - mean) / std, the derivative of the log probability is z / std for the mean and z^2 - 1 for log
        std. The derivative of the entropy is 0 for the mean and 1 for log std.
        """
        if is_plain(params):
            d_params, rows = torch.empty(params.shape), params.flatten(0, -2)
            _gaussian.differentiate(self._size, rows, actions.contiguous(), d_log_probs, d_entropies, d_params)
            return d_params
        mean, log_std = params.chunk(2, -1)
        inverse, d_log_prob = (-log_std).exp(), d_log_probs.unsqueeze(-1)
        scaled = (actions.reshape(mean.shape) - mean) * inverse
        d_log_std = (scaled.square() - 1) * d_log_prob + d_entropies.unsqueeze(-1)
        return torch.cat([scaled * inverse * d_log_prob, d_log_std], -1)

    def to_env(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.generic]:
        """Rescale, clip to the bounds of the space and convert to its dtype."""
        if self.is_rescaled:
            actions = self.start + self.scale * actions
        taken: npt.NDArray[np.generic] = np.clip(actions, self._low, self._high).astype(self._env_dtype)
        return taken


class Mixed:
    """Categorical distributions for the integers of a MixedBox, and independent normal distributions for its reals.

    The parameters are the logits of all integers, the means of all reals and their log standard deviations. Actions are
    float32, and each integer is the number of its value, from 0.

    Attributes:
        is_integer: Whether each element of an action is an integer.
        integers: Distribution of the integers.
        reals: Distribution of the reals.
    """

    dtype = torch.float32

    def __init__(self, space: MixedBox) -> None:
        self.shape, self.is_integer, self._env_dtype = space.shape, space.is_integer, space.dtype
        low, high = (bound[~self.is_integer] for bound in (space.low, space.high))
        self.integers = Categorical(MultiDiscrete(space.sizes, start=space.low[self.is_integer].astype(np.int64)))
        self.reals = Gaussian(Box(low, high, dtype=np.dtype(space.dtype).type))
        self.num_logits, self.num_log_stds = self.integers.num_params, self.reals.num_log_stds
        self.num_params = self.integers.num_params + self.reals.num_params
        self.is_far = self._joined(np.zeros(len(space.sizes), bool), self.reals.is_far)
        # Places of the integers, then of the reals, and the way back.
        self._places = np.argsort(~self.is_integer, kind="stable").tolist()
        self._order = np.argsort(self._places).tolist()

    @property
    def is_rescaled(self) -> bool:
        """True if ``rescale`` has changed any real."""
        return self.reals.is_rescaled

    @property
    def start(self) -> npt.NDArray[np.generic]:
        """Environment action that corresponds to 0."""
        return self._joined(self.integers.start, np.broadcast_to(self.reals.start, self.reals.shape))

    @property
    def scale(self) -> npt.NDArray[np.generic]:
        """Change of the environment action that corresponds to 1."""
        return self._joined(np.ones(self.integers.shape), np.broadcast_to(self.reals.scale, self.reals.shape))

    def rescale(self, is_on: bool) -> None:
        """Map -1 and 1 to the bounds of the reals in ``is_far``, or stop doing so."""
        self.reals.rescale(is_on)

    def noise(self, rows: Sequence[int], generator: torch.Generator) -> Tensor:
        """Return uniform random numbers for the integers, then standard normal ones for the reals."""
        return torch.cat([self.integers.noise(rows, generator), self.reals.noise(rows, generator)], -1)

    def draw(self, params: Tensor, noise: Tensor, actions: Tensor, log_probs: Tensor) -> bool | Tensor:
        """Draw the integers and the reals."""
        count = len(self.integers.sizes)
        chosen = torch.empty(len(params), count, dtype=torch.int64, device=params.device)
        numbers = torch.empty(len(params), *self.reals.shape, device=params.device)
        more = torch.empty_like(log_probs)
        logits, rest = self._split(params)
        are_chosen = self.integers.draw(logits, noise[:, :count].contiguous(), chosen, log_probs)
        are_drawn = self.reals.draw(rest, noise[:, count:], numbers, more)
        log_probs += more
        actions.copy_(self._in_order(chosen, numbers))
        return are_chosen & are_drawn

    def sample(self, params: Tensor, generator: torch.Generator) -> Tensor:
        """Return a sampled number for each element."""
        return _sample(self, params, generator)

    def mode(self, params: Tensor) -> Tensor:
        """Return the most likely value of each integer and the mean of each real."""
        logits, rest = self._split(params)
        return self._in_order(self.integers.mode(logits), self.reals.mode(rest))

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Return the sum of the log probabilities of the integers and the log densities of the reals."""
        (logits, rest), (integers, reals) = self._split(params), self._apart(actions)
        return self.integers.log_prob(logits, integers) + self.reals.log_prob(rest, reals)

    def entropy(self, params: Tensor) -> Tensor:
        """Return the sum of the entropies of the integers and the reals."""
        logits, rest = self._split(params)
        return self.integers.entropy(logits) + self.reals.entropy(rest)

    def evaluate(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``log_prob`` and ``entropy`` together, without gradients."""
        (logits, rest), (integers, reals) = self._split(params), self._apart(actions)
        pairs = self.integers.evaluate(logits, integers), self.reals.evaluate(rest, reals)
        return pairs[0][0] + pairs[1][0], pairs[0][1] + pairs[1][1]

    def differentiate(self, params: Tensor, actions: Tensor, d_log_probs: Tensor, d_entropies: Tensor) -> Tensor:
        """Return the derivative with respect to ``params``, given the derivatives of both results of ``evaluate``."""
        (logits, rest), (integers, reals) = self._split(params), self._apart(actions)
        d_logits = self.integers.differentiate(logits, integers, d_log_probs, d_entropies)
        return torch.cat([d_logits, self.reals.differentiate(rest, reals, d_log_probs, d_entropies)], -1)

    def to_env(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.generic]:
        """Add the lowest value of each integer. Rescale reals and clip them to their bounds."""
        integers, reals = actions[..., self.is_integer], actions[..., ~self.is_integer]
        return self._joined(self.integers.to_env(integers), self.reals.to_env(reals)).astype(self._env_dtype)

    def _split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Return the parameters of the integers and of the reals."""
        return params[..., : self.num_logits], params[..., self.num_logits :]

    def _apart(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the integers, int64, and the reals of actions."""
        columns = actions.unbind(-1)
        ours = torch.stack([columns[place] for place in self._places], -1)
        count = len(self.integers.sizes)
        return ours[..., :count].long(), ours[..., count:]

    def _in_order(self, integers: Tensor, reals: Tensor) -> Tensor:
        """Return actions from the results of ``_apart``."""
        columns = torch.cat([integers.to(reals.dtype), reals], -1).unbind(-1)
        return torch.stack([columns[place] for place in self._order], -1)

    def _joined(self, integers: npt.NDArray[Any], reals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return arrays ``(..., elements)`` from those of the integers and the reals."""
        joined = np.empty((*reals.shape[:-1], *self.shape), np.result_type(integers, reals))
        joined[..., self.is_integer], joined[..., ~self.is_integer] = integers, reals
        return joined


def _sample(distribution: ActionDistribution, params: Tensor, generator: torch.Generator) -> Tensor:
    rows = params.shape[:-1]
    actions = torch.empty(*rows, *distribution.shape, dtype=distribution.dtype, device=params.device)
    flat = params.detach().flatten(0, -2)
    noise = distribution.noise((len(flat),), generator)
    distribution.draw(
        flat,
        noise,
        actions.view(len(flat), *distribution.shape),
        torch.empty(len(flat), dtype=torch.float32, device=params.device),
    )
    return actions


def _is_drawn_on_gpu(params: Tensor, sizes: list[int]) -> bool:
    """Return True if the GPU kernel, which processes a row per thread, can draw from these parameters."""
    is_plain = params.is_cuda and params.dtype is torch.float32 and params.stride(-1) == 1
    return is_plain and max(sizes) <= MAX_SIZE and gpu_code.can_compile(params.device)


@functools.cache
def _on_gpu(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(sizes, dtype=torch.int32, device=device)


def is_plain(params: Tensor) -> bool:
    """Return True if the C loops accept ``params``: rows of float32 in CPU memory."""
    return params.is_cpu and params.dtype is torch.float32 and params.stride(-1) == 1
