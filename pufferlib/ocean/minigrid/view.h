/* What the agent sees: a square of cells of which it is in the middle of the last row. Cells outside of the
 * world are walls. */
#ifndef MINIGRID_VIEW_H
#define MINIGRID_VIEW_H

#include "mission.h"

enum { MINIGRID_MAX_VIEW = 31 };

/* A cell of the view is at x * size + y, as in the observation. y is 0 for the row that is far ahead. */
typedef struct {
    MiniGridCell cells[MINIGRID_MAX_VIEW * MINIGRID_MAX_VIEW];
    uint32_t rows[MINIGRID_MAX_VIEW]; /* which cells of each row are seen: bit x */
} MiniGridView;

static inline bool minigrid_is_clear(MiniGridCell cell) {
    return cell.kind != MINIGRID_WALL && (cell.kind != MINIGRID_DOOR || minigrid_is_open(cell));
}

/* Returns the number of cells from the agent to the border of the world. */
static inline int32_t minigrid_room_ahead(const MiniGrid *env, int32_t direction) {
    switch (direction % MINIGRID_DIRECTIONS) {
        case MINIGRID_EAST:
            return env->width - 1 - env->position.x;
        case MINIGRID_SOUTH:
            return env->height - 1 - env->position.y;
        case MINIGRID_WEST:
            return env->position.x;
        default:
            return env->position.y;
    }
}

PUFFER_INLINE void minigrid_copy_cells(const MiniGrid *env, int32_t size, MiniGridCell *cells) {
    const int32_t steps[] = {1, env->width, -1, -env->width, 1}, half = size / 2;
    const int32_t forward = steps[env->direction], right = steps[env->direction + 1];
    int32_t ahead = minigrid_room_ahead(env, env->direction);
    int32_t last = minigrid_room_ahead(env, env->direction + 1);
    int32_t first = -minigrid_room_ahead(env, env->direction + 3);
    ahead = ahead < size - 1 ? ahead : size - 1;
    last = last < half ? last : half;
    first = first > -half ? first : -half;
    for (int32_t i = 0; i < size * size; i++) cells[i] = minigrid_wall;
    const MiniGridCell *agent = &env->cells[env->position.y * env->width + env->position.x];
    for (int32_t side = first; side <= last; side++) {
        const MiniGridCell *from = agent + side * right;
        MiniGridCell *to = cells + (side + half) * size + size - 1;
        for (int32_t y = 0; y <= ahead; y++) to[-y] = from[y * forward];
    }
}

/* Finds the cells that are seen. From each seen cell that is clear, the agent also sees its neighbors on both
 * sides and the three in front of it. */
PUFFER_INLINE void minigrid_look(int32_t size, MiniGridView *view) {
    uint32_t clear[MINIGRID_MAX_VIEW] = {0}, next = 1u << size / 2;
    const uint32_t full = (1u << size) - 1;
    for (int32_t x = 0; x < size; x++) {
        for (int32_t y = 0; y < size; y++)
            clear[y] |= (uint32_t)minigrid_is_clear(view->cells[x * size + y]) << x;
    }
    for (int32_t y = size - 1; y >= 0; y--) {
        const uint32_t start = next & clear[y];
        /* To the right, the carries of a sum run through the clear cells, from each seen one. */
        uint32_t seen = (next | (clear[y] ^ (clear[y] + start))) & full;
        /* To the left, the distance doubles each time. */
        uint32_t path = clear[y] >> 1;
        for (int32_t distance = 1; distance < size; distance *= 2) {
            seen |= path & seen >> distance;
            path &= path >> distance;
        }
        const uint32_t through = seen & clear[y];
        view->rows[y] = seen;
        next = (through | through << 1 | through >> 1) & full;
    }
}

PUFFER_INLINE void minigrid_see(const MiniGrid *env, int32_t size, MiniGridView *view) {
    minigrid_copy_cells(env, size, view->cells);
    if (env->see_through_walls || minigrid_level(env)->world->see_through_walls) {
        for (int32_t y = 0; y < size; y++) view->rows[y] = UINT32_MAX;
    } else {
        minigrid_look(size, view);
    }
}

/* Writes the image of an observation. The cell of the agent shows what it carries. */
PUFFER_INLINE void minigrid_write_image(const MiniGrid *env, int32_t size, uint8_t *image) {
    MiniGridView view;
    minigrid_see(env, size, &view);
    view.cells[size / 2 * size + size - 1] = env->carried;
    for (int32_t x = 0; x < size; x++) {
        for (int32_t y = 0; y < size; y++, image += 3) {
            const bool is_seen = view.rows[y] >> x & 1;
            const MiniGridCell cell = view.cells[x * size + y];
            image[0] = is_seen ? cell.kind : MINIGRID_UNSEEN;
            image[1] = is_seen ? cell.color : 0;
            image[2] = is_seen ? cell.state : 0;
        }
    }
}

#endif
