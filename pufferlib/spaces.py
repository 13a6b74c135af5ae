"""Helpers for Gymnasium spaces: checks for native environments, and joint spaces of a batch."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.errors import APIUsageError

__all__ = [
    "MixedBox",
    "Space",
    "action_spec",
    "check_native_spaces",
    "compact_box",
    "joint_space",
    "same_space",
]

Space = gymnasium.Space[Any]
Array = npt.NDArray[Any]

HEAVY_BYTES = 1 << 20  # size of a bound from which Boxes share the array instead of copying it


def check_native_spaces(where: str, observation_space: object, action_space: object) -> None:
    """Check that a native environment may use these spaces.

    Raises:
        APIUsageError: The observation space is not a Box, or the action space is not a Discrete,
            MultiDiscrete or Box.
    """
    if not isinstance(observation_space, Box):
        raise APIUsageError(
            f"{where}: single_observation_space must be a Box, got {observation_space!r}; "
            "wrap other spaces with pufferlib.emulation"
        )
    if not isinstance(action_space, Discrete | MultiDiscrete | Box):
        raise APIUsageError(
            f"{where}: single_action_space must be Discrete, MultiDiscrete or Box, got {action_space!r}; "
            "wrap other spaces with pufferlib.emulation"
        )


class MixedBox(Box):
    """Box of actions with integers in some elements, for Discrete parts beside Boxes of floats.

    Args:
        low: Lowest value of each element.
        high: Highest value of each element.
        is_integer: Whether each element is an integer.
        dtype: Floating-point dtype of a sample.
    """

    def __init__(self, low: Array, high: Array, is_integer: Array, dtype: npt.DTypeLike) -> None:
        real: Any = np.dtype(dtype).type
        super().__init__(low.astype(real), high.astype(real), dtype=real)
        self.is_integer = is_integer

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of values of each integer, ``(integers,)``."""
        low, high = (bound[self.is_integer].astype(np.int64) for bound in (self.low, self.high))
        return high - low + 1

    def sample(self, mask: None = None, probability: None = None) -> Array:
        """Return a random element. As for a Box, both arguments must be None."""
        drawn: Array = super().sample(mask, probability)
        low, high = (bound[self.is_integer].astype(np.int64) for bound in (self.low, self.high))
        drawn[self.is_integer] = self.np_random.integers(low, high, endpoint=True)
        return drawn

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is within the bounds and has integers where they are expected."""
        return super().contains(x) and self.has_integers(np.asarray(x))

    def has_integers(self, actions: Array) -> bool:
        """Return whether actions ``(..., elements)`` have integers where they are expected."""
        integers = actions[..., self.is_integer]
        return bool((integers == np.rint(integers)).all())

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` has the same elements."""
        return (
            isinstance(other, MixedBox) and super().__eq__(other) and np.array_equal(self.is_integer, other.is_integer)
        )

    def __repr__(self) -> str:
        """Return the bounds of each element. Those of integers have no decimal point."""
        bounds = zip(self.low.ravel().tolist(), self.high.ravel().tolist(), self.is_integer.ravel(), strict=True)
        parts = [f"{int(low)} to {int(high)}" if whole else f"{low} to {high}" for low, high, whole in bounds]
        return f"MixedBox({', '.join(parts)})"


def joint_space(space: Space, num_agents: int) -> Space:
    """Return the space of ``num_agents`` stacked samples of ``space``, with shape ``(num_agents, *space.shape)``.

    A Discrete becomes a MultiDiscrete, a MultiDiscrete becomes a Box of int32, and a Box stays a Box.

    Raises:
        APIUsageError: ``space`` has another type.
    """
    if isinstance(space, Discrete):
        return MultiDiscrete(
            np.full(num_agents, space.n, np.int64), start=np.full(num_agents, int(space.start), np.int64)
        )
    if isinstance(space, MultiDiscrete):
        low = np.broadcast_to(space.start, (num_agents, *space.shape))
        return Box(low, low + space.nvec - 1, dtype=np.int32)
    if isinstance(space, MixedBox):
        shape = (num_agents, *space.shape)
        low, high, is_integer = (np.broadcast_to(each, shape) for each in (space.low, space.high, space.is_integer))
        return MixedBox(low, high, is_integer, space.dtype)
    if isinstance(space, Box):
        shape = (num_agents, *space.shape)
        if num_agents * space.low.nbytes >= HEAVY_BYTES:
            return SharedBox(shape, space.dtype, _bounds(space))
        return Box(
            np.broadcast_to(space.low, shape), np.broadcast_to(space.high, shape), dtype=np.dtype(space.dtype).type
        )
    raise APIUsageError(f"joint_space: expected Box, Discrete or MultiDiscrete, got {space!r}")


class SharedBox(Box):
    """Box whose bounds are views of smaller arrays. It equals a Gymnasium Box with full arrays.

    Args:
        shape: Shape of a sample.
        dtype: Dtype of a sample.
        bounds: Arrays ``low``, ``high``, ``bounded_below`` and ``bounded_above``, which broadcast to ``shape``.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike, bounds: Sequence[Array]) -> None:
        gymnasium.Space.__init__(self, shape, np.dtype(dtype))
        self.low_repr = self.high_repr = None
        self._bounds = bounds
        self.low, self.high, self.bounded_below, self.bounded_above = (
            np.broadcast_to(bound, shape) for bound in bounds
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self.dtype, self._bounds)


def compact_box(box: Box) -> Box:
    """Return an equal Box that pickles to a few bytes, or ``box`` itself if it is small or has different bounds."""
    if type(box) is not Box or box.low.nbytes < HEAVY_BYTES:
        return box
    bounds = _bounds(box)
    if any(bound.min() != bound.max() for bound in bounds):
        return box
    return SharedBox(box.shape, box.dtype, [bound.flat[:1] for bound in bounds])


def _bounds(box: Box) -> list[Array]:
    return [box.low, box.high, box.bounded_below, box.bounded_above]


def same_space(one: Space, other: Space) -> bool:
    """Return whether two spaces are equal. Large equal Boxes are compared faster than by ``==``, and without copies."""
    return one is other or _same_box(one, other) or bool(one == other)


def _same_box(one: Any, other: Any) -> bool:
    """Return whether both are Boxes with the same dtype and the same bounds."""
    boxes = (Box, SharedBox)
    if type(one) not in boxes or type(other) not in boxes or one.dtype != other.dtype:
        return False
    return np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high)


def action_spec(space: Space) -> tuple[tuple[int, ...], npt.DTypeLike]:
    """Return shape and dtype of one agent's row in the action buffer: int32, or the dtype of a Box."""
    if isinstance(space, Box):
        return space.shape, space.dtype
    return tuple(space.shape or ()), np.int32
