"""Compiled CPU loops for snake's policy: update of its memory, and computation of its inputs.

Cells in view are int8 ``(..., side * side)``, with the codes of snake.h. The memory consists of ``trail``, uint8
``(..., SIDE * SIDE)``, ``length``, int32 ``(...)``, and ``eats``, uint8 ``(..., MOVES)``. See ``Snake``.

All functions raise ValueError if an array has the wrong shape or dtype.
"""

from libc.math cimport sqrt
from libc.stdint cimport int8_t, int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

cpdef enum:
    FOOD = 1
    CORPSE = 2
    WALL = 3  # this and higher codes block the way
    OWN_BODY = 4
    HEAD = 7
    MOVES = 4
    REACH = 10  # radius of the remembered area in cells, equal to the maximum of ``vision``
    SIDE = 21  # 2 * REACH + 1
    TIMES = 4
    STEPS = 4  # steps between consecutive entries of DUE
    SIZES = 7
    PADDED = 23  # SIDE plus one cell at both ends

cdef int[MOVES] down = [-1, 1, 0, 0]
cdef int[MOVES] right = [0, 0, -1, 1]
cdef int[TIMES] due_times = [1, 4, 8, 12]
cdef int[SIZES] sizes = [0, 2, 6, 12, 24, 48, 96]

DIRECTIONS = tuple(zip(down, right))
DUE = tuple(due_times)
AREAS = tuple(sizes)


def remember(
    const int8_t[:, :, ::1] seen,
    const uint8_t[:, ::1] starts,
    const uint8_t[:, ::1] trail,
    const int32_t[::1] length,
    const uint8_t[:, ::1] eats,
    uint8_t[:, :, ::1] trails,
    int32_t[:, ::1] lengths,
    uint8_t[:, :, ::1] eats_after,
):
    """Compute the memory after each of several steps, ``(steps, rows, ...)``, from the memory before the first.

    ``starts`` is 1 where an episode starts with the step, or None if none does.
    """
    cdef Py_ssize_t steps = seen.shape[0], rows = seen.shape[1], step, row
    cdef int side = side_of(seen.shape[2])
    cdef const uint8_t *trail_before
    cdef const uint8_t *eats_before
    cdef int32_t length_before
    fits = (
        (starts is None or (starts.shape[0] == steps and starts.shape[1] == rows))
        and trail.shape[0] == length.shape[0] == eats.shape[0] == rows
        and trails.shape[0] == lengths.shape[0] == eats_after.shape[0] == steps
        and trails.shape[1] == lengths.shape[1] == eats_after.shape[1] == rows
        and trail.shape[1] == trails.shape[2] == SIDE * SIDE
        and eats.shape[1] == eats_after.shape[2] == MOVES
    )
    if not fits:
        raise ValueError(f"snake's memory: expected all arrays for {steps} steps of {rows} rows, got other shapes")
    cdef bint has_starts = starts is not None
    if not rows:
        return
    with nogil:
        for row in range(rows):
            trail_before, length_before, eats_before = &trail[row, 0], length[row], &eats[row, 0]
            for step in range(steps):
                remember_one(
                    &seen[step, row, 0], side, has_starts and starts[step, row], trail_before, length_before, eats_before,
                    &trails[step, row, 0], &lengths[step, row], &eats_after[step, row, 0],
                )
                trail_before, length_before = &trails[step, row, 0], lengths[step, row]
                eats_before = &eats_after[step, row, 0]


def features(
    const int8_t[:, ::1] seen, const uint8_t[:, ::1] trail, const int32_t[::1] length, float[:, ::1] inputs
):
    """Compute the network's inputs from the cells in view and the memory after the step."""
    cdef Py_ssize_t rows = seen.shape[0], row
    cdef int side = side_of(seen.shape[1])
    cdef Py_ssize_t size = 6 * side * side + MOVES * (1 + SIZES) + 1
    if not (
        trail.shape[0] == length.shape[0] == inputs.shape[0] == rows
        and trail.shape[1] == SIDE * SIDE
        and inputs.shape[1] == size
    ):
        raise ValueError(f"snake's inputs: expected all arrays for {rows} rows, {size} inputs each, got other shapes")
    if not rows:
        return
    with nogil:
        for row in range(rows):
            features_of_one(&seen[row, 0], side, &trail[row, 0], length[row], &inputs[row, 0])


cdef int side_of(Py_ssize_t cells) except -1:
    """Return the side length of the view."""
    cdef int side = <int>(sqrt(<double>cells) + 0.5)
    if side * side != cells or side % 2 == 0 or side > SIDE:
        raise ValueError(f"snake's memory: expected a square view of at most {SIDE} x {SIDE} cells, got {cells} cells")
    return side


cdef void remember_one(
    const int8_t *seen,
    int side,
    bint begins,
    const uint8_t *trail,
    int32_t length,
    const uint8_t *eats,
    uint8_t *trail_after,
    int32_t *length_after,
    uint8_t *eats_after,
) noexcept nogil:
    cdef uint8_t[PADDED][PADDED] around  # the trail, one step later
    cdef int margin = REACH - side // 2, middle = side * side // 2
    cdef int row, column, move, taken = 0, candidates = 0, best = -1, fit, least = 1, most = 1 << 15
    cdef bint[MOVES] comes_from
    cdef uint8_t way
    cdef int8_t cell
    memset(around, 0, sizeof(around))
    if begins:
        length = 0
    else:
        for row in range(SIDE):
            for column in range(SIDE):
                way = trail[row * SIDE + column]
                around[row + 1][column + 1] = way + (way > 0)  # wraps to 0 (forgotten) after 255 steps
    around[REACH + 1][REACH + 1] = 1
    for move in range(MOVES):
        comes_from[move] = seen[middle - down[move] * side - right[move]] == OWN_BODY
        candidates += comes_from[move]
    # The snake came from a neighboring cell that now holds its own body. If there are several such cells, or none,
    # choose the move for which the remembered body matches the view best.
    for move in range(MOVES):
        if candidates and not comes_from[move]:
            continue
        fit = 0
        if candidates != 1:
            for row in range(side):
                for column in range(side):
                    way = around[row + margin + down[move] + 1][column + margin + right[move] + 1]
                    fit += (way > 0 and way < length) == (seen[row * side + column] == OWN_BODY)
        if fit > best:
            best, taken = fit, move
    for row in range(SIDE):
        memcpy(&trail_after[row * SIDE], &around[row + down[taken] + 1][right[taken] + 1], SIDE)
    length = max(length, 1)
    if comes_from[taken] and not begins and eats[taken]:
        length += 1
    # Correct the length: visible body cells on the trail are within it, other cells of the trail are beyond it.
    for row in range(side):
        for column in range(side):
            way = trail_after[(row + margin) * SIDE + column + margin]
            if seen[row * side + column] == OWN_BODY:
                least = max(least, way + 1)
            elif way:
                most = min(most, <int>way)
    length_after[0] = max(min(length, most), least)
    for move in range(MOVES):
        cell = seen[middle + down[move] * side + right[move]]
        eats_after[move] = cell == FOOD or cell == CORPSE


cdef void features_of_one(
    const int8_t *seen, int side, const uint8_t *trail, int32_t length, float *inputs
) noexcept nogil:
    cdef uint32_t[SIDE] free
    cdef uint32_t[TIMES * SIDE] due  # cells that become free by each of the times
    cdef int32_t[MOVES] areas
    cdef int margin = REACH - side // 2, cells = side * side
    cdef int row, column, i, left, time, move, size
    cdef uint32_t bit
    cdef int8_t cell
    memset(due, 0, sizeof(due))
    for row in range(SIDE):
        free[row] = (1 << SIDE) - 1
    for i in range(cells):
        cell = seen[i]
        inputs[i] = cell >= WALL
        inputs[cells + i] = cell == FOOD or cell == CORPSE
        inputs[2 * cells + i] = cell == OWN_BODY
        inputs[3 * cells + i] = cell == HEAD
        inputs[4 * cells + i] = cell == WALL
        inputs[5 * cells + i] = 0
    for row in range(side):
        for column in range(side):
            if seen[row * side + column] >= WALL:
                free[row + margin] &= ~(<uint32_t>1 << (column + margin))
    free[REACH] &= ~(<uint32_t>1 << REACH)
    for row in range(SIDE):
        for column in range(SIDE):
            left = length - trail[row * SIDE + column]
            if trail[row * SIDE + column] == 0 or left <= 0:
                continue
            bit = <uint32_t>1 << column
            if margin <= row < margin + side and margin <= column < margin + side:
                if free[row] & bit:
                    continue
                inputs[5 * cells + (row - margin) * side + column - margin] = min(left, 127) * (1.0 / 64)
            free[row] &= ~bit
            for time in range(TIMES):
                if left < due_times[time]:
                    due[time * SIDE + row] |= bit
    reach(free, due, areas)
    inputs += 6 * cells
    for move in range(MOVES):
        inputs[move] = areas[move] * <float>0.01
        for size in range(SIZES):
            inputs[(1 + size) * MOVES + move] = areas[move] > sizes[size]
    inputs[(1 + SIZES) * MOVES] = length * <float>0.01


cdef void reach(const uint32_t *free, const uint32_t *due, int32_t *areas) noexcept nogil:
    """Count the cells that each move can reach within TIMES * STEPS steps.

    A cell counts as free once the snake's own body has left it. Each row of cells is stored as the bits of a number,
    and the four moves lie side by side in memory.
    """
    cdef uint32_t[PADDED * MOVES] reached, wider
    cdef uint32_t[SIDE * MOVES] can_be
    cdef int row, i, time, step, move
    memset(reached, 0, sizeof(reached))
    memset(wider, 0, sizeof(wider))
    for move in range(MOVES):
        row = REACH + down[move]
        reached[(1 + row) * MOVES + move] = (<uint32_t>1 << (REACH + right[move])) & free[row]
    for time in range(TIMES):
        for row in range(SIDE):
            for move in range(MOVES):
                can_be[row * MOVES + move] = free[row] | due[time * SIDE + row]
        for step in range(STEPS // 2):
            spread(reached, can_be, wider)
            spread(wider, can_be, reached)
    for move in range(MOVES):
        areas[move] = 0
    for row in range(SIDE):
        for move in range(MOVES):
            areas[move] += count_bits(reached[(1 + row) * MOVES + move])


cdef inline void spread(const uint32_t *reached, const uint32_t *can_be, uint32_t *wider) noexcept nogil:
    """Extend the reached cells by one step in all directions."""
    cdef int i
    cdef const uint32_t *here = reached + MOVES
    for i in range(SIDE * MOVES):
        wider[MOVES + i] = (here[i] | here[i] << 1 | here[i] >> 1 | reached[i] | here[i + MOVES]) & can_be[i]


cdef inline int32_t count_bits(uint32_t number) noexcept nogil:
    number -= number >> 1 & 0x55555555
    number = (number & 0x33333333) + (number >> 2 & 0x33333333)
    number = number + (number >> 4) & 0x0F0F0F0F
    return <int32_t>(number * 0x01010101 >> 24)
