/* Levels in one room, or in one that a wall divides: ways to a goal, doors to open, objects to fetch. */
#ifndef MINIGRID_ONE_ROOM_H
#define MINIGRID_ONE_ROOM_H

#include "grid.h"

/* ---- Ways to a goal ------------------------------------------------------------------------------------ */

/* Makes a room with the goal in the lower right corner and the agent in the opposite one, facing east. */
static inline void minigrid_begin_room(MiniGrid *env) {
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_put(env, env->width - 2, env->height - 2, minigrid_goal);
    env->position = (MiniGridPlace){1, 1};
    env->direction = MINIGRID_EAST;
}

static inline void minigrid_make_empty_room(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_begin_room(env);
    if (level->is_random) minigrid_place_agent(env, minigrid_everywhere(env));
}

static const MiniGridWorld minigrid_empty_room = {minigrid_make_empty_room, MINIGRID_REACH,
                                                  "get to the green goal square", true};

static inline void minigrid_make_obstacles(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_make_empty_room(env, level);
    const MiniGridCell ball = minigrid_thing(MINIGRID_BALL, MINIGRID_BLUE);
    for (int32_t i = 0; i < level->count; i++)
        env->obstacles[i] = minigrid_place(env, minigrid_everywhere(env), ball);
}

static const MiniGridWorld minigrid_obstacles = {minigrid_make_obstacles, MINIGRID_DODGE,
                                                 "get to the green goal square", true};

/* Two strips of lava. The first is between the agent and the goal, which is in the upper right corner. */
static inline void minigrid_make_strips(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_begin_room(env);
    minigrid_put(env, env->width - 2, env->height - 2, minigrid_empty);
    minigrid_put(env, env->width - 2, 1, minigrid_goal);
    minigrid_fill_row(env, 3, 1, env->width - 6, minigrid_lava);
    minigrid_fill_row(env, 3, level->row, env->width - 6, minigrid_lava);
}

static const MiniGridWorld minigrid_strips = {minigrid_make_strips, MINIGRID_REACH,
                                              "get to the green goal square", true};

/* A column of lava with a gap. */
static inline void minigrid_make_gap(MiniGrid *env, const MiniGridLevel *level) {
    (void)level;
    minigrid_begin_room(env);
    const int32_t x = minigrid_random(env, 2, env->width - 2), y = minigrid_random(env, 1, env->height - 1);
    minigrid_fill_column(env, x, 1, env->height - 2, minigrid_lava);
    minigrid_put(env, x, y, minigrid_empty);
}

static const MiniGridWorld minigrid_gap = {minigrid_make_gap, MINIGRID_REACH,
                                           "avoid the lava and get to the green goal square", false};

enum { MINIGRID_COLUMNS, MINIGRID_ROWS, MINIGRID_MAX_RIVERS = 4 }; /* at most, in each of the two ways */

/* Columns and rows at even numbers, in ascending order, with the walls of the room before and behind them. */
typedef struct {
    int32_t lines[2][MINIGRID_MAX_RIVERS + 2], counts[2];
} MiniGridRivers;

static inline MiniGridRivers minigrid_random_rivers(MiniGrid *env, int32_t count) {
    const int32_t most = (env->width - 3) / 2;
    int32_t drawn[2 * MINIGRID_MAX_RIVERS];
    bool is_chosen[2 * MINIGRID_MAX_RIVERS] = {false};
    MiniGridRivers rivers = {.counts = {0, 0}};
    for (int32_t i = 0; i < 2 * most; i++) drawn[i] = i;
    puffer_shuffle(&env->generator, drawn, 2 * most);
    for (int32_t i = 0; i < count; i++) is_chosen[drawn[i]] = true;
    for (int32_t way = MINIGRID_COLUMNS; way <= MINIGRID_ROWS; way++) {
        rivers.lines[way][0] = 0;
        for (int32_t i = 0; i < most; i++) {
            if (is_chosen[way * most + i]) rivers.lines[way][++rivers.counts[way]] = 2 + 2 * i;
        }
        rivers.lines[way][rivers.counts[way] + 1] = env->width - 1;
    }
    return rivers;
}

/* Opens each river once, on a random path through the chambers between them. */
static inline void minigrid_open_rivers(MiniGrid *env, const MiniGridRivers *rivers) {
    const int32_t count = rivers->counts[MINIGRID_COLUMNS] + rivers->counts[MINIGRID_ROWS];
    int32_t path[2 * MINIGRID_MAX_RIVERS], chamber[2] = {0, 0};
    for (int32_t i = 0; i < count; i++)
        path[i] = i < rivers->counts[MINIGRID_COLUMNS] ? MINIGRID_COLUMNS : MINIGRID_ROWS;
    puffer_shuffle(&env->generator, path, count);
    for (int32_t i = 0; i < count; i++) {
        const int32_t way = path[i], other = MINIGRID_COLUMNS + MINIGRID_ROWS - way;
        const int32_t crossed = rivers->lines[way][++chamber[way]];
        const int32_t *sides = &rivers->lines[other][chamber[other]];
        const int32_t opening = minigrid_random(env, sides[0] + 1, sides[1]);
        if (way == MINIGRID_COLUMNS)
            minigrid_put(env, crossed, opening, minigrid_empty);
        else
            minigrid_put(env, opening, crossed, minigrid_empty);
    }
}

/* A square room with rivers of lava, or with walls in their place. */
static inline void minigrid_cross(MiniGrid *env, const MiniGridLevel *level, MiniGridCell river) {
    minigrid_begin_room(env);
    const MiniGridRivers rivers = minigrid_random_rivers(env, level->count);
    for (int32_t i = 1; i <= rivers.counts[MINIGRID_COLUMNS]; i++)
        minigrid_fill_column(env, rivers.lines[MINIGRID_COLUMNS][i], 1, env->height - 2, river);
    for (int32_t i = 1; i <= rivers.counts[MINIGRID_ROWS]; i++)
        minigrid_fill_row(env, 1, rivers.lines[MINIGRID_ROWS][i], env->width - 2, river);
    minigrid_open_rivers(env, &rivers);
}

static inline void minigrid_make_lava_crossing(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_cross(env, level, minigrid_lava);
}

static const MiniGridWorld minigrid_lava_crossing = {
    minigrid_make_lava_crossing, MINIGRID_REACH, "avoid the lava and get to the green goal square", false};

static inline void minigrid_make_crossing(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_cross(env, level, minigrid_wall);
}

static const MiniGridWorld minigrid_crossing = {minigrid_make_crossing, MINIGRID_REACH,
                                                "find the opening and get to the green goal square", false};

/* A corridor that ends at two objects, of which one is like the object in the room where it starts. */
static inline void minigrid_make_memory(MiniGrid *env, const MiniGridLevel *level) {
    const int32_t middle = env->height / 2;
    minigrid_surround(env, minigrid_everywhere(env));
    const int32_t end = level->is_random ? minigrid_random(env, 4, env->width - 2) : env->width - 3;
    for (int32_t side = -1; side <= 1; side += 2) {
        minigrid_fill_row(env, 1, middle + 2 * side, 4, minigrid_wall);
        minigrid_put(env, 4, middle + side, minigrid_wall);
        if (end > 5) minigrid_fill_row(env, 5, middle + side, end - 5, minigrid_wall);
    }
    minigrid_fill_column(env, end, 0, env->height, minigrid_wall);
    minigrid_put(env, end, middle, minigrid_empty);
    minigrid_fill_column(env, end + 2, 0, env->height, minigrid_wall);
    env->position = (MiniGridPlace){minigrid_random(env, 1, end + 1), middle};
    env->direction = MINIGRID_EAST;
    const int32_t shown = MINIGRID_KEY + minigrid_random(env, 0, 2),
                  upper = MINIGRID_BALL - minigrid_random(env, 0, 2);
    minigrid_put(env, 1, middle - 1, minigrid_thing(shown, MINIGRID_GREEN));
    minigrid_put(env, end + 1, middle - 2, minigrid_thing(upper, MINIGRID_GREEN));
    minigrid_put(env, end + 1, middle + 2,
                 minigrid_thing(MINIGRID_KEY + MINIGRID_BALL - upper, MINIGRID_GREEN));
    env->target = (MiniGridPlace){end + 1, shown == upper ? middle - 1 : middle + 1};
}

static const MiniGridWorld minigrid_memory = {minigrid_make_memory, MINIGRID_MATCH,
                                              "go to the matching object at the end of the hallway", false};

/* ---- Doors --------------------------------------------------------------------------------------------- */

/* A wall with a locked door. The agent and the key are on its left side, the goal is on its right side. */
static inline void minigrid_make_door_key(MiniGrid *env, const MiniGridLevel *level) {
    (void)level;
    minigrid_begin_room(env);
    const int32_t x = minigrid_random(env, 2, env->width - 2);
    const MiniGridArea left = {0, 0, x, env->height};
    minigrid_fill_column(env, x, 0, env->height, minigrid_wall);
    minigrid_place_agent(env, left);
    minigrid_put(env, x, minigrid_random(env, 1, env->height - 2),
                 minigrid_door(MINIGRID_YELLOW, MINIGRID_LOCKED));
    minigrid_place(env, left, minigrid_thing(MINIGRID_KEY, MINIGRID_YELLOW));
}

static const MiniGridWorld minigrid_door_key = {
    minigrid_make_door_key, MINIGRID_REACH, "use the key to open the door and then get to the goal", false};

/* A square room in the middle of the world, with a red door in its left wall, and a blue one opposite. */
static inline void minigrid_make_two_doors(MiniGrid *env, const MiniGridLevel *level) {
    (void)level;
    const int32_t size = env->height;
    const MiniGridArea room = {size / 2, 0, size, size};
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_surround(env, room);
    minigrid_place_agent(env, room);
    env->target = (MiniGridPlace){room.x, minigrid_random(env, 1, size - 1)};
    *minigrid_at(env, env->target) = minigrid_door(MINIGRID_RED, MINIGRID_CLOSED);
    minigrid_put(env, room.x + size - 1, minigrid_random(env, 1, size - 1),
                 minigrid_door(MINIGRID_BLUE, MINIGRID_CLOSED));
}

static const MiniGridWorld minigrid_two_doors = {minigrid_make_two_doors, MINIGRID_OPEN_BOTH,
                                                 "open the red door then the blue door", false};

/* A room of random size with a door of another color in each wall. */
static inline void minigrid_make_go_to_door(MiniGrid *env, const MiniGridLevel *level) {
    enum { DOORS = 4 };
    const int32_t width = minigrid_random(env, 5, level->width + 1),
                  height = minigrid_random(env, 5, level->height + 1);
    const MiniGridArea room = {0, 0, width, height};
    MiniGridPlace places[DOORS];
    int32_t colors[DOORS], taken = 0;
    minigrid_surround(env, room);
    places[0] = (MiniGridPlace){minigrid_random(env, 2, width - 2), 0};
    places[1] = (MiniGridPlace){minigrid_random(env, 2, width - 2), height - 1};
    places[2] = (MiniGridPlace){0, minigrid_random(env, 2, height - 2)};
    places[3] = (MiniGridPlace){width - 1, minigrid_random(env, 2, height - 2)};
    for (int32_t i = 0; i < DOORS; i++) {
        do colors[i] = minigrid_random_color(env);
        while (taken >> colors[i] & 1);
        taken |= 1 << colors[i];
        *minigrid_at(env, places[i]) = minigrid_door(colors[i], MINIGRID_CLOSED);
    }
    minigrid_place_agent(env, room);
    const int32_t chosen = minigrid_random(env, 0, DOORS);
    env->target = places[chosen];
    env->object = *minigrid_at(env, env->target);
}

static const MiniGridWorld minigrid_go_to_door = {minigrid_make_go_to_door, MINIGRID_GO_TO, "go to the %o",
                                                  true};

/* ---- Objects ------------------------------------------------------------------------------------------- */

enum { MINIGRID_MAX_OBJECTS = 3 };

static inline void minigrid_make_fetch(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridCell objects[MINIGRID_MAX_OBJECTS];
    minigrid_surround(env, minigrid_everywhere(env));
    for (int32_t i = 0; i < level->count; i++) {
        objects[i] = minigrid_random_thing(env, 2);
        minigrid_place(env, minigrid_everywhere(env), objects[i]);
    }
    minigrid_place_agent(env, minigrid_everywhere(env));
    env->object = objects[minigrid_random(env, 0, level->count)];
    env->opening = minigrid_random(env, 0, 5);
}

static const MiniGridWorld minigrid_fetch = {minigrid_make_fetch, MINIGRID_FETCH, "%f a %o", true};

/* Places different objects. If `gap` is true, they are no neighbors. */
static inline void minigrid_place_objects(MiniGrid *env, int32_t count, bool gap, MiniGridPlace *places) {
    for (int32_t i = 0; i < count; i++) {
        MiniGridCell object;
        bool is_new, is_apart;
        do {
            object = minigrid_random_thing(env, 3);
            is_new = true;
            for (int32_t j = 0; j < i; j++) is_new &= !minigrid_is_same(*minigrid_at(env, places[j]), object);
        } while (!is_new);
        do {
            is_apart = minigrid_random_free(env, minigrid_everywhere(env), &places[i]);
            for (int32_t j = 0; gap && j < i; j++) is_apart &= minigrid_far(places[i], places[j]) > 1;
        } while (!is_apart);
        *minigrid_at(env, places[i]) = object;
    }
}

static inline void minigrid_make_go_to_object(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridPlace places[MINIGRID_MAX_OBJECTS];
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_place_objects(env, level->count, false, places);
    minigrid_place_agent(env, minigrid_everywhere(env));
    env->target = places[minigrid_random(env, 0, level->count)];
    env->object = *minigrid_at(env, env->target);
}

static const MiniGridWorld minigrid_go_to_object = {minigrid_make_go_to_object, MINIGRID_GO_TO,
                                                    "go to the %o", true};

static inline void minigrid_make_put_near(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridPlace places[MINIGRID_MAX_OBJECTS];
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_place_objects(env, level->count, true, places);
    minigrid_place_agent(env, minigrid_everywhere(env));
    const int32_t moved = minigrid_random(env, 0, level->count);
    int32_t near;
    do near = minigrid_random(env, 0, level->count);
    while (near == moved);
    env->target = places[near];
    env->object = *minigrid_at(env, places[moved]);
    env->other = *minigrid_at(env, places[near]);
}

static const MiniGridWorld minigrid_put_near = {minigrid_make_put_near, MINIGRID_PUT_NEAR,
                                                "put the %o near the %p", true};

#endif
