"""Actions since the last seeded reset, with which a failure can be replayed."""

from collections.abc import Sequence

import numpy as np

from pufferlib.buffers import Array

__all__ = ["ActionLog"]

LIMIT_BYTES = 64 << 20
_OVERHEAD_BYTES = 40  # of the Python objects of each batch


class ActionLog:
    """Log of the actions of all workers, up to ``LIMIT_BYTES``. A log that exceeds the limit is cleared.

    Args:
        num_workers: Number of workers.
    """

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self.forget(is_complete=False)

    def forget(self, is_complete: bool) -> None:
        """Clear the log after a reset. ``is_complete`` if all environments were seeded."""
        self._is_complete, self._size = is_complete, 0
        self._parts: list[bytes] = []
        self._workers: list[tuple[int, ...]] = []  # workers of each batch, empty if each batch has all workers
        self._starts = [0] * self._num_workers

    def restart(self, worker: int) -> None:
        """Clear the log of one worker, whose environments were rebuilt with seeds."""
        self._starts[worker] = len(self._parts)

    def append(self, workers: Sequence[int], actions: Array) -> None:
        """Add the actions of a batch, in the order of its workers."""
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
        """Return the actions of some rows of a worker, ``(steps, rows, ...)``, or None if the log is incomplete."""
        if not self._is_complete:
            return None
        found = []
        for index in range(self._starts[worker], len(self._parts)):
            workers = self._workers[index] if self._workers else tuple(range(self._num_workers))
            if worker in workers:
                actions = np.frombuffer(self._parts[index], self._dtype).reshape(len(workers), -1, *self._shape)
                found.append(actions[workers.index(worker)][rows])
        return np.array(found) if found else np.zeros(0, np.int32)
