/* Levels on a grid of equal rooms with doors, keys and balls between them: the package's RoomGrid. */
#ifndef MINIGRID_ROOM_GRID_H
#define MINIGRID_ROOM_GRID_H

#include "grid.h"

enum {
    MINIGRID_ROOM_SIZE = 6, /* with walls, if a level has no own size */
    MINIGRID_MAX_ROOMS = 3, /* in a row, and in a column */
};

typedef struct {
    MiniGridArea area;
    MiniGridPlace doors[MINIGRID_DIRECTIONS]; /* places of possible doors, if there is a neighbor */
    bool has_neighbor[MINIGRID_DIRECTIONS];
    bool is_open[MINIGRID_DIRECTIONS]; /* there is a door, or no wall */
    bool is_locked;                    /* the last door that was added is locked */
} MiniGridRoom;

typedef struct {
    int32_t columns, rows;
    MiniGridRoom rooms[MINIGRID_MAX_ROOMS][MINIGRID_MAX_ROOMS]; /* [row][column] */
} MiniGridRooms;

/* Makes the rooms, and draws the place of each possible door. The agent starts in the middle. It is moved
 * later, and until then nothing is placed next to it. */
static inline void minigrid_make_rooms(MiniGrid *env, int32_t size, MiniGridRooms *grid) {
    const int32_t pitch = size - 1;
    *grid = (MiniGridRooms){.columns = (env->width - 1) / pitch, .rows = (env->height - 1) / pitch};
    for (int32_t row = 0; row < grid->rows; row++) {
        for (int32_t column = 0; column < grid->columns; column++) {
            MiniGridRoom *room = &grid->rooms[row][column];
            const int32_t x = column * pitch, y = row * pitch;
            room->area = (MiniGridArea){x, y, size, size};
            minigrid_surround(env, room->area);
            room->has_neighbor[MINIGRID_EAST] = column < grid->columns - 1;
            room->has_neighbor[MINIGRID_SOUTH] = row < grid->rows - 1;
            room->has_neighbor[MINIGRID_WEST] = column > 0;
            room->has_neighbor[MINIGRID_NORTH] = row > 0;
            if (room->has_neighbor[MINIGRID_EAST])
                room->doors[MINIGRID_EAST] =
                    (MiniGridPlace){x + pitch, minigrid_random(env, y + 1, y + pitch)};
            if (room->has_neighbor[MINIGRID_SOUTH])
                room->doors[MINIGRID_SOUTH] =
                    (MiniGridPlace){minigrid_random(env, x + 1, x + pitch), y + pitch};
            if (column > 0) room->doors[MINIGRID_WEST] = grid->rooms[row][column - 1].doors[MINIGRID_EAST];
            if (row > 0) room->doors[MINIGRID_NORTH] = grid->rooms[row - 1][column].doors[MINIGRID_SOUTH];
        }
    }
    const int32_t half = size / 2;
    env->position = (MiniGridPlace){grid->columns / 2 * pitch + half, grid->rows / 2 * pitch + half};
}

static inline MiniGridRoom *minigrid_neighbor(MiniGridRooms *grid, int32_t column, int32_t row,
                                              int32_t side) {
    const MiniGridPlace place = minigrid_next((MiniGridPlace){column, row}, side);
    return &grid->rooms[place.y][place.x];
}

static inline void minigrid_connect(MiniGridRooms *grid, int32_t column, int32_t row, int32_t side) {
    grid->rooms[row][column].is_open[side] = true;
    minigrid_neighbor(grid, column, row, side)->is_open[(side + 2) % MINIGRID_DIRECTIONS] = true;
}

/* Adds a door, and returns its place. */
static inline MiniGridPlace minigrid_add_door(MiniGrid *env, MiniGridRooms *grid, int32_t column, int32_t row,
                                              int32_t side, MiniGridCell door) {
    MiniGridRoom *room = &grid->rooms[row][column];
    room->is_locked = door.state == MINIGRID_LOCKED;
    *minigrid_at(env, room->doors[side]) = door;
    minigrid_connect(grid, column, row, side);
    return room->doors[side];
}

/* Adds an object, not next to the agent. */
static inline void minigrid_add_object(MiniGrid *env, const MiniGridRooms *grid, int32_t column, int32_t row,
                                       MiniGridCell object) {
    const MiniGridArea room = grid->rooms[row][column].area;
    MiniGridPlace place;
    while (!minigrid_random_free(env, room, &place) || minigrid_steps(place, env->position) < 2) continue;
    *minigrid_at(env, place) = object;
}

/* Moves the agent to a room. It faces nothing, or a wall. */
static inline void minigrid_move_agent(MiniGrid *env, const MiniGridRooms *grid, int32_t column,
                                       int32_t row) {
    int32_t kind;
    do {
        minigrid_place_agent(env, grid->rooms[row][column].area);
        kind = minigrid_at(env, minigrid_front(env))->kind;
    } while (kind != MINIGRID_EMPTY && kind != MINIGRID_WALL);
}

/* ---- Two rooms with a locked door between them --------------------------------------------------------- */

/* Adds the door and its key. The agent is in the room with the key. */
static inline void minigrid_add_unlock(MiniGrid *env, MiniGridRooms *grid, bool is_blocked) {
    const int32_t color = minigrid_random_color(env);
    const MiniGridPlace door =
        minigrid_add_door(env, grid, 0, 0, MINIGRID_EAST, minigrid_door(color, MINIGRID_LOCKED));
    if (is_blocked)
        minigrid_put(env, door.x - 1, door.y, minigrid_thing(MINIGRID_BALL, minigrid_random_color(env)));
    minigrid_add_object(env, grid, 0, 0, minigrid_thing(MINIGRID_KEY, color));
    minigrid_move_agent(env, grid, 0, 0);
}

static inline void minigrid_make_unlock(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridRooms grid;
    minigrid_make_rooms(env, MINIGRID_ROOM_SIZE, &grid);
    minigrid_add_unlock(env, &grid, level->is_blocked);
}

static const MiniGridWorld minigrid_unlock = {minigrid_make_unlock, MINIGRID_UNLOCK, "open the door", false};

static inline void minigrid_make_unlock_pickup(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridRooms grid;
    minigrid_make_rooms(env, MINIGRID_ROOM_SIZE, &grid);
    env->object = minigrid_thing(MINIGRID_BOX, minigrid_random_color(env));
    minigrid_add_object(env, &grid, 1, 0, env->object);
    minigrid_add_unlock(env, &grid, level->is_blocked);
}

static const MiniGridWorld minigrid_unlock_pickup = {minigrid_make_unlock_pickup, MINIGRID_GET,
                                                     "pick up the %o", false};

/* ---- KeyCorridor: a hallway with rooms on both sides --------------------------------------------------- */

/* Returns the number of rooms that can be reached from the room in which the agent is. */
static inline int32_t minigrid_count_reachable(const MiniGrid *env, const MiniGridRooms *grid) {
    const int32_t pitch = grid->rooms[0][0].area.width - 1;
    MiniGridPlace waiting[MINIGRID_MAX_ROOMS * MINIGRID_MAX_ROOMS];
    bool is_known[MINIGRID_MAX_ROOMS][MINIGRID_MAX_ROOMS] = {{false}};
    int32_t count = 1;
    waiting[0] = (MiniGridPlace){env->position.x / pitch, env->position.y / pitch};
    is_known[waiting[0].y][waiting[0].x] = true;
    for (int32_t i = 0; i < count; i++) {
        const MiniGridRoom *room = &grid->rooms[waiting[i].y][waiting[i].x];
        for (int32_t side = 0; side < MINIGRID_DIRECTIONS; side++) {
            if (!room->is_open[side]) continue;
            const MiniGridPlace next = minigrid_next(waiting[i], side);
            if (is_known[next.y][next.x]) continue;
            is_known[next.y][next.x] = true;
            waiting[count++] = next;
        }
    }
    return count;
}

/* Draws a color other than `left_out`, or any if that is MINIGRID_ANY. */
static inline int32_t minigrid_random_color_but(MiniGrid *env, int32_t left_out) {
    if (left_out == MINIGRID_ANY) return minigrid_random_color(env);
    const int32_t drawn = minigrid_random(env, 0, MINIGRID_COLORS - 1);
    for (int32_t i = 0; i < drawn; i++) {
        if (minigrid_sorted_colors[i] == left_out) return minigrid_sorted_colors[drawn + 1];
    }
    return minigrid_sorted_colors[drawn + (minigrid_sorted_colors[drawn] == left_out)];
}

/* Adds doors at random until all rooms can be reached. Locked rooms get no further door. No door has the
 * color `left_out`. Returns false if too many tries are needed. */
static inline bool minigrid_connect_all(MiniGrid *env, MiniGridRooms *grid, int32_t left_out) {
    enum { TRIES = 5000 };
    for (int32_t i = 0; i <= TRIES; i++) {
        if (minigrid_count_reachable(env, grid) == grid->columns * grid->rows) return true;
        const int32_t column = minigrid_random(env, 0, grid->columns),
                      row = minigrid_random(env, 0, grid->rows);
        const int32_t side = minigrid_random(env, 0, MINIGRID_DIRECTIONS);
        const MiniGridRoom *room = &grid->rooms[row][column];
        if (!room->has_neighbor[side] || room->is_open[side] || room->is_locked) continue;
        if (minigrid_neighbor(grid, column, row, side)->is_locked) continue;
        minigrid_add_door(env, grid, column, row, side,
                          minigrid_door(minigrid_random_color_but(env, left_out), MINIGRID_CLOSED));
    }
    return false;
}

/* Removes the walls between the rooms of the second column. */
static inline void minigrid_open_hallway(MiniGrid *env, MiniGridRooms *grid) {
    for (int32_t row = 1; row < grid->rows; row++) {
        const MiniGridArea room = grid->rooms[row][1].area;
        minigrid_fill_row(env, room.x + 1, room.y, room.width - 2, minigrid_empty);
        minigrid_connect(grid, 1, row, MINIGRID_NORTH);
    }
}

/* A ball in a locked room on the right, its key in a room on the left, and the agent in the hallway. */
static inline void minigrid_make_key_corridor(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridRooms grid;
    minigrid_make_rooms(env, level->room_size, &grid);
    minigrid_open_hallway(env, &grid);
    const int32_t row = minigrid_random(env, 0, grid.rows), color = minigrid_random_color(env);
    minigrid_add_door(env, &grid, 2, row, MINIGRID_WEST, minigrid_door(color, MINIGRID_LOCKED));
    env->object = minigrid_thing(MINIGRID_BALL, minigrid_random_color(env));
    minigrid_add_object(env, &grid, 2, row, env->object);
    minigrid_add_object(env, &grid, 0, minigrid_random(env, 0, grid.rows),
                        minigrid_thing(MINIGRID_KEY, color));
    minigrid_move_agent(env, &grid, 1, grid.rows / 2);
    minigrid_connect_all(env, &grid, MINIGRID_ANY);
}

static const MiniGridWorld minigrid_key_corridor = {minigrid_make_key_corridor, MINIGRID_GET,
                                                    "pick up the %o", false};

/* ---- ObstructedMaze: keys in boxes, and balls in front of locked doors --------------------------------- */

enum {
    MINIGRID_FOUND_COLOR = MINIGRID_BLUE, /* of the ball to pick up */
    MINIGRID_BLOCKING_COLOR = MINIGRID_GREEN,
    MINIGRID_BOX_COLOR = MINIGRID_GREY,
};

static inline void minigrid_add_key(MiniGrid *env, const MiniGridLevel *level, const MiniGridRooms *grid,
                                    int32_t column, int32_t row, int32_t color) {
    MiniGridCell key = minigrid_thing(MINIGRID_KEY, color);
    if (level->is_boxed) key = (MiniGridCell){MINIGRID_BOX, MINIGRID_BOX_COLOR, 0, (uint8_t)(1 + color)};
    minigrid_add_object(env, grid, column, row, key);
}

static inline void minigrid_add_locked_door(MiniGrid *env, const MiniGridLevel *level, MiniGridRooms *grid,
                                            int32_t column, int32_t row, int32_t side, int32_t color) {
    const MiniGridPlace door =
        minigrid_add_door(env, grid, column, row, side, minigrid_door(color, MINIGRID_LOCKED));
    if (level->is_blocked) {
        const MiniGridPlace before = minigrid_next(door, (side + 2) % MINIGRID_DIRECTIONS);
        *minigrid_at(env, before) = minigrid_thing(MINIGRID_BALL, MINIGRID_BLOCKING_COLOR);
    }
}

/* Two rooms. */
static inline void minigrid_make_small_maze(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridRooms grid;
    uint8_t colors[MINIGRID_COLORS];
    minigrid_make_rooms(env, MINIGRID_ROOM_SIZE, &grid);
    minigrid_random_colors(env, colors);
    minigrid_add_locked_door(env, level, &grid, 0, 0, MINIGRID_EAST, colors[0]);
    minigrid_add_key(env, level, &grid, 0, 0, colors[0]);
    env->object = minigrid_thing(MINIGRID_BALL, MINIGRID_FOUND_COLOR);
    minigrid_add_object(env, &grid, 1, 0, env->object);
    minigrid_move_agent(env, &grid, 0, 0);
}

static const MiniGridWorld minigrid_small_maze = {minigrid_make_small_maze, MINIGRID_GET, "pick up the %o",
                                                  false};

/* Nine rooms. A quarter is a room beside the middle, with locked doors to the corners on both sides. The
 * ball is in a corner. With `keys_last`, the version 1, no ball can replace a key. */
static inline void minigrid_make_maze(MiniGrid *env, const MiniGridLevel *level) {
    static const MiniGridPlace sides[] = {{2, 1}, {1, 2}, {0, 1}, {1, 0}};
    static const MiniGridPlace corners[] = {{2, 0}, {2, 2}, {0, 2}, {0, 0}};
    MiniGridRooms grid;
    uint8_t colors[MINIGRID_COLORS];
    minigrid_make_rooms(env, MINIGRID_ROOM_SIZE, &grid);
    minigrid_random_colors(env, colors);
    for (int32_t i = 0; i < level->count; i++) {
        const int32_t x = sides[i].x, y = sides[i].y;
        minigrid_add_door(env, &grid, 1, 1, i, minigrid_door(colors[i], MINIGRID_CLOSED));
        for (int32_t turn = -1; turn <= 1; turn += 2) {
            const int32_t side = (i + turn + MINIGRID_DIRECTIONS) % MINIGRID_DIRECTIONS;
            const int32_t color = colors[(i + turn + MINIGRID_COLORS) % MINIGRID_COLORS];
            minigrid_add_locked_door(env, level, &grid, x, y, side, color);
            if (!level->keys_last) minigrid_add_key(env, level, &grid, x, y, color);
        }
        for (int32_t turn = -1; level->keys_last && turn <= 1; turn += 2)
            minigrid_add_key(env, level, &grid, x, y, colors[(i + turn + MINIGRID_COLORS) % MINIGRID_COLORS]);
    }
    const MiniGridPlace corner = corners[minigrid_random(env, 0, level->count)];
    env->object = minigrid_thing(MINIGRID_BALL, MINIGRID_FOUND_COLOR);
    minigrid_add_object(env, &grid, corner.x, corner.y, env->object);
    minigrid_move_agent(env, &grid, level->column, 1);
}

static const MiniGridWorld minigrid_maze = {minigrid_make_maze, MINIGRID_GET, "pick up the %o", false};

#endif
