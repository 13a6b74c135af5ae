/* BabyAI's levels in which the agent needs a key. */
#ifndef MINIGRID_KEYS_H
#define MINIGRID_KEYS_H

#include "doors.h"

/* ---- A maze with a locked room ------------------------------------------------------------------------- */

/* Locks a random room, and adds its key to any room. It can be the locked one, because the package compares
 * two NumPy integers with "is", which is never true. Returns the color of the door. */
static inline int32_t minigrid_lock_random_room(MiniGrid *env, MiniGridDraft *draft, int32_t *column,
                                                int32_t *row) {
    *column = minigrid_random(env, 0, draft->rooms.columns);
    *row = minigrid_random(env, 0, draft->rooms.rows);
    draft->locked_room = minigrid_room(draft, *column, *row);
    const int32_t color =
        minigrid_at(env, minigrid_add_random_door(env, draft, *column, *row, MINIGRID_LOCKED))->color;
    const int32_t x = minigrid_random(env, 0, draft->rooms.columns),
                  y = minigrid_random(env, 0, draft->rooms.rows);
    minigrid_add_thing(env, draft, x, y, minigrid_thing(MINIGRID_KEY, color));
    return color;
}

/* Adds `count` objects to every room. */
static inline void minigrid_add_everywhere(MiniGrid *env, MiniGridDraft *draft, int32_t count) {
    for (int32_t column = 0; column < draft->rooms.columns; column++) {
        for (int32_t row = 0; row < draft->rooms.rows; row++)
            minigrid_add_distractors(env, draft, column, row, count, false);
    }
}

static inline void minigrid_draft_unlock_room(MiniGrid *env, const MiniGridLevel *level,
                                              MiniGridDraft *draft) {
    int32_t column, row;
    const int32_t color = minigrid_lock_random_room(env, draft, &column, &row);
    minigrid_connect_rooms(env, draft, minigrid_random_bool(env) ? color : MINIGRID_ANY);
    minigrid_add_everywhere(env, draft, level->count);
    minigrid_start_outside(env, draft);
    minigrid_require_reachable(env, draft);
    minigrid_instruct(env, MINIGRID_OPENS, minigrid_describe(MINIGRID_DOOR, color));
}

MINIGRID_BABYAI(unlock_room);

/* The agent goes to an object in the locked room, or to one like it. */
static inline void minigrid_draft_enter_room(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    int32_t column, row;
    minigrid_lock_random_room(env, draft, &column, &row);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_add_everywhere(env, draft, level->count);
    minigrid_start_outside(env, draft);
    minigrid_require_reachable(env, draft);
    minigrid_add_distractors(env, draft, column, row, 1, false);
    minigrid_instruct(env, MINIGRID_GOES_TO, minigrid_describe_choice(env, draft, draft->num_choices - 1));
}

MINIGRID_BABYAI(enter_room);

/* ---- The room in the middle ---------------------------------------------------------------------------- */

static inline void minigrid_draft_unlock_wall(MiniGrid *env, const MiniGridLevel *level,
                                              MiniGridDraft *draft) {
    const MiniGridPlace door =
        minigrid_add_random_door(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, MINIGRID_LOCKED);
    MiniGridCell key = minigrid_thing(MINIGRID_KEY, minigrid_at(env, door)->color);
    if (level->is_boxed)
        key = (MiniGridCell){MINIGRID_BOX, (uint8_t)minigrid_random_color(env), 0, (uint8_t)(1 + key.color)};
    minigrid_add_thing(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, key);
    minigrid_add_distractors(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, level->count, true);
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_instruct(env, MINIGRID_OPENS, minigrid_describe(MINIGRID_DOOR, MINIGRID_ANY));
}

MINIGRID_BABYAI(unlock_wall);

/* ---- Rooms in a row ------------------------------------------------------------------------------------ */

/* Picks up a box behind a locked door. */
static inline void minigrid_draft_unlock_box(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    const MiniGridPlace box = minigrid_add_of_kind(env, draft, 1, 0, MINIGRID_BOX);
    const MiniGridCell locked = minigrid_door(minigrid_random_color(env), MINIGRID_LOCKED);
    const MiniGridPlace door = minigrid_add_door(env, &draft->rooms, 0, 0, MINIGRID_EAST, locked);
    MiniGridDescription object = minigrid_describe_place(env, box);
    if (level->is_blocked) {
        minigrid_put(env, door.x - 1, door.y, minigrid_thing(MINIGRID_BALL, minigrid_random_color(env)));
        object.color = MINIGRID_ANY;
    }
    minigrid_add_thing(env, draft, 0, 0, minigrid_thing(MINIGRID_KEY, locked.color));
    minigrid_add_distractors(env, draft, MINIGRID_ANY_ROOM, MINIGRID_ANY_ROOM, level->count, true);
    minigrid_start_in(env, draft, 0, 0);
    minigrid_instruct(env, MINIGRID_PICKS_UP, object);
}

MINIGRID_BABYAI(unlock_box);

/* The key to the ball's room is in a room whose key is with the agent. */
static inline void minigrid_draft_unlock_twice(MiniGrid *env, const MiniGridLevel *level,
                                               MiniGridDraft *draft) {
    (void)level;
    int32_t colors[MINIGRID_COLORS];
    minigrid_random_subset_of_colors(env, colors, 2);
    for (int32_t i = 0; i < 2; i++) {
        minigrid_add_door(env, &draft->rooms, i, 0, MINIGRID_EAST, minigrid_door(colors[i], MINIGRID_LOCKED));
        minigrid_add_thing(env, draft, 2 - i, 0, minigrid_thing(MINIGRID_KEY, colors[i]));
    }
    minigrid_add_of_kind(env, draft, 0, 0, MINIGRID_BALL);
    minigrid_start_in(env, draft, 1, 0);
    minigrid_instruct(env, MINIGRID_PICKS_UP, minigrid_describe(MINIGRID_BALL, MINIGRID_ANY));
}

MINIGRID_BABYAI(unlock_twice);

/* MiniGrid's KeyCorridor with the ball's kind as the instruction. */
static inline void minigrid_draft_corridor(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    (void)level;
    minigrid_open_hallway(env, &draft->rooms);
    const int32_t row = minigrid_random(env, 0, draft->rooms.rows), color = minigrid_random_color(env);
    minigrid_add_door(env, &draft->rooms, 2, row, MINIGRID_WEST, minigrid_door(color, MINIGRID_LOCKED));
    minigrid_add_of_kind(env, draft, 2, row, MINIGRID_BALL);
    minigrid_add_thing(env, draft, 0, minigrid_random(env, 0, draft->rooms.rows),
                       minigrid_thing(MINIGRID_KEY, color));
    minigrid_start_in(env, draft, 1, draft->rooms.rows / 2);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_instruct(env, MINIGRID_PICKS_UP, minigrid_describe(MINIGRID_BALL, MINIGRID_ANY));
}

MINIGRID_BABYAI(corridor);

#endif
