"""Arrays of a batch. The owner of the batch allocates them, and environments write into them in place."""

import math
import mmap
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
    "Array",
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
CACHE_LINE = 64  # bytes: arrays start at cache lines, so that processes do not write to the same one


class RowArrays:
    """Arrays that ``set_buffers`` sets on an environment, with one row for each agent."""

    observations: Array
    final_observations: Array
    actions: Array
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    masks: npt.NDArray[np.bool_]

    def _repr_html_(self) -> str:
        """Show the spaces and the current frame in a notebook."""
        from pufferlib.render.html import describe_env

        return describe_env(self)


class HasBuffers(Protocol):
    """Protocol of the environments that ``set_buffers`` accepts."""

    single_observation_space: Box
    single_action_space: Space
    num_agents: int


BufferSource = Mapping[str, Array] | Callable[[HasBuffers], Mapping[str, Array]] | None

_offered: ContextVar[BufferSource] = ContextVar("_offered", default=None)


def array_specs(observation_space: Box, action_space: Space, num_agents: int) -> ArraySpecs:
    """Return shape and dtype of every array of a batch of ``num_agents`` rows.

    ``observations`` and ``final_observations`` are ``(num_agents, *shape)`` in the dtype of the space. ``actions`` are
    int32, or the dtype of a Box. ``rewards`` are float32. ``terminals``, ``truncations`` and ``masks`` are bool. When
    an episode ends and ``observations`` already holds the first observation of the next one, ``final_observations``
    holds the last one.
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
    """Allocate arrays for a batch of ``num_agents`` rows. They are zero, except for the masks, which are True.

    Large arrays share no page of memory with anything else, because a GPU locks the pages that it copies from.
    """
    arrays: Buffers = {
        name: _zeros(shape, dtype)
        for name, (shape, dtype) in array_specs(observation_space, action_space, num_agents).items()
    }
    arrays["masks"][:] = True
    return arrays


def _zeros(shape: tuple[int, ...], dtype: "np.dtype[np.generic]") -> Array:
    size, page = math.prod(shape) * dtype.itemsize, mmap.PAGESIZE
    if size < page:
        return np.zeros(shape, dtype)
    memory = np.zeros(size + 2 * page, np.uint8)
    start = -memory.ctypes.data % page
    return memory[start : start + size].view(dtype).reshape(shape)


def slice_rows(buf: Mapping[str, Array], start: int, stop: int) -> Buffers:
    """Return views of rows ``start`` to ``stop`` of every array."""
    return {name: array[start:stop] for name, array in buf.items()}


def clear_rows(buf: Mapping[str, Array], rows: slice = slice(None)) -> None:
    """Clear rewards, end flags and masks of ``rows``, as after an episode. Observations and actions are kept."""
    for name in ("rewards", "terminals", "truncations", "masks"):
        buf[name][rows] = 0


class BufferLayout:
    """Layout of several arrays in one block of memory, one after the other, each aligned to a cache line.

    Args:
        specs: Shape and dtype of every array, in the order of the block.

    Attributes:
        nbytes: Size of the block in bytes.
    """

    def __init__(self, specs: ArraySpecs) -> None:
        self._places = {}
        self.nbytes = 0
        for name, (shape, dtype) in specs.items():
            self._places[name] = (self.nbytes, shape, dtype)
            self.nbytes += -(-math.prod(shape) * dtype.itemsize // CACHE_LINE) * CACHE_LINE

    def start(self, name: str) -> int:
        """Return the offset of an array in bytes."""
        return self._places[name][0]

    def arrays(self, memory: "memoryview[int]") -> Buffers:
        """Return views of the arrays in ``memory``. If it is truncated, only those that are completely in it."""
        return {
            name: np.ndarray(shape, dtype, memory, start)
            for name, (start, shape, dtype) in self._places.items()
            if start + math.prod(shape) * dtype.itemsize <= memory.nbytes
        }


@contextmanager
def offer_buffers(buf: BufferSource) -> Iterator[None]:
    """Offer ``buf`` to the first environment created in this context without its own arrays."""
    token = _offered.set(buf)
    try:
        yield
    finally:
        _offered.reset(token)


def set_buffers(env: HasBuffers, buf: BufferSource = None) -> None:
    """Set the arrays of ``env`` to the arrays in ``buf``, without copies.

    Args:
        env: Environment with ``single_observation_space``, ``single_action_space`` and ``num_agents``.
        buf: Dict with ``observations``, ``actions``, ``rewards``, ``terminals``, ``truncations`` and ``masks``, each
            with ``num_agents`` rows, and optionally ``final_observations``. Or a function that returns this dict for
            ``env``, whose spaces are set at this point. None uses the arrays of ``offer_buffers``, or else new ones.

    Raises:
        APIUsageError: An array is missing, has the wrong shape or dtype, or is not C-contiguous and writable.
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
