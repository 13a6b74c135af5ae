"""Observations as rows of floats, the form in which a multilayer perceptron takes them."""

from collections.abc import Iterator
from typing import Any

import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.pytorch import NativeDtype, NativeLeaf, nativize_dtype, nativize_tensor

__all__ = ["Features", "Labels", "Logarithms", "Scaled"]

Bounds = tuple[float, float] | None  # lowest and highest value of an array; None where nobody knows them

MAX_LABELS = 32  # values that each integer of an array may have
MAX_LABEL_WIDTH = 2048  # floats that the labels of one array may take
MAX_AMOUNT = 65_536  # largest integer that is merely scaled


class Features(nn.Module):
    r"""Any observation as one row of floats.

    * Real numbers and booleans stay as they are.
    * Integers of few values (at most 32; a single one may have 2,048) are more often labels than
      amounts, so each becomes one float per value but the lowest: 1 where it has that value. One
      layer can then tell the contents of a cell, or the states of a machine, apart. An array that
      would take more than 2,048 floats is scaled instead.
    * Other integers are divided by the largest magnitude in their space.
    * Those beyond 65,536, or of unknown bounds, become sign(x) log(1 + \|x\|): small numbers stay
      apart, and large ones small.

    Args:
        env: The environment that describes one agent's observation, emulated or not.
        leave_out: A field of a Dict observation that something else reads.

    Attributes:
        size: Floats per row.
        encoders: A module for each array, in the order in which they are read.
        arrays: The places of these arrays in the observation.
    """

    def __init__(self, env: PufferEnv, leave_out: str | None = None) -> None:
        super().__init__()
        self._leave_out = leave_out
        space: Box = env.single_observation_space
        self._structure = _structure(env)
        bounds: Any = (space.low.min().item(), space.high.max().item()) if space.low.size else None
        if self._structure is not None:
            bounds = env.emulated.get("observation_bounds")
        row = torch.as_tensor(space.low[None])
        leaves = list(_leaves(self._nativize(row), bounds))
        self.encoders = nn.ModuleList(_encoder(leaf, leaf_bounds) for leaf, leaf_bounds in leaves)
        self.arrays: list[NativeLeaf] = [(row.dtype, tuple(space.shape), 0, row.numel())]
        if isinstance(self._structure, dict):
            read = {name: part for name, part in self._structure.items() if name != leave_out}
            self.arrays = [array for array, _ in _leaves(read, None)]
        self.size: int = self(row).shape[1]

    def forward(self, observations: Tensor) -> Tensor:
        """``(rows, *shape)`` in the dtype of the space to float32 ``(rows, size)``."""
        leaves = _leaves(self._nativize(observations), None)
        rows = [
            encode(leaf.reshape(leaf.shape[0], leaf.shape[1:].numel()))
            for encode, (leaf, _) in zip(self.encoders, leaves, strict=True)
        ]
        return rows[0] if len(rows) == 1 else torch.cat(rows, -1)

    def _nativize(self, observations: Tensor) -> Any:
        if self._structure is None:
            return observations
        fields = nativize_tensor(observations, self._structure)
        return {name: value for name, value in fields.items() if name != self._leave_out}


class Labels(nn.Module):
    """One float for each value but the lowest: ``(rows, n)`` to ``(rows, values * n)``.

    Attributes:
        low: The lowest value, which has no float.
        values: Values above it.
    """

    levels: Tensor

    def __init__(self, low: int, high: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.low, self.values = low, high - low
        self.register_buffer("levels", torch.arange(low + 1, high + 1).to(dtype)[:, None], persistent=False)

    def forward(self, numbers: Tensor) -> Tensor:
        """``(rows, n)`` integers to float32 ``(rows, values * n)``."""
        # Comparing into floats spares a conversion that takes several times as long as the comparison.
        labels = numbers.new_empty(numbers.shape[0], len(self.levels), numbers.shape[1], dtype=torch.float32)
        return torch.eq(numbers.unsqueeze(1), self.levels, out=labels).flatten(1)


class Scaled(nn.Module):
    """Numbers times ``scale``, as float32."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, numbers: Tensor) -> Tensor:
        """``(rows, n)`` to float32 of that shape."""
        return numbers.float() if self.scale == 1 else numbers.float() * self.scale


class Logarithms(nn.Module):
    r"""Numbers as sign(x) log(1 + \|x\|), float32."""

    def forward(self, numbers: Tensor) -> Tensor:
        """``(rows, n)`` to float32 of that shape."""
        real = numbers.float()
        return real.sign() * real.abs().log1p()


def _encoder(leaf: Tensor, bounds: Bounds) -> nn.Module:
    """Make the module that turns arrays like ``leaf``, ``(1, *shape)``, into floats."""
    if leaf.dtype.is_floating_point or leaf.dtype == torch.bool:
        return Scaled(1.0)
    if bounds is None:
        return Logarithms()
    low, high = (int(bound) for bound in bounds)
    magnitude = max(1, abs(low), abs(high))
    is_few = high - low < MAX_LABELS or leaf.numel() == 1
    if magnitude > 1 and is_few and (high - low) * leaf.numel() <= MAX_LABEL_WIDTH:
        return Labels(low, high, leaf.dtype)
    return Scaled(1 / magnitude) if magnitude <= MAX_AMOUNT else Logarithms()


def _structure(env: PufferEnv) -> NativeDtype | None:
    """The layout of an emulated Dict or Tuple observation; None where the array is the observation."""
    dtype = nativize_dtype(env.emulated) if env.emulated else None
    return dtype if isinstance(dtype, dict) else None


def _leaves(tree: Any, bounds: Any) -> Iterator[tuple[Any, Bounds]]:
    """The tensors of a nested observation, or their places, each with its bounds."""
    if isinstance(tree, dict):
        for field, value in tree.items():
            yield from _leaves(value, None if bounds is None else bounds[field])
    else:
        yield tree, bounds
