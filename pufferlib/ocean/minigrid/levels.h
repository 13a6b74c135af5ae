/* The levels by their id in the package, and the text of their missions. A new level is a row of this table.
 * A new kind of level is also a function `minigrid_make_...` and the MiniGridWorld below it. A file with levels of
 * its own defines MINIGRID_OWN_LEVELS as the name of its table. */
#ifndef MINIGRID_LEVELS_H
#define MINIGRID_LEVELS_H

#include "many_rooms.h"
#include "one_room.h"
#include "room_grid.h"

#ifdef MINIGRID_OWN_LEVELS
#define minigrid_levels MINIGRID_OWN_LEVELS
#else
/* clang-format off */
static const MiniGridLevel minigrid_levels[] = {
    {"MiniGrid-BlockedUnlockPickup-v0", &minigrid_unlock_pickup, 11, 6, .max_steps = 16 * 6 * 6,
     .is_blocked = true},
    {"MiniGrid-DistShift1-v0", &minigrid_strips, 9, 7, .max_steps = 4 * 9 * 7, .row = 2},
    {"MiniGrid-DistShift2-v0", &minigrid_strips, 9, 7, .max_steps = 4 * 9 * 7, .row = 5},
    {"MiniGrid-DoorKey-16x16-v0", &minigrid_door_key, 16, 16, .max_steps = 10 * 16 * 16},
    {"MiniGrid-DoorKey-5x5-v0", &minigrid_door_key, 5, 5, .max_steps = 10 * 5 * 5},
    {"MiniGrid-DoorKey-6x6-v0", &minigrid_door_key, 6, 6, .max_steps = 10 * 6 * 6},
    {"MiniGrid-DoorKey-8x8-v0", &minigrid_door_key, 8, 8, .max_steps = 10 * 8 * 8},
    {"MiniGrid-Dynamic-Obstacles-16x16-v0", &minigrid_obstacles, 16, 16, .max_steps = 4 * 16 * 16,
     .count = 8},
    {"MiniGrid-Dynamic-Obstacles-5x5-v0", &minigrid_obstacles, 5, 5, .max_steps = 4 * 5 * 5, .count = 2},
    {"MiniGrid-Dynamic-Obstacles-6x6-v0", &minigrid_obstacles, 6, 6, .max_steps = 4 * 6 * 6, .count = 3},
    {"MiniGrid-Dynamic-Obstacles-8x8-v0", &minigrid_obstacles, 8, 8, .max_steps = 4 * 8 * 8, .count = 4},
    {"MiniGrid-Dynamic-Obstacles-Random-5x5-v0", &minigrid_obstacles, 5, 5, .max_steps = 4 * 5 * 5,
     .is_random = true, .count = 2},
    {"MiniGrid-Dynamic-Obstacles-Random-6x6-v0", &minigrid_obstacles, 6, 6, .max_steps = 4 * 6 * 6,
     .is_random = true, .count = 3},
    {"MiniGrid-Empty-16x16-v0", &minigrid_empty_room, 16, 16, .max_steps = 4 * 16 * 16},
    {"MiniGrid-Empty-5x5-v0", &minigrid_empty_room, 5, 5, .max_steps = 4 * 5 * 5},
    {"MiniGrid-Empty-6x6-v0", &minigrid_empty_room, 6, 6, .max_steps = 4 * 6 * 6},
    {"MiniGrid-Empty-8x8-v0", &minigrid_empty_room, 8, 8, .max_steps = 4 * 8 * 8},
    {"MiniGrid-Empty-Random-5x5-v0", &minigrid_empty_room, 5, 5, .max_steps = 4 * 5 * 5, .is_random = true},
    {"MiniGrid-Empty-Random-6x6-v0", &minigrid_empty_room, 6, 6, .max_steps = 4 * 6 * 6, .is_random = true},
    {"MiniGrid-Fetch-5x5-N2-v0", &minigrid_fetch, 5, 5, .max_steps = 5 * 5 * 5, .count = 2},
    {"MiniGrid-Fetch-6x6-N2-v0", &minigrid_fetch, 6, 6, .max_steps = 5 * 6 * 6, .count = 2},
    {"MiniGrid-Fetch-8x8-N3-v0", &minigrid_fetch, 8, 8, .max_steps = 5 * 8 * 8, .count = 3},
    {"MiniGrid-FourRooms-v0", &minigrid_four_rooms, 19, 19, .max_steps = 100},
    {"MiniGrid-GoToDoor-5x5-v0", &minigrid_go_to_door, 5, 5, .max_steps = 4 * 5 * 5},
    {"MiniGrid-GoToDoor-6x6-v0", &minigrid_go_to_door, 6, 6, .max_steps = 4 * 6 * 6},
    {"MiniGrid-GoToDoor-8x8-v0", &minigrid_go_to_door, 8, 8, .max_steps = 4 * 8 * 8},
    {"MiniGrid-GoToObject-6x6-N2-v0", &minigrid_go_to_object, 6, 6, .max_steps = 5 * 6 * 6, .count = 2},
    {"MiniGrid-GoToObject-8x8-N2-v0", &minigrid_go_to_object, 8, 8, .max_steps = 5 * 8 * 8, .count = 2},
    {"MiniGrid-KeyCorridorS3R1-v0", &minigrid_key_corridor, 7, 3, .max_steps = 30 * 3 * 3, .room_size = 3},
    {"MiniGrid-KeyCorridorS3R2-v0", &minigrid_key_corridor, 7, 5, .max_steps = 30 * 3 * 3, .room_size = 3},
    {"MiniGrid-KeyCorridorS3R3-v0", &minigrid_key_corridor, 7, 7, .max_steps = 30 * 3 * 3, .room_size = 3},
    {"MiniGrid-KeyCorridorS4R3-v0", &minigrid_key_corridor, 10, 10, .max_steps = 30 * 4 * 4, .room_size = 4},
    {"MiniGrid-KeyCorridorS5R3-v0", &minigrid_key_corridor, 13, 13, .max_steps = 30 * 5 * 5, .room_size = 5},
    {"MiniGrid-KeyCorridorS6R3-v0", &minigrid_key_corridor, 16, 16, .max_steps = 30 * 6 * 6, .room_size = 6},
    {"MiniGrid-LavaCrossingS11N5-v0", &minigrid_lava_crossing, 11, 11, .max_steps = 4 * 11 * 11, .count = 5},
    {"MiniGrid-LavaCrossingS9N1-v0", &minigrid_lava_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 1},
    {"MiniGrid-LavaCrossingS9N2-v0", &minigrid_lava_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 2},
    {"MiniGrid-LavaCrossingS9N3-v0", &minigrid_lava_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 3},
    {"MiniGrid-LavaGapS5-v0", &minigrid_gap, 5, 5, .max_steps = 4 * 5 * 5},
    {"MiniGrid-LavaGapS6-v0", &minigrid_gap, 6, 6, .max_steps = 4 * 6 * 6},
    {"MiniGrid-LavaGapS7-v0", &minigrid_gap, 7, 7, .max_steps = 4 * 7 * 7},
    {"MiniGrid-LockedRoom-v0", &minigrid_locked_room, 19, 19, .max_steps = 10 * 19},
    {"MiniGrid-MemoryS11-v0", &minigrid_memory, 11, 11, .max_steps = 5 * 11 * 11},
    {"MiniGrid-MemoryS13-v0", &minigrid_memory, 13, 13, .max_steps = 5 * 13 * 13},
    {"MiniGrid-MemoryS13Random-v0", &minigrid_memory, 13, 13, .max_steps = 5 * 13 * 13, .is_random = true},
    {"MiniGrid-MemoryS17Random-v0", &minigrid_memory, 17, 17, .max_steps = 5 * 17 * 17, .is_random = true},
    {"MiniGrid-MemoryS7-v0", &minigrid_memory, 7, 7, .max_steps = 5 * 7 * 7},
    {"MiniGrid-MemoryS9-v0", &minigrid_memory, 9, 9, .max_steps = 5 * 9 * 9},
    {"MiniGrid-MultiRoom-N2-S4-v0", &minigrid_multi_room, 25, 25, .max_steps = 20 * 2,
     .count = 2, .room_size = 4},
    {"MiniGrid-MultiRoom-N4-S5-v0", &minigrid_multi_room, 25, 25, .max_steps = 20 * 6,
     .count = 6, .room_size = 5},
    {"MiniGrid-MultiRoom-N4-S5-v1", &minigrid_multi_room, 25, 25, .max_steps = 20 * 4,
     .count = 4, .room_size = 5},
    {"MiniGrid-MultiRoom-N6-v0", &minigrid_multi_room, 25, 25, .max_steps = 20 * 6,
     .count = 6, .room_size = 10},
    {"MiniGrid-ObstructedMaze-1Dl-v0", &minigrid_small_maze, 11, 6, .max_steps = 4 * 2 * 6 * 6},
    {"MiniGrid-ObstructedMaze-1Dlh-v0", &minigrid_small_maze, 11, 6, .max_steps = 4 * 2 * 6 * 6,
     .is_boxed = true},
    {"MiniGrid-ObstructedMaze-1Dlhb-v0", &minigrid_small_maze, 11, 6, .max_steps = 4 * 2 * 6 * 6,
     .is_boxed = true, .is_blocked = true},
    {"MiniGrid-ObstructedMaze-1Q-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 5 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .count = 1, .column = 1},
    {"MiniGrid-ObstructedMaze-1Q-v1", &minigrid_maze, 16, 16, .max_steps = 4 * 5 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .keys_last = true, .count = 1, .column = 1},
    {"MiniGrid-ObstructedMaze-2Dl-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 4 * 6 * 6,
     .count = 1, .column = 2},
    {"MiniGrid-ObstructedMaze-2Dlh-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 4 * 6 * 6,
     .is_boxed = true, .count = 1, .column = 2},
    {"MiniGrid-ObstructedMaze-2Dlhb-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 4 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .count = 1, .column = 2},
    {"MiniGrid-ObstructedMaze-2Dlhb-v1", &minigrid_maze, 16, 16, .max_steps = 4 * 4 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .keys_last = true, .count = 1, .column = 2},
    {"MiniGrid-ObstructedMaze-2Q-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 11 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .count = 2, .column = 2},
    {"MiniGrid-ObstructedMaze-2Q-v1", &minigrid_maze, 16, 16, .max_steps = 4 * 11 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .keys_last = true, .count = 2, .column = 2},
    {"MiniGrid-ObstructedMaze-Full-v0", &minigrid_maze, 16, 16, .max_steps = 4 * 25 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .count = 4, .column = 1},
    {"MiniGrid-ObstructedMaze-Full-v1", &minigrid_maze, 16, 16, .max_steps = 4 * 25 * 6 * 6,
     .is_boxed = true, .is_blocked = true, .keys_last = true, .count = 4, .column = 1},
    {"MiniGrid-Playground-v0", &minigrid_playground, 19, 19, .max_steps = 100, .count = 12},
    {"MiniGrid-PutNear-6x6-N2-v0", &minigrid_put_near, 6, 6, .max_steps = 5 * 6, .count = 2},
    {"MiniGrid-PutNear-8x8-N3-v0", &minigrid_put_near, 8, 8, .max_steps = 5 * 8, .count = 3},
    {"MiniGrid-RedBlueDoors-6x6-v0", &minigrid_two_doors, 12, 6, .max_steps = 20 * 6 * 6},
    {"MiniGrid-RedBlueDoors-8x8-v0", &minigrid_two_doors, 16, 8, .max_steps = 20 * 8 * 8},
    {"MiniGrid-SimpleCrossingS11N5-v0", &minigrid_crossing, 11, 11, .max_steps = 4 * 11 * 11, .count = 5},
    {"MiniGrid-SimpleCrossingS9N1-v0", &minigrid_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 1},
    {"MiniGrid-SimpleCrossingS9N2-v0", &minigrid_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 2},
    {"MiniGrid-SimpleCrossingS9N3-v0", &minigrid_crossing, 9, 9, .max_steps = 4 * 9 * 9, .count = 3},
    {"MiniGrid-Unlock-v0", &minigrid_unlock, 11, 6, .max_steps = 8 * 6 * 6},
    {"MiniGrid-UnlockPickup-v0", &minigrid_unlock_pickup, 11, 6, .max_steps = 8 * 6 * 6},
};
/* clang-format on */
#endif

enum { MINIGRID_LEVELS = sizeof minigrid_levels / sizeof *minigrid_levels };

static inline const MiniGridLevel *minigrid_level(const MiniGrid *env) {
    return &minigrid_levels[env->level];
}

/* ---- The mission --------------------------------------------------------------------------------------- */

static const char *const minigrid_kind_names[] = {
    [MINIGRID_DOOR] = "door", [MINIGRID_KEY] = "key", [MINIGRID_BALL] = "ball", [MINIGRID_BOX] = "box"};

static const char *const minigrid_color_names[] = {[MINIGRID_RED] = "red",       [MINIGRID_GREEN] = "green",
                                                   [MINIGRID_BLUE] = "blue",     [MINIGRID_PURPLE] = "purple",
                                                   [MINIGRID_YELLOW] = "yellow", [MINIGRID_GREY] = "grey"};

static inline size_t minigrid_append(char *text, size_t size, size_t length, const char *words) {
    while (*words != '\0' && length + 1 < size) text[length++] = *words++;
    text[length] = '\0';
    return length;
}

static inline size_t minigrid_append_object(char *text, size_t size, size_t length, MiniGridCell object) {
    length = minigrid_append(text, size, length, minigrid_color_names[object.color]);
    length = minigrid_append(text, size, length, " ");
    return minigrid_append(text, size, length, minigrid_kind_names[object.kind]);
}

/* Writes the mission of the episode, ended by 0 and at most `size` bytes long, where size > 0. The signs in a
 * world's mission are %o for `object`, %p for `other`, %c and %d for their colors, and %f for the words with
 * which a mission to fetch begins. */
static inline void minigrid_mission(const MiniGrid *env, char *text, size_t size) {
    static const char *const openings[] = {"get", "go get", "fetch", "go fetch", "you must fetch"};
    size_t length = 0;
    text[0] = '\0';
    for (const char *sign = minigrid_level(env)->world->mission; *sign != '\0'; sign++) {
        if (*sign != '%') {
            length = minigrid_append(text, size, length, (char[]){*sign, '\0'});
            continue;
        }
        sign++;
        if (*sign == 'o') length = minigrid_append_object(text, size, length, env->object);
        if (*sign == 'p') length = minigrid_append_object(text, size, length, env->other);
        if (*sign == 'c')
            length = minigrid_append(text, size, length, minigrid_color_names[env->object.color]);
        if (*sign == 'd')
            length = minigrid_append(text, size, length, minigrid_color_names[env->other.color]);
        if (*sign == 'f') length = minigrid_append(text, size, length, openings[env->opening]);
    }
}

#endif
