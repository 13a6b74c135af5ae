"""Actions since the last reset with seeds, from which a failure can be stepped again."""

from collections.abc import Sequence

import numpy as np

from pufferlib.buffers import Array

__all__ = ["ActionLog"]

LIMIT_BYTES = 64 << 20
_OVERHEAD_BYTES = 40  # of each batch, for Python


class ActionLog:
    """Keeps the actions of all workers, up to ``LIMIT_BYTES``. What exceeds it is not kept, and the log is empty.

    Args:
        num_workers: Number of workers.
    """

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self.forget(is_complete=False)

    def forget(self, is_complete: bool) -> None:
        """Start anew after a reset. ``is_complete`` if all environments were given seeds."""
        self._is_complete, self._size = is_complete, 0
        self._parts: list[bytes] = []
        self._workers: list[tuple[int, ...]] = []  # of each part; empty where each part has all workers
        self._starts = [0] * self._num_workers

    def restart(self, worker: int) -> None:
        """Start anew for one worker, whose environments were made again with seeds."""
        self._starts[worker] = len(self._parts)

    def append(self, workers: Sequence[int], actions: Array) -> None:
        """Keep the actions of a batch, in the order of its workers."""
        if not self._is_complete:
            return
        data = actions.tobytes()
        if len(workers) != self._num_workers:
            self._workers.append(tuple(workers))
        self._parts.append(data)
        self._dtype, self._shape = actions.dtype, actions.shape[1:]
        self._size += len(data) + _OVERHEAD_BYTES
        if self._size > LIMIT_BYTES:
            self.forget(is_complete=False)

    def actions_of(self, worker: int, rows: slice) -> Array | None:
        """Return the actions of some rows of a worker, ``(steps, rows, ...)``; None if some are not known."""
        if not self._is_complete:
            return None
        found = []
        for index in range(self._starts[worker], len(self._parts)):
            workers = self._workers[index] if self._workers else tuple(range(self._num_workers))
            if worker in workers:
                actions = np.frombuffer(self._parts[index], self._dtype).reshape(len(workers), -1, *self._shape)
                found.append(actions[workers.index(worker)][rows])
        return np.array(found) if found else np.zeros(0, np.int32)
