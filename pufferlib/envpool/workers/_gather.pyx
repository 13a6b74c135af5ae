"""Arrays of batches, gathered from shared arrays of all environments."""

from libc.stdint cimport int32_t
from libc.string cimport memcpy

from pufferlib.envpool._fresh_arrays cimport FreshArrays
from pufferlib.native._arrays cimport head_of

import numpy as np


cdef class BatchGather:
    """Gathers the rows of some environments in one call, because caches are cold after waiting for workers.

    Args:
        sources: Shared, C-contiguous arrays ``(num_envs * rows, *row_shape)``. The number of rows may differ.
        num_envs: Number of environments.
        copies: Whether batches are new arrays. If not, the next batch overwrites them.
    """

    cdef list _sources, _fresh, _kept
    cdef Py_ssize_t _num_envs
    cdef bint _copies

    def __init__(self, sources, Py_ssize_t num_envs, bint copies):
        self._sources, self._num_envs, self._copies = list(sources), num_envs, copies
        for source in self._sources:
            if not source.flags.c_contiguous or len(source) % num_envs:
                raise ValueError(f"expected contiguous rows of {num_envs} environments, got shape {source.shape}")
        self._fresh = [FreshArrays(source.shape[1:], source.dtype) for source in self._sources]
        self._kept = [] if copies else [np.empty_like(source) for source in self._sources]

    def gather(self, const int32_t[::1] envs):
        """Return the rows of the environments ``envs`` of each source, in the order of ``envs``."""
        cdef Py_ssize_t count = envs.shape[0], column, rows, env_bytes, begin, end
        cdef bint is_all = count == self._num_envs and run_end(envs, 0) == count and envs[0] == 0
        cdef list found = []
        for column in range(len(self._sources)):
            source = self._sources[column]
            if is_all and not self._copies:
                found.append(source)
                continue
            rows = head_of(source).shape[0] // self._num_envs
            if self._copies:
                batch = <object>(<FreshArrays>self._fresh[column]).take(count * rows)
            else:
                batch = self._kept[column][:count * rows]
            env_bytes, begin = source.nbytes // self._num_envs, 0
            while begin < count:
                end = run_end(envs, begin)
                memcpy(head_of(batch).data + begin * env_bytes, head_of(source).data + envs[begin] * env_bytes,
                       (end - begin) * env_bytes)
                begin = end
            found.append(batch)
        return found


cdef inline Py_ssize_t run_end(const int32_t[::1] envs, Py_ssize_t begin) noexcept:
    """Return the end of the run of consecutive environments that starts at ``begin``."""
    cdef Py_ssize_t end = begin + 1
    while end < envs.shape[0] and envs[end] == envs[end - 1] + 1:
        end += 1
    return end


def scatter(rows, target, Py_ssize_t num_envs, const int32_t[::1] envs):
    """Write the rows of the environments ``envs`` to their places in the array of all environments.

    Args:
        rows: Rows in the order of ``envs``, C-contiguous, with the dtype of ``target``.
        target: C-contiguous array of all environments.
        num_envs: Number of environments.
        envs: Environments to write.
    """
    cdef Py_ssize_t env_bytes = target.nbytes // num_envs, begin = 0, end
    if rows.dtype != target.dtype or rows.nbytes != env_bytes * envs.shape[0] or not rows.flags.c_contiguous:
        raise ValueError(f"expected contiguous rows of {envs.shape[0]} environments, got shape {rows.shape}")
    while begin < envs.shape[0]:
        end = run_end(envs, begin)
        memcpy(head_of(target).data + envs[begin] * env_bytes, head_of(rows).data + begin * env_bytes,
               (end - begin) * env_bytes)
        begin = end
