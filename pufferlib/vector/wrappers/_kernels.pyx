"""Passes over the rows of a batch: running moments, normalization, and the shift of stacked frames."""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport uint8_t
from libc.string cimport memmove

from pufferlib.errors import APIUsageError

ctypedef fused number:
    float
    double
    uint8_t

cdef tuple KINDS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8))


cdef object as_rows(rows, Py_ssize_t size):
    """``rows`` as the loops take them: the ``size`` numbers of a row side by side, in a dtype that they know."""
    if rows.ndim != 2 or rows.shape[1] != size:
        raise APIUsageError(f"Moments: expected rows (n, {size}), got shape {rows.shape}")
    if rows.dtype not in KINDS:
        return rows.astype(np.float64)
    return rows if size < 2 or rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)


cdef class Moments:
    """Running mean and variance of each element of rows, which are normalized by them.

    Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).

    Args:
        size: Elements of a row.
        epsilon: Added to variances, so that constants do not divide by 0.
        plain: Elements that are left as they are; None for none.

    Attributes:
        mean: float64 ``(size,)``, 0 before the first row.
        var: float64 ``(size,)``, 1 before the first row.
        count: Rows so far.
    """

    cdef readonly object mean, var
    cdef readonly double count
    cdef double epsilon
    cdef object plain
    cdef double[::1] means, vars, centers, scales, sums, squares, shifts

    def __init__(self, Py_ssize_t size, double epsilon, plain=None):
        self.epsilon, self.plain = epsilon, plain
        self.mean, self.var, self.count = np.zeros(size), np.ones(size), 0.0
        self.means, self.vars = self.mean, self.var
        self.centers, self.scales = np.empty(size), np.empty(size)
        self.sums, self.squares, self.shifts = np.empty(size), np.empty(size), np.empty(size)
        self.rescale()

    def load(self, mean, var, double count):
        """Take other moments."""
        self.mean[:], self.var[:], self.count = mean, var, count
        self.rescale()

    def update(self, rows, present=None):
        """Count the rows ``(n, size)`` in, or those of them that are ``present``, bool ``(n,)``."""
        rows = as_rows(rows, self.means.shape[0])
        cdef const uint8_t[::1] mask = None if present is None else present.view(np.uint8)
        if present is not None and len(rows) != len(present):
            raise APIUsageError(f"Moments.update: expected {len(rows)} flags of rows, got {len(present)}")
        if rows.dtype == np.float32:
            self.add[float](rows, mask)
        elif rows.dtype == np.float64:
            self.add[double](rows, mask)
        else:
            self.add[uint8_t](rows, mask)

    cdef int add(self, const number[:, :] rows, const uint8_t[::1] mask) except -1:
        cdef Py_ssize_t i, j, n = 0, size = self.means.shape[0]
        cdef double *sums = &self.sums[0]
        cdef double *squares = &self.squares[0]
        cdef double *shifts = &self.shifts[0]
        cdef const number *row
        cdef double value
        with nogil:
            for j in range(size):
                sums[j] = squares[j] = 0
                shifts[j] = self.means[j]
            for i in range(rows.shape[0]):
                if mask is not None and not mask[i]:
                    continue
                row = &rows[i, 0]
                if n == 0 and self.count == 0:  # no mean yet: numbers far from 0 would lose digits
                    for j in range(size):
                        shifts[j] = row[j]
                n += 1
                for j in range(size):
                    value = row[j] - shifts[j]
                    sums[j] += value
                    squares[j] += value * value
        if n:
            self.combine(n)
        return 0

    cdef void combine(self, double n) noexcept:
        """Join the moments of ``n`` new rows with those of all before."""
        cdef double mean, spread, delta, total = self.count + n
        cdef Py_ssize_t j
        for j in range(self.means.shape[0]):
            mean = self.sums[j] / n
            spread = self.squares[j] - self.sums[j] * mean  # sum of squared distances from the mean
            delta = self.shifts[j] + mean - self.means[j]
            self.means[j] += delta * n / total
            self.vars[j] = (self.vars[j] * self.count + max(spread, 0.0) + delta * delta * self.count * n / total) / total
        self.count = total
        self.rescale()

    cdef void rescale(self) noexcept:
        cdef Py_ssize_t j
        for j in range(self.means.shape[0]):
            self.centers[j] = self.means[j]
            self.scales[j] = 1 / sqrt(self.vars[j] + self.epsilon)
        if self.plain is not None:
            np.asarray(self.centers)[self.plain] = 0
            np.asarray(self.scales)[self.plain] = 1

    @property
    def scale(self):
        """Factor of the first element."""
        return self.scales[0]

    def normalize(self, rows, out, double limit):
        """Write the normalized ``rows`` into ``out``, float32 of the same shape, within plus and minus ``limit``."""
        rows = as_rows(rows, self.means.shape[0])
        if rows.shape != out.shape or (rows.shape[1] > 1 and out.strides[1] != out.itemsize):
            raise APIUsageError(
                f"Moments.normalize: expected out of shape {rows.shape}, its rows contiguous, got shape {out.shape}"
            )
        if rows.dtype == np.float32:
            self.write[float](rows, out, limit)
        elif rows.dtype == np.float64:
            self.write[double](rows, out, limit)
        else:
            self.write[uint8_t](rows, out, limit)

    cdef int write(self, const number[:, :] rows, float[:, :] out, double limit) except -1:
        cdef Py_ssize_t i, j, size = self.means.shape[0]
        cdef const double *centers = &self.centers[0]
        cdef const double *scales = &self.scales[0]
        cdef const number *row
        cdef float *target
        cdef double value
        with nogil:
            for i in range(rows.shape[0]):
                row, target = &rows[i, 0], &out[i, 0]
                for j in range(size):
                    value = (row[j] - centers[j]) * scales[j]
                    value = limit if value > limit else value
                    target[j] = <float>(-limit if value < -limit else value)
        return 0


def shift_rows(uint8_t[:, ::1] rows, Py_ssize_t count):
    """Move the bytes of each row ``count`` places towards its start; the last ``count`` are left as they are."""
    cdef Py_ssize_t i, kept = rows.shape[1] - count
    if count < 0 or kept < 0:
        raise APIUsageError(f"shift_rows: count must be 0 to {rows.shape[1]}, got {count}")
    with nogil:
        for i in range(rows.shape[0]):
            memmove(&rows[i, 0], &rows[i, 0] + count, kept)
