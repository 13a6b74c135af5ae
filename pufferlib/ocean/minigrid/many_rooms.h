/* Levels of several rooms that differ in size or doors: FourRooms, Playground, LockedRoom, MultiRoom. */
#ifndef MINIGRID_MANY_ROOMS_H
#define MINIGRID_MANY_ROOMS_H

#include "grid.h"

/* Opens a wall with a gap, or with a door of random color. */
static inline void minigrid_open_wall(MiniGrid *env, int32_t x, int32_t y, bool has_door) {
    minigrid_put(env, x, y,
                 has_door ? minigrid_door(minigrid_random_color(env), MINIGRID_CLOSED) : minigrid_empty);
}

/* Divides the world into `count` x `count` rooms. Walls between two rooms have an opening at a random place. A
 * door is not at the last place of a wall. */
static inline void minigrid_divide(MiniGrid *env, int32_t count, bool has_doors) {
    const int32_t width = env->width / count, height = env->height / count;
    minigrid_surround(env, minigrid_everywhere(env));
    for (int32_t i = 0; i < count * count; i++) {
        const int32_t x = i % count * width, y = i / count * height, right = x + width, bottom = y + height;
        if (i % count < count - 1) {
            minigrid_fill_column(env, right, y, height, minigrid_wall);
            minigrid_open_wall(env, right, minigrid_random(env, y + 1, bottom - has_doors), has_doors);
        }
        if (i / count < count - 1) {
            minigrid_fill_row(env, x, bottom, width, minigrid_wall);
            minigrid_open_wall(env, minigrid_random(env, x + 1, right - has_doors), bottom, has_doors);
        }
    }
}

static inline void minigrid_make_four_rooms(MiniGrid *env, const MiniGridLevel *level) {
    (void)level;
    minigrid_divide(env, 2, false);
    minigrid_place_agent(env, minigrid_everywhere(env));
    minigrid_place(env, minigrid_everywhere(env), minigrid_goal);
}

static const MiniGridWorld minigrid_four_rooms = {minigrid_make_four_rooms, MINIGRID_REACH, "reach the goal",
                                                  false};

static inline void minigrid_make_playground(MiniGrid *env, const MiniGridLevel *level) {
    minigrid_divide(env, 3, true);
    minigrid_place_agent(env, minigrid_everywhere(env));
    for (int32_t i = 0; i < level->count; i++) {
        const MiniGridCell object = minigrid_random_thing(env, 3);
        minigrid_place(env, minigrid_everywhere(env), object);
    }
}

static const MiniGridWorld minigrid_playground = {minigrid_make_playground, MINIGRID_REACH, "", false};

static inline MiniGridPlace minigrid_random_inside(MiniGrid *env, MiniGridArea room) {
    const int32_t x = minigrid_random(env, room.x + 1, room.x + room.width - 1);
    return (MiniGridPlace){x, minigrid_random(env, room.y + 1, room.y + room.height - 1)};
}

/* Three rooms on each side of a hallway. One is locked and has the goal, another one has the key. */
static inline void minigrid_make_locked_room(MiniGrid *env, const MiniGridLevel *level) {
    enum { ROOMS = 6 };
    const int32_t left = level->width / 2 - 2, right = level->width / 2 + 2, third = level->height / 3;
    MiniGridArea rooms[ROOMS];
    minigrid_surround(env, minigrid_everywhere(env));
    minigrid_fill_column(env, left, 0, env->height, minigrid_wall);
    minigrid_fill_column(env, right, 0, env->height, minigrid_wall);
    for (int32_t i = 0; i < ROOMS; i++) {
        rooms[i] = (MiniGridArea){i % 2 == 0 ? 0 : right, i / 2 * third, left + 1, third + 1};
        minigrid_fill_row(env, rooms[i].x, rooms[i].y, rooms[i].width, minigrid_wall);
    }
    const int32_t locked = minigrid_random(env, 0, ROOMS);
    *minigrid_at(env, minigrid_random_inside(env, rooms[locked])) = minigrid_goal;

    uint8_t colors[MINIGRID_COLORS];
    minigrid_random_colors(env, colors);
    for (int32_t i = 0; i < ROOMS; i++) {
        minigrid_put(env, i % 2 == 0 ? left : right, rooms[i].y + 3,
                     minigrid_door(colors[i], i == locked ? MINIGRID_LOCKED : MINIGRID_CLOSED));
    }
    int32_t with_key;
    do with_key = minigrid_random(env, 0, ROOMS);
    while (with_key == locked);
    env->object = minigrid_thing(MINIGRID_KEY, colors[locked]);
    env->other = minigrid_thing(MINIGRID_DOOR, colors[with_key]);
    *minigrid_at(env, minigrid_random_inside(env, rooms[with_key])) = env->object;
    minigrid_place_agent(env, (MiniGridArea){left, 0, right - left, env->height});
}

static const MiniGridWorld minigrid_locked_room = {
    minigrid_make_locked_room, MINIGRID_REACH,
    "get the %o from the %d room, unlock the %c door and go to the goal", false};

/* ---- MultiRoom: a chain of rooms of random sizes ------------------------------------------------------- */

enum { MINIGRID_MAX_CHAIN = 6, MINIGRID_MIN_ROOM = 4 };

typedef struct {
    MiniGridArea rooms[MINIGRID_MAX_CHAIN];
    MiniGridPlace entries[MINIGRID_MAX_CHAIN]; /* of the doors. The first room has none */
    int32_t count;
} MiniGridChain;

/* Draws the corner of a room that has its entry in the wall `side`. */
static inline void minigrid_random_corner(MiniGrid *env, MiniGridArea *room, int32_t side,
                                          MiniGridPlace entry) {
    const bool is_along_y = side == MINIGRID_EAST || side == MINIGRID_WEST;
    room->x = side == MINIGRID_EAST ? entry.x - room->width + 1 : entry.x;
    room->y = side == MINIGRID_SOUTH ? entry.y - room->height + 1 : entry.y;
    if (is_along_y)
        room->y = minigrid_random(env, entry.y - room->height + 2, entry.y);
    else
        room->x = minigrid_random(env, entry.x - room->width + 2, entry.x);
}

/* Returns true if the world has space for a further room. It may overlap the last one, with which it shares
 * a wall. */
static inline bool minigrid_has_space(const MiniGrid *env, const MiniGridChain *chain, MiniGridArea room) {
    if (room.x < 0 || room.y < 0 || room.x + room.width > env->width || room.y + room.height >= env->height)
        return false;
    for (int32_t i = 0; i < chain->count - 1; i++) {
        const MiniGridArea old = chain->rooms[i];
        if (room.x + room.width >= old.x && old.x + old.width > room.x && room.y + room.height >= old.y &&
            old.y + old.height > room.y)
            return false;
    }
    return true;
}

/* Draws a place in the wall `side` of a room, without its corners. */
static inline MiniGridPlace minigrid_random_exit(MiniGrid *env, MiniGridArea room, int32_t side) {
    if (side == MINIGRID_EAST || side == MINIGRID_WEST) {
        const int32_t y = room.y + minigrid_random(env, 1, room.height - 1);
        return (MiniGridPlace){side == MINIGRID_EAST ? room.x + room.width - 1 : room.x, y};
    }
    const int32_t x = room.x + minigrid_random(env, 1, room.width - 1);
    return (MiniGridPlace){x, side == MINIGRID_SOUTH ? room.y + room.height - 1 : room.y};
}

/* Adds up to `left` rooms, the first with its entry in the wall `side`. Returns false if even the first has
 * no space. Like in the package, a room stays if none fits behind it. The chain is then too short. */
static bool minigrid_extend_chain(MiniGrid *env, MiniGridChain *chain, int32_t left, int32_t max_size,
                                  int32_t side, MiniGridPlace entry) {
    enum { TRIES = 8 };
    MiniGridArea room = {entry.x, entry.y, minigrid_random(env, MINIGRID_MIN_ROOM, max_size + 1), 0};
    room.height = minigrid_random(env, MINIGRID_MIN_ROOM, max_size + 1);
    if (chain->count > 0) minigrid_random_corner(env, &room, side, entry);
    if (!minigrid_has_space(env, chain, room)) return false;
    chain->rooms[chain->count] = room;
    chain->entries[chain->count++] = entry;
    for (int32_t i = 0; left > 1 && i < TRIES; i++) {
        const int32_t drawn = minigrid_random(env, 0, MINIGRID_DIRECTIONS - 1),
                      exit = drawn + (drawn >= side);
        const MiniGridPlace door = minigrid_random_exit(env, room, exit);
        if (minigrid_extend_chain(env, chain, left - 1, max_size, (exit + 2) % MINIGRID_DIRECTIONS, door))
            break;
    }
    return true;
}

static inline void minigrid_make_multi_room(MiniGrid *env, const MiniGridLevel *level) {
    MiniGridChain chain;
    do {
        chain.count = 0;
        MiniGridPlace corner = {minigrid_random(env, 0, env->width - 2), 0};
        corner.y = minigrid_random(env, 0, env->width - 2);
        minigrid_extend_chain(env, &chain, level->count, level->room_size, MINIGRID_WEST, corner);
    } while (chain.count < level->count);

    int32_t last_color = -1; /* in the sorted colors */
    for (int32_t i = 0; i < chain.count; i++) {
        minigrid_surround(env, chain.rooms[i]);
        if (i == 0) continue;
        const int32_t drawn = minigrid_random(env, 0, MINIGRID_COLORS - (i > 1));
        last_color = drawn + (i > 1 && drawn >= last_color);
        *minigrid_at(env, chain.entries[i]) =
            minigrid_door(minigrid_sorted_colors[last_color], MINIGRID_CLOSED);
    }
    minigrid_place_agent(env, chain.rooms[0]);
    minigrid_place(env, chain.rooms[chain.count - 1], minigrid_goal);
}

static const MiniGridWorld minigrid_multi_room = {minigrid_make_multi_room, MINIGRID_REACH,
                                                  "traverse the rooms to get to the goal", false};

#endif
