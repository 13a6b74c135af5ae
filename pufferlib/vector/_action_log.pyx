"""Log of the actions of workers, from which a failure is replayed."""

from libc.string cimport memcpy

from pufferlib.native._arrays cimport ArrayHead, head_of, heads_match_numpy
from pufferlib.native._python cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE

import numpy as np

cdef extern from "Python.h":
    int PyByteArray_Resize(object bytearray, Py_ssize_t size) except -1

LIMIT_BYTES = 64 << 20

cdef bint heads_are_readable = heads_match_numpy()


cdef class ActionLog:
    """Log of the actions of all workers since the last reset, up to ``LIMIT_BYTES``.

    A log that exceeds the limit is cleared and stays incomplete until the next reset.

    Args:
        num_workers: Number of workers.
        workers_per_batch: Number of workers of each batch.
        actions: C-contiguous actions of one batch. Those of all batches have its shape and dtype.
    """

    cdef Py_ssize_t num_workers, workers_per_batch, nbytes, limit
    cdef Py_ssize_t count  # number of batches
    cdef object dtype
    cdef tuple shape  # of the actions of one worker
    cdef bint is_complete
    cdef bytearray data  # actions of all batches
    cdef list workers  # workers of each batch, empty if each batch has all workers
    cdef list starts  # first batch of each worker

    def __init__(self, num_workers, workers_per_batch, actions):
        self.num_workers, self.workers_per_batch = num_workers, workers_per_batch
        self.nbytes, self.dtype, self.limit = actions.nbytes, actions.dtype, LIMIT_BYTES
        self.shape = (len(actions) // workers_per_batch, *actions.shape[1:])
        self.forget(False)

    def forget(self, bint is_complete):
        """Clear the log after a reset. ``is_complete`` if all environments were seeded."""
        self.is_complete, self.data, self.workers = is_complete, bytearray(), []
        self.count = 0
        self.starts = [0] * self.num_workers

    def restart(self, int worker):
        """Clear the log of one worker, whose environments were rebuilt with seeds."""
        self.starts[worker] = self.count

    def append(self, actions, channel):
        """Add the actions of a batch, in the order of the chosen workers of ``channel``."""
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(self.data)
        if not self.is_complete:
            return
        if size + self.nbytes > self.limit:
            self.forget(False)
            return
        PyByteArray_Resize(self.data, size + self.nbytes)
        memcpy(PyByteArray_AS_STRING(self.data) + size, address_of(actions), self.nbytes)
        self.count += 1
        if self.workers_per_batch < self.num_workers:
            self.workers.append(channel.chosen)

    def actions_of(self, int worker, rows):
        """Return the actions of some rows of a worker, ``(steps, rows, ...)``, or None if the log is incomplete."""
        if not self.is_complete:
            return None
        batches = np.ndarray((self.count, self.workers_per_batch, *self.shape), self.dtype, bytes(self.data))
        steps = range(self.starts[worker], self.count)
        if self.workers_per_batch == self.num_workers:
            return batches[steps.start:, worker, rows]
        places = [(step, self.workers[step].index(worker)) for step in steps if worker in self.workers[step]]
        found, positions = np.array(places, np.intp).reshape(-1, 2).T
        return batches[found, positions][:, rows]


cdef inline const char *address_of(array):
    if heads_are_readable:
        return head_of(array).data
    return <const char *><size_t>array.ctypes.data
