"""Compiled loops over the rows of a batch: episode flags, running moments, normalization and frame stacks."""

import numpy as np

from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pufferlib.errors import APIUsageError

ctypedef fused number:
    float
    double
    uint8_t

ctypedef fused sum_or_count:
    double
    int64_t

cdef tuple KINDS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8))


cdef object as_rows(rows, Py_ssize_t size):
    """Return ``rows`` with ``size`` contiguous elements per row, in a dtype that the loops support."""
    if rows.ndim != 2 or rows.shape[1] != size:
        raise APIUsageError(f"Moments: expected rows (n, {size}), got shape {rows.shape}")
    if rows.dtype not in KINDS:
        return rows.astype(np.float64)
    return rows if size < 2 or rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)


cdef class Moments:
    """Running mean and variance of each element of a row, and normalization by them.

    Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).

    Args:
        size: Number of elements of a row.
        epsilon: Constant added to variances, which avoids a division by 0 for constant elements.
        plain: Elements that are not normalized, as a slice. None for none.

    Attributes:
        mean: Mean of each element, float64 ``(size,)``. 0 before the first row.
        var: Variance of each element, float64 ``(size,)``. 1 before the first row.
        count: Number of rows so far.
    """

    cdef readonly object mean, var
    cdef readonly double count
    cdef double epsilon
    cdef object plain
    cdef double[::1] means, vars, centers, scales, sums, squares, shifts
    cdef uint8_t[::1] has_moments  # whether an element was finite in some update, or was loaded

    def __init__(self, Py_ssize_t size, double epsilon, plain=None):
        self.epsilon, self.plain = epsilon, plain
        self.mean, self.var, self.count = np.zeros(size), np.ones(size), 0.0
        self.means, self.vars = self.mean, self.var
        self.has_moments = np.zeros(size, np.uint8)
        self.centers, self.scales = np.empty(size), np.empty(size)
        self.sums, self.squares, self.shifts = np.empty(size), np.empty(size), np.empty(size)
        self.rescale()

    def load(self, mean, var, double count):
        """Replace the moments."""
        self.mean[:], self.var[:], self.count = mean, var, count
        self.has_moments[:] = count > 0
        self.rescale()

    def update(self, rows, present=None):
        """Add the rows ``(n, size)`` to the moments, or only those that are ``present``, bool ``(n,)``."""
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
                if n == 0 and self.count == 0:  # no mean yet: unshifted values far from 0 would lose precision
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
        """Combine the moments of ``n`` new rows with the existing ones.

        An element that is infinite or NaN in one of the rows keeps its moments, which would be lost for ever.
        """
        cdef double mean, spread, delta, count, total
        cdef Py_ssize_t j
        for j in range(self.means.shape[0]):
            if not isfinite(self.squares[j]):
                continue
            count = self.count if self.has_moments[j] else 0
            total = count + n
            self.has_moments[j] = True
            mean = self.sums[j] / n
            spread = self.squares[j] - self.sums[j] * mean  # sum of squared distances from the mean
            delta = self.shifts[j] + mean - self.means[j]
            self.means[j] += delta * n / total
            self.vars[j] = (self.vars[j] * count + max(spread, 0.0) + delta * delta * count * n / total) / total
        self.count += n
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
        """Scale factor of the first element."""
        return self.scales[0]

    def normalize(self, rows, out, double limit):
        """Write the normalized ``rows`` to ``out``, float32 of the same shape, clipped to plus and minus ``limit``."""
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


cdef class EpisodeFlags:
    """Episode state of all agents, and the resulting flags for each row of a batch.

    Args:
        num_agents: Number of agents.
        num_rows: Number of rows of a batch.
        same_step: Whether an episode starts in the step in which the previous one ends.

    Attributes:
        acted: Rows whose step counts, bool ``(num_rows,)``. False if the row was reset or its agent was absent.
        ended: Rows in which an episode ended, bool ``(num_rows,)``.
        begins: Rows with the first observation of an episode, bool ``(num_rows,)``.
        all_acted: Whether ``acted`` is True in all rows.
        any_ended: Whether ``ended`` is True in any row.
        any_begins: Whether ``begins`` is True in any row.
        idle: Agents that were absent at their latest observation, or whose episode was over, uint8 ``(num_agents,)``.
    """

    cdef readonly object acted, ended, begins, idle
    cdef readonly bint all_acted, any_ended, any_begins
    cdef bint same_step
    cdef uint8_t[::1] new, idle_agents, acted_rows, ended_rows, begins_rows

    def __init__(self, Py_ssize_t num_agents, Py_ssize_t num_rows, bint same_step):
        self.same_step = same_step
        self.acted, self.ended, self.begins = (np.zeros(num_rows, bool) for _ in range(3))
        self.acted_rows, self.ended_rows, self.begins_rows = (
            flags.view(np.uint8) for flags in (self.acted, self.ended, self.begins)
        )
        self.new = np.ones(num_agents, np.uint8)  # no observation since the last reset
        self.idle = np.zeros(num_agents, np.uint8)
        self.idle_agents = self.idle

    def reset(self):
        """Mark the next observation of every agent as the first of an episode."""
        self.new[:] = 1

    def note(self, const int64_t[::1] agent_ids, terminals, truncations, masks):
        """Update the flags for a received batch."""
        cdef const uint8_t[::1] terminal = terminals.view(np.uint8)
        cdef const uint8_t[::1] truncation = truncations.view(np.uint8)
        cdef const uint8_t[::1] mask = masks.view(np.uint8)
        self.check(agent_ids, min(terminal.shape[0], truncation.shape[0], mask.shape[0]))
        # Local pointers, because after each byte is written the compiler would reload all object fields.
        cdef uint8_t *news = &self.new[0]
        cdef uint8_t *idles = &self.idle_agents[0]
        cdef uint8_t *acted_rows = &self.acted_rows[0]
        cdef uint8_t *ended_rows = &self.ended_rows[0]
        cdef uint8_t *begins_rows = &self.begins_rows[0]
        cdef uint8_t new, idle, ended, acted, begins, all_acted = 1, any_ended = 0, any_begins = 0
        cdef uint8_t at_once = self.same_step, later = not self.same_step
        cdef Py_ssize_t row, agent, num_rows = agent_ids.shape[0]
        for row in range(num_rows):
            agent = agent_ids[row]
            new, idle = news[agent], idles[agent]
            ended = (terminal[row] | truncation[row]) & ~new  # flags of a new row are older than its reset
            acted = 1 & ~(new | idle)
            begins = ((idle | (ended & at_once)) & mask[row]) | new
            acted_rows[row], ended_rows[row], begins_rows[row] = acted, ended, begins
            news[agent], idles[agent] = 0, (1 & ~mask[row]) | (ended & later)
            all_acted &= acted
            any_ended |= ended
            any_begins |= begins
        self.all_acted, self.any_ended, self.any_begins = all_acted, any_ended, any_begins

    def note_reset(self, const int64_t[::1] agent_ids, masks, agents):
        """Update the flags for a batch in which only ``agents`` were reset, and no other agent changed."""
        cdef const uint8_t[::1] mask = masks.view(np.uint8)
        self.check(agent_ids, mask.shape[0])
        cdef Py_ssize_t row, agent
        np.asarray(self.new)[agents] = 1
        for row in range(agent_ids.shape[0]):
            agent = agent_ids[row]
            self.acted_rows[row] = self.ended_rows[row] = 0
            self.begins_rows[row] = self.new[agent]
            if self.new[agent]:
                self.idle_agents[agent] = 1 - mask[row]
            self.new[agent] = 0
        self.all_acted, self.any_ended, self.any_begins = False, False, len(agents) > 0

    cdef int check(self, const int64_t[::1] agent_ids, Py_ssize_t num_flags) except -1:
        cdef Py_ssize_t row, num_rows = agent_ids.shape[0]
        if num_rows != self.acted_rows.shape[0] or num_flags != num_rows:
            raise APIUsageError(f"EpisodeFlags: expected batches of {len(self.acted)} rows, got {num_rows} and {num_flags}")
        for row in range(num_rows):
            if not 0 <= agent_ids[row] < self.new.shape[0]:
                raise APIUsageError(f"EpisodeFlags: expected agents below {len(self.new)}, got {agent_ids[row]}")
        return 0


def add_rewards(double[::1] returns, const float[::1] rewards, double gamma, acted=None):
    """Discount ``returns`` by ``gamma`` and add ``rewards``, in all rows or only in those that ``acted``."""
    cdef const uint8_t[::1] mask = None if acted is None else acted.view(np.uint8)
    cdef Py_ssize_t row
    if rewards.shape[0] != returns.shape[0] or (mask is not None and mask.shape[0] != returns.shape[0]):
        raise APIUsageError(f"add_rewards: expected {len(returns)} rows, got {len(rewards)}")
    for row in range(returns.shape[0]):
        if mask is None or mask[row]:
            returns[row] = returns[row] * gamma + rewards[row]


def add_squares(double[::1] sums, const float[::1] rewards, acted=None):
    """Add the squares of the rewards that are not 0, and their number, to the two ``sums``."""
    cdef const uint8_t[::1] mask = None if acted is None else acted.view(np.uint8)
    cdef Py_ssize_t row
    if sums.shape[0] != 2 or (mask is not None and mask.shape[0] != rewards.shape[0]):
        raise APIUsageError(f"add_squares: expected 2 sums and {len(rewards)} flags, got {len(sums)} sums")
    for row in range(rewards.shape[0]):
        if rewards[row] != 0 and (mask is None or mask[row]):
            sums[0] += <double>rewards[row] * rewards[row]
            sums[1] += 1


def clear_episodes(sum_or_count[::1] values, ended, begins):
    """Set ``values`` to 0 in rows where an episode ``ended`` or ``begins``."""
    cdef const uint8_t[::1] over = ended.view(np.uint8)
    cdef const uint8_t[::1] first = begins.view(np.uint8)
    cdef Py_ssize_t row
    if over.shape[0] != values.shape[0] or first.shape[0] != values.shape[0]:
        raise APIUsageError(f"clear_episodes: expected {len(values)} rows, got {len(ended)} and {len(begins)}")
    for row in range(values.shape[0]):
        if over[row] | first[row]:
            values[row] = 0


def scale_rewards(const float[::1] rewards, float[::1] out, double scale, double limit, acted=None):
    """Write ``rewards`` times ``scale``, clipped to ``limit``, to ``out``. Rows that did not act become 0."""
    cdef const uint8_t[::1] mask = None if acted is None else acted.view(np.uint8)
    cdef Py_ssize_t row
    cdef double value
    if rewards.shape[0] != out.shape[0] or (mask is not None and mask.shape[0] != out.shape[0]):
        raise APIUsageError(f"scale_rewards: expected {len(out)} rows, got {len(rewards)}")
    for row in range(out.shape[0]):
        value = rewards[row] * scale if mask is None or mask[row] else 0
        out[row] = <float>min(max(value, -limit), limit)


cdef uint64_t hash_of(const uint8_t *row, Py_ssize_t size) noexcept nogil:
    """Return a hash of a row. The multiplications and shifts are those of splitmix64 (Steele et al., 2014).

    Four words are mixed side by side, because each step of one chain waits for the step before it.
    """
    cdef uint64_t[4] words
    cdef uint64_t[4] lanes
    cdef Py_ssize_t at = 0, lane
    for lane in range(4):
        lanes[lane] = <uint64_t>(size + lane)
    while at < size:
        if size - at < 32:
            words[0] = words[1] = words[2] = words[3] = 0
        memcpy(words, row + at, min(size - at, 32))
        for lane in range(4):
            lanes[lane] = (lanes[lane] ^ words[lane]) * 0xBF58476D1CE4E5B9ULL
            lanes[lane] ^= lanes[lane] >> 31
        at += 32
    cdef uint64_t found = 0
    for lane in range(4):
        found = (found ^ lanes[lane]) * 0x94D049BB133111EBULL
        found ^= found >> 32
    return found


def add_novelty(
    const uint8_t[:, ::1] rows,
    const int64_t[::1] agent_ids,
    begins,
    acted,
    uint32_t[::1] counts,
    uint32_t[::1] episodes,
    uint32_t[:, ::1] seen,
    const float[::1] rewards,
    float[::1] out,
    double coef,
    bint counting,
):
    """Write ``rewards`` to ``out``, with a bonus for observations that are new to an agent in its episode.

    Args:
        rows: Observations, bytes ``(rows, size)``.
        agent_ids: Agent of each row.
        begins: Rows with the first observation of an episode, bool ``(rows,)``. They get no bonus.
        acted: Rows whose step counts, bool ``(rows,)``, or None for all.
        counts: Counts of all observations, by their hash. The length is a power of 2.
        episodes: Number of episodes of each agent.
        seen: Observations of the running episode, ``(agents, slots)``. The number of slots is a power of 2.
        rewards: Rewards ``(rows,)``.
        out: Array for the sums ``(rows,)``.
        coef: Bonus for an observation whose count is 1. It falls with the square root of the count.
        counting: Whether ``counts`` are updated.

    Returns:
        Sum of the bonuses.
    """
    cdef const uint8_t[::1] first = begins.view(np.uint8)
    cdef const uint8_t[::1] mask = None if acted is None else acted.view(np.uint8)
    cdef Py_ssize_t row, agent, place, slot, size = rows.shape[1]
    cdef uint64_t found
    cdef uint32_t mark, count
    cdef double bonus, total = 0
    if not rows.shape[0] == agent_ids.shape[0] == first.shape[0] == rewards.shape[0] == out.shape[0]:
        raise APIUsageError(f"add_novelty: expected {len(rows)} rewards, got {len(rewards)} and space for {len(out)}")
    for row in range(agent_ids.shape[0]):
        if not 0 <= agent_ids[row] < min(episodes.shape[0], seen.shape[0]):
            raise APIUsageError(f"add_novelty: expected agents below {len(seen)}, got {agent_ids[row]}")
    with nogil:
        for row in range(rows.shape[0]):
            out[row] = rewards[row]
            if not first[row] and mask is not None and not mask[row]:
                continue
            agent = agent_ids[row]
            if first[row]:
                episodes[agent] += 1
            found = hash_of(&rows[row, 0], size) if size else 0
            place, slot = found & (counts.shape[0] - 1), (found >> 24) & (seen.shape[1] - 1)
            # The number of the episode is part of the mark, so that marks of earlier episodes need not be cleared.
            mark = <uint32_t>(found >> 32) ^ (episodes[agent] * <uint32_t>0x9E3779B9)
            count = counts[place]
            if counting and count + 1 > count:
                count += 1
                counts[place] = count
            if not first[row] and seen[agent, slot] != mark:
                bonus = coef / sqrt(max(count, 1))
                out[row] += <float>bonus
                total += bonus
            seen[agent, slot] = mark
    return total


def push_frames(uint8_t[:, ::1] stacks, const uint8_t[:, ::1] frames, Py_ssize_t chunk, begins, bint only_begins):
    """Replace the oldest frame of each stack with a new one. If an episode ``begins``, fill the stack with it.

    Args:
        stacks: Stacks of k frames, bytes ``(rows, k * size)``, interleaved in chunks, oldest first.
        frames: New frames, bytes ``(rows, size)``.
        chunk: Number of contiguous bytes of one frame in a stack. Equal to ``size`` if frames are not interleaved.
        begins: Rows in which an episode starts, bool ``(rows,)``.
        only_begins: Whether to leave all other stacks unchanged.
    """
    cdef const uint8_t[::1] first = begins.view(np.uint8)
    cdef Py_ssize_t row, place, copy, size = frames.shape[1], width = stacks.shape[1]
    cdef Py_ssize_t rows = stacks.shape[0]
    if frames.shape[0] != rows or first.shape[0] != rows or (size and (width % size or chunk < 1 or size % chunk)):
        raise APIUsageError(
            f"push_frames: expected k frames in chunks of {chunk} bytes, got {rows} stacks of {width} bytes and "
            f"{frames.shape[0]} frames of {size}"
        )
    if not size or not rows:
        return
    cdef Py_ssize_t count = width // size
    cdef uint8_t *stack
    cdef const uint8_t *frame
    with nogil:
        for row in range(rows):
            stack, frame = &stacks[row, 0], &frames[row, 0]
            if first[row]:
                for place in range(size // chunk):
                    for copy in range(count):
                        memcpy(stack + (place * count + copy) * chunk, frame + place * chunk, chunk)
            elif not only_begins:
                memmove(stack, stack + chunk, width - chunk)
                for place in range(size // chunk):
                    memcpy(stack + (place * count + count - 1) * chunk, frame + place * chunk, chunk)
