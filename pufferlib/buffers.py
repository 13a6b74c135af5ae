"""The arrays of a batch, owned by whoever batches and written in place by the environments."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, action_spec

__all__ = [
    "ArraySpecs",
    "BufferLayout",
    "BufferSource",
    "Buffers",
    "HasBuffers",
    "RowArrays",
    "allocate",
    "array_specs",
    "clear_rows",
    "offer_buffers",
    "set_buffers",
    "slice_rows",
]

Array = npt.NDArray[Any]
Buffers = dict[str, Array]
ArraySpecs = dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]  # shape and dtype by name

REQUIRED = ("observations", "actions", "rewards", "terminals", "truncations", "masks")
CACHE_LINE = 64  # bytes: memory that two processes write never shares one


class RowArrays:
    """Arrays that ``set_buffers`` gives an environment, one row for each agent."""

    observations: Array
    final_observations: Array
    actions: Array
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    masks: npt.NDArray[np.bool_]


class HasBuffers(Protocol):
    """Structural type of the environments that ``set_buffers`` accepts."""

    single_observation_space: Box
    single_action_space: Space
    num_agents: int


BufferSource = Mapping[str, Array] | Callable[[HasBuffers], Mapping[str, Array]] | None

_offered: ContextVar[BufferSource] = ContextVar("_offered", default=None)


def array_specs(observation_space: Box, action_space: Space, num_agents: int) -> ArraySpecs:
    """Shape and dtype of every array of a batch of ``num_agents`` rows.

    ``observations`` and ``final_observations`` are ``(num_agents, *shape)`` in the dtype of the
    space; ``actions`` int32, or the dtype of a Box; ``rewards`` float32; ``terminals``,
    ``truncations`` and ``masks`` bool. ``final_observations`` keeps the last observation of an
    episode that ended in a step whose ``observations`` row already shows the next one.
    """
    observation = ((num_agents, *observation_space.shape), np.dtype(observation_space.dtype))
    action_shape, action_dtype = action_spec(action_space)
    flag = ((num_agents,), np.dtype(bool))
    return {
        "observations": observation,
        "final_observations": observation,
        "actions": ((num_agents, *action_shape), np.dtype(action_dtype)),
        "rewards": ((num_agents,), np.dtype(np.float32)),
        "terminals": flag,
        "truncations": flag,
        "masks": flag,
    }


def allocate(observation_space: Box, action_space: Space, num_agents: int) -> Buffers:
    """Zeroed private arrays for a batch of ``num_agents`` rows; every mask is True."""
    arrays: Buffers = {
        name: np.zeros(shape, dtype)
        for name, (shape, dtype) in array_specs(observation_space, action_space, num_agents).items()
    }
    arrays["masks"][:] = True
    return arrays


def slice_rows(buf: Mapping[str, Array], start: int, stop: int) -> Buffers:
    """Views of rows ``start`` to ``stop`` of every array."""
    return {name: array[start:stop] for name, array in buf.items()}


def clear_rows(buf: Mapping[str, Array], rows: slice = slice(None)) -> None:
    """Leave ``rows`` as those of episodes that are over; observations and actions stay."""
    for name in ("rewards", "terminals", "truncations", "masks"):
        buf[name][rows] = 0


class BufferLayout:
    """The arrays of a batch laid out in one block of memory, one after the other, each from a cache line on.

    Args:
        specs: Shape and dtype of every array, in the order of the block.

    Attributes:
        nbytes: Size of the block.
    """

    def __init__(self, specs: ArraySpecs) -> None:
        self._places = {}
        self.nbytes = 0
        for name, (shape, dtype) in specs.items():
            self._places[name] = (self.nbytes, shape, dtype)
            self.nbytes += -(-math.prod(shape) * dtype.itemsize // CACHE_LINE) * CACHE_LINE

    def start(self, name: str) -> int:
        """Offset in bytes at which the array begins."""
        return self._places[name][0]

    def arrays(self, memory: "memoryview[int]") -> Buffers:
        """Views of a block's ``memory``; where it was cut short, of the arrays that are left in it."""
        return {
            name: np.ndarray(shape, dtype, memory, start)
            for name, (start, shape, dtype) in self._places.items()
            if start + math.prod(shape) * dtype.itemsize <= memory.nbytes
        }


@contextmanager
def offer_buffers(buf: BufferSource) -> Iterator[None]:
    """Give ``buf`` to the first environment that is made inside without arrays of its own."""
    token = _offered.set(buf)
    try:
        yield
    finally:
        _offered.reset(token)


def set_buffers(env: HasBuffers, buf: BufferSource = None) -> None:
    """Give ``env`` its arrays: new ones, or those of ``buf``, adopted without a copy.

    Args:
        env: Defines ``single_observation_space``, ``single_action_space`` and ``num_agents``.
        buf: ``observations``, ``actions``, ``rewards``, ``terminals``, ``truncations`` and
            ``masks``, each with ``num_agents`` rows, and optionally ``final_observations``; or a
            function that returns them for ``env``, whose spaces are known by now.

    Raises:
        APIUsageError: An array is missing, or has another shape or dtype than the spaces ask for.
    """
    expected = array_specs(env.single_observation_space, env.single_action_space, env.num_agents)
    if buf is None:
        buf = _offered.get()
        _offered.set(None)
    if callable(buf):
        buf = buf(env)
    if buf is None:
        buf = allocate(env.single_observation_space, env.single_action_space, env.num_agents)
    missing = [name for name in REQUIRED if name not in buf]
    if missing:
        raise APIUsageError(f"set_buffers: buf lacks {', '.join(missing)}; it has {', '.join(buf)}")
    for name, (shape, dtype) in expected.items():
        array = buf.get(name)
        if array is None:
            array = np.zeros(shape, dtype)
        if array.shape != shape or array.dtype != dtype:
            raise APIUsageError(
                f"set_buffers: {name} must have shape {shape} and dtype {dtype}, "
                f"got shape {array.shape} and dtype {array.dtype}"
            )
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise APIUsageError(
                f"set_buffers: {name} must be C-contiguous and writable, got strides {array.strides}, "
                f"writable {array.flags.writeable}; pass whole arrays or ranges of their rows"
            )
        setattr(env, name, array)
