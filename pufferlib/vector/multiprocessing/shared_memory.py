"""Anonymous memory shared by a parent and its workers, for the arrays of the batch and for signals.

It has no name in the file system, does not count against the size of /dev/shm, and disappears with
the last process that maps it.
"""

import mmap
import os
import tempfile
from multiprocessing import reduction
from multiprocessing.connection import Connection

import numpy as np

from pufferlib.buffers import Array, ArraySpecs, BufferLayout, Buffers
from pufferlib.vector.multiprocessing._channel import channel_bytes
from pufferlib.vector.specs import RowSpec

__all__ = ["Mailbox", "SharedBatch"]

MAIL_BYTES = 4096  # size of a worker's mailbox including its first word, enough for infos of dozens of episodes


class Mailbox:
    """Shared memory for one short message to or from a worker. Longer messages use the pipe at ten times the cost.

    The receiver checks the mailbox after a command, or after the end of a command.

    Args:
        memory: Shared memory, uint8. Empty if zeroed.
    """

    def __init__(self, memory: Array) -> None:
        view = memory.data
        self._size, self._room = view[:4].cast("I"), view[4:]

    def put(self, message: bytes) -> bool:
        """Store ``message``. Return False if it is too long."""
        size = len(message)
        if size > len(self._room):
            return False
        self._room[:size] = message
        self._size[0] = size
        return True

    def take(self) -> "memoryview | None":
        """Return the message and clear the mailbox, or None. The next message overwrites the returned memory."""
        size, self._size[0] = self._size[0], 0
        return self._room[:size] if size else None


class SharedBatch:
    """Block of shared memory for a batch.

    Args:
        row_spec: Spaces and number of agents of one environment.
        num_envs: Number of environments in the batch.
        num_workers: Number of worker processes.
        more: Shape and dtype of additional arrays, by name.
        fd: File descriptor of an existing block. None creates a new one, which only this user may open.

    Attributes:
        buffers: Arrays of all rows.
        seeds: Seed of the next reset of each environment, int64 ``(num_envs,)``. -1 for none.
        notify: Whether to notify the environments of each worker before their next step or reset, bool
            ``(num_workers,)``.
        mailboxes: Mailboxes, one for each worker.
        more: Additional arrays.
        memory: Whole block, starting with the signals of the workers.
    """

    def __init__(
        self,
        row_spec: RowSpec,
        num_envs: int,
        num_workers: int,
        more: ArraySpecs | None = None,
        fd: int | None = None,
    ) -> None:
        more = more or {}
        words = {
            "seeds": ((num_envs,), np.dtype(np.int64)),
            "notify": ((num_workers,), np.dtype(bool)),
            "mail": ((num_workers, MAIL_BYTES), np.dtype(np.uint8)),
        }
        layout = BufferLayout({**row_spec.arrays(num_envs), **words, **more})
        offset = channel_bytes(num_workers)
        size = offset + layout.nbytes
        self._fd = _unnamed_file() if fd is None else fd
        try:
            if fd is None:
                os.fchmod(self._fd, 0o600)
                os.ftruncate(self._fd, size)
            self.memory = mmap.mmap(self._fd, size)
        except BaseException:
            self.close_fd()
            raise
        self.buffers = layout.arrays(memoryview(self.memory)[offset:])
        self.seeds: Array = self.buffers.pop("seeds")
        self.notify: Array = self.buffers.pop("notify")
        self.mailboxes = [Mailbox(memory) for memory in self.buffers.pop("mail")]
        self.more: Buffers = {name: self.buffers.pop(name) for name in more}
        if fd is None:
            self.buffers["masks"][:] = True

    def send(self, conn: Connection, pid: int) -> None:
        """Send the memory to the process ``pid`` at the other end of ``conn``."""
        reduction.send_handle(conn, self._fd, pid)

    @classmethod
    def receive(
        cls, conn: Connection, row_spec: RowSpec, num_envs: int, num_workers: int, more: ArraySpecs
    ) -> "SharedBatch":
        """Map the memory that ``send`` sends."""
        batch = cls(row_spec, num_envs, num_workers, more, reduction.recv_handle(conn))
        batch.close_fd()
        return batch

    def close_fd(self) -> None:
        """Close the file. The memory stays mapped while anything refers to it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _unnamed_file() -> int:
    """Return the descriptor of a new file without a name. macOS has none in memory, so there it is one on the disk."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pufferlib")
    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())
