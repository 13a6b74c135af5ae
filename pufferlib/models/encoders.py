"""Conversion of observations to rows of floats, the input format of a multilayer perceptron."""

from collections.abc import Iterator
from typing import Any

import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.pytorch import NativeDtype, NativeLeaf, nativize_dtype, nativize_tensor

__all__ = ["Features", "Labels", "Logarithms", "Scaled"]

Bounds = tuple[float, float] | None  # lowest and highest value of an array, or None if unknown

MAX_LABELS = 32  # largest number of values per integer for labels
MAX_LABEL_WIDTH = 2048  # largest number of floats for the labels of one array
MAX_AMOUNT = 65_536  # largest integer that is scaled linearly


class Features(nn.Module):
    r"""Converts any observation to one row of floats.

    * Floats and booleans are unchanged.
    * Integers with few values (at most 32, or 2,048 for a single integer) are more often labels than
      amounts, so each is one-hot encoded, with one float per value except the lowest. One layer can
      then distinguish the contents of a cell or the states of a machine. An array that would take
      more than 2,048 floats is scaled instead.
    * Other integers are divided by the largest magnitude in their space.
    * Integers beyond 65,536, or with unknown bounds, become sign(x) log(1 + \|x\|). This keeps small
      numbers distinguishable and large ones small.

    Args:
        env: Environment that describes one agent's observation, emulated or not.
        leave_out: Name of a field in a Dict observation to skip.

    Attributes:
        size: Number of floats per row.
        encoders: Module for each array, in reading order.
        arrays: Location of each array in the observation.
    """

    def __init__(self, env: HasSpaces, leave_out: str | None = None) -> None:
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
        """Encode ``(rows, *shape)`` in the dtype of the space to float32 ``(rows, size)``."""
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
    """One-hot encoding without the lowest value: ``(rows, n)`` to ``(rows, values * n)``.

    Attributes:
        low: Lowest value, which has no float.
        values: Number of values above it.
    """

    levels: Tensor

    def __init__(self, low: int, high: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.low, self.values = low, high - low
        self.register_buffer("levels", torch.arange(low + 1, high + 1).to(dtype)[:, None], persistent=False)

    def forward(self, numbers: Tensor) -> Tensor:
        """Encode integers ``(rows, n)`` to float32 ``(rows, values * n)``."""
        # Comparing directly into floats avoids a conversion, which would take several times as long.
        labels = numbers.new_empty(numbers.shape[0], len(self.levels), numbers.shape[1], dtype=torch.float32)
        return torch.eq(numbers.unsqueeze(1), self.levels, out=labels).flatten(1)


class Scaled(nn.Module):
    """Multiplication by ``scale`` and conversion to float32."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, numbers: Tensor) -> Tensor:
        """Encode ``(rows, n)`` to float32 of the same shape."""
        return numbers.float() if self.scale == 1 else numbers.float() * self.scale


class Logarithms(nn.Module):
    r"""Conversion to sign(x) log(1 + \|x\|), float32."""

    def forward(self, numbers: Tensor) -> Tensor:
        """Encode ``(rows, n)`` to float32 of the same shape."""
        real = numbers.float()
        return real.sign() * real.abs().log1p()


def _encoder(leaf: Tensor, bounds: Bounds) -> nn.Module:
    """Return the module that encodes arrays like ``leaf``, ``(1, *shape)``."""
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


def _structure(env: HasSpaces) -> NativeDtype | None:
    """Return the layout of an emulated Dict or Tuple observation, or None if the observation is a single array."""
    dtype = nativize_dtype(env.emulated) if env.emulated else None
    return dtype if isinstance(dtype, dict) else None


def _leaves(tree: Any, bounds: Any) -> Iterator[tuple[Any, Bounds]]:
    """Yield the tensors of a nested observation, or their locations, each with its bounds."""
    if isinstance(tree, dict):
        for field, value in tree.items():
            yield from _leaves(value, None if bounds is None else bounds[field])
    else:
        yield tree, bounds
