"""Anonymous memory that a parent and its workers share: the arrays of the batch and the command words.

It has no name in the file system, does not count against the size of /dev/shm, and disappears with
the last process that maps it.
"""

import mmap
import os
from multiprocessing import reduction
from multiprocessing.connection import Connection

import numpy as np

from pufferlib.buffers import Array, Buffers
from pufferlib.vector.plan import Layout, RowSpec

__all__ = [
    "DONE",
    "INFOS",
    "OPERATION",
    "PARENT_PARKED",
    "PARKED",
    "PROGRESS",
    "SEQUENCE",
    "SharedBatch",
]

_LINE = 64  # bytes of a cache line: what two processes write never shares one

# Command words, uint32, per worker: one line that the parent writes, one that the worker writes.
_WORDS_PER_WORKER = 2 * _LINE // 4
OPERATION = 0  # what to do
SEQUENCE = 1  # number of the command; the worker acts when it changes
DONE = 16  # number of the last command that is finished
INFOS = 17  # 1: the infos of that command follow through the pipe
PROGRESS = 18  # which of its environments the worker is in
PARKED = 19  # 1: the worker sleeps, wake it through the pipe
PARENT_PARKED = -_LINE // 4  # 1: the parent sleeps, wake it through your pipe


class SharedBatch:
    """One block of shared memory, laid out for a batch.

    Args:
        spec: What one environment needs.
        num_envs: Environments in the batch.
        num_workers: Processes that share it.
        fd: File of a block that another process made; None makes one. It is closed either way
            once the memory is mapped, unless ``keep_fd`` was asked for.

    Attributes:
        buffers: The arrays of all rows.
        seeds: int64 ``(num_envs,)``: seed of the next reset of each environment, -1 for none.
        words: The command words of all workers, as one flat sequence; see ``base``.
    """

    def __init__(self, spec: RowSpec, num_envs: int, num_workers: int, fd: int | None = None) -> None:
        arrays: Layout = {**spec.layout(num_envs), "seeds": ((num_envs,), np.dtype(np.int64))}
        words_bytes = num_workers * _WORDS_PER_WORKER * 4 + _LINE
        size = words_bytes + sum(_bytes(shape, dtype) for shape, dtype in arrays.values())
        self._fd = os.memfd_create("pufferlib") if fd is None else fd
        try:
            if fd is None:
                os.ftruncate(self._fd, size)
            memory = mmap.mmap(self._fd, size)
        except BaseException:
            self.close_fd()
            raise
        self.words = memoryview(memory)[:words_bytes].cast("I")
        self.buffers: Buffers = {}
        offset = words_bytes
        for name, (shape, dtype) in arrays.items():
            self.buffers[name] = np.ndarray(shape, dtype, memory, offset)
            offset += _bytes(shape, dtype)
        self.seeds: Array = self.buffers.pop("seeds")
        if fd is None:
            self.buffers["masks"][:] = True

    @staticmethod
    def base(worker: int) -> int:
        """Index of the first command word of ``worker``."""
        return worker * _WORDS_PER_WORKER

    def send(self, conn: Connection, pid: int) -> None:
        """Hand the memory to the process ``pid`` at the other end of ``conn``."""
        reduction.send_handle(conn, self._fd, pid)

    @classmethod
    def receive(cls, conn: Connection, spec: RowSpec, num_envs: int, num_workers: int) -> "SharedBatch":
        """Map the memory that ``send`` hands over."""
        batch = cls(spec, num_envs, num_workers, reduction.recv_handle(conn))
        batch.close_fd()
        return batch

    def close_fd(self) -> None:
        """Close the file; the memory stays mapped while anything refers to it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _bytes(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> int:
    size = int(np.prod(shape)) * dtype.itemsize
    return -(-size // _LINE) * _LINE
