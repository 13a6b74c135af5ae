/* BabyAI's levels in which the agent goes to doors, opens or unlocks them. */
#ifndef MINIGRID_DOORS_H
#define MINIGRID_DOORS_H

#include "babyai.h"

enum {
    MINIGRID_MIDDLE = 1, /* row and column of the room in the middle */
    MINIGRID_WALLS = 4,
};

static inline int32_t minigrid_random_lock(MiniGrid *env) {
    return minigrid_random_bool(env) ? MINIGRID_LOCKED : MINIGRID_CLOSED;
}

/* Adds doors to all walls of the room in the middle, and to the choices. */
static inline void minigrid_add_doors(MiniGrid *env, MiniGridDraft *draft, bool can_be_locked) {
    for (int32_t i = 0; i < MINIGRID_WALLS; i++) {
        const MiniGridPlace place =
            minigrid_add_random_door(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, MINIGRID_CLOSED);
        if (can_be_locked) minigrid_at(env, place)->state = (uint8_t)minigrid_random_lock(env);
        minigrid_choose_from(draft, place);
    }
}

/* ---- Go to doors --------------------------------------------------------------------------------------- */

static inline void minigrid_draft_go_to_wall(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    (void)level;
    minigrid_add_doors(env, draft, true);
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_instruct(env, MINIGRID_GOES_TO, minigrid_random_choice(env, draft));
}

MINIGRID_BABYAI(go_to_wall);

static inline void minigrid_draft_go_to_any(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_add_distractors(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, level->count, false);
    minigrid_add_doors(env, draft, true);
    minigrid_require_reachable(env, draft);
    minigrid_instruct(env, MINIGRID_GOES_TO, minigrid_random_choice(env, draft));
}

MINIGRID_BABYAI(go_to_any);

/* Objects and doors, to go to one, or to pick it up or open it. */
static inline void minigrid_draft_act_on_any(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    minigrid_add_distractors(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE, level->count, true);
    minigrid_add_doors(env, draft, false);
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    const MiniGridDescription object = minigrid_random_choice(env, draft);
    const MiniGridVerb other = object.kind == MINIGRID_DOOR ? MINIGRID_OPENS : MINIGRID_PICKS_UP;
    minigrid_instruct(env, minigrid_random_bool(env) ? MINIGRID_GOES_TO : other, object);
}

MINIGRID_BABYAI(act_on_any);

/* ---- Open doors ---------------------------------------------------------------------------------------- */

/* One of the doors of a maze. Each door is twice in the choices, once for each of its rooms. */
static inline void minigrid_draft_open_any(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    minigrid_start_anywhere(env, draft);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_add_distractors(env, draft, MINIGRID_ANY_ROOM, MINIGRID_ANY_ROOM, level->count, false);
    minigrid_require_reachable(env, draft);
    draft->num_choices = 0;
    for (int32_t column = 0; column < draft->rooms.columns; column++) {
        for (int32_t row = 0; row < draft->rooms.rows; row++) {
            const MiniGridRoom *room = minigrid_room(draft, column, row);
            for (int32_t side = 0; side < MINIGRID_DIRECTIONS; side++) {
                if (room->is_open[side]) minigrid_choose_from(draft, room->doors[side]);
            }
        }
    }
    minigrid_instruct(env, MINIGRID_OPENS, minigrid_random_choice(env, draft));
}

MINIGRID_BABYAI(open_any);

static inline void minigrid_draft_open_red(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    (void)level;
    minigrid_add_door(env, &draft->rooms, 0, 0, MINIGRID_EAST, minigrid_door(MINIGRID_RED, MINIGRID_CLOSED));
    minigrid_start_in(env, draft, 0, 0);
    minigrid_instruct(env, MINIGRID_OPENS, minigrid_describe(MINIGRID_DOOR, MINIGRID_RED));
}

MINIGRID_BABYAI(open_red);

/* Doors of different colors in all walls. The one to open is given by its color, or by where it is. */
static inline void minigrid_open_wall_by(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft,
                                         bool has_color, bool has_place) {
    int32_t colors[MINIGRID_COLORS];
    minigrid_random_subset_of_colors(env, colors, MINIGRID_WALLS);
    for (int32_t side = 0; side < MINIGRID_WALLS; side++)
        minigrid_add_door(env, &draft->rooms, MINIGRID_MIDDLE, MINIGRID_MIDDLE, side,
                          minigrid_door(colors[side], MINIGRID_CLOSED));
    const bool is_by_color = has_color && (!has_place || minigrid_random(env, 0, 2) == 0);
    MiniGridDescription door = minigrid_describe(MINIGRID_DOOR, is_by_color ? colors[0] : MINIGRID_ANY);
    if (!is_by_color) door.location = (int8_t)minigrid_random(env, 0, MINIGRID_LOCATIONS);
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_instruct(env, MINIGRID_OPENS, door);
    env->instruction.parts[0].clauses[0].is_strict = level->is_strict;
}

static inline void minigrid_draft_open_one(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    minigrid_open_wall_by(env, level, draft, true, true);
}

static inline void minigrid_draft_open_color(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    minigrid_open_wall_by(env, level, draft, true, false);
}

static inline void minigrid_draft_open_place(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    minigrid_open_wall_by(env, level, draft, false, true);
}

MINIGRID_BABYAI(open_one);
MINIGRID_BABYAI(open_color);
MINIGRID_BABYAI(open_place);

/* Sets the instruction to open two doors. */
static inline void minigrid_open_both(MiniGrid *env, MiniGridOrder order, MiniGridDescription first,
                                      bool is_first_strict, MiniGridDescription second,
                                      bool is_second_strict) {
    MiniGridClause one = minigrid_clause(MINIGRID_OPENS, first),
                   two = minigrid_clause(MINIGRID_OPENS, second);
    one.is_strict = is_first_strict;
    two.is_strict = is_second_strict;
    env->instruction =
        (MiniGridInstruction){.parts = {minigrid_part(one), minigrid_part(two)}, .order = order};
}

/* A door in the west, then one in the east. */
static inline void minigrid_open_west_and_east(MiniGrid *env, const MiniGridLevel *level,
                                               MiniGridDraft *draft, int32_t west, int32_t east) {
    minigrid_add_door(env, &draft->rooms, MINIGRID_MIDDLE, MINIGRID_MIDDLE, MINIGRID_WEST,
                      minigrid_door(west, MINIGRID_CLOSED));
    minigrid_add_door(env, &draft->rooms, MINIGRID_MIDDLE, MINIGRID_MIDDLE, MINIGRID_EAST,
                      minigrid_door(east, MINIGRID_CLOSED));
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_open_both(env, MINIGRID_THEN, minigrid_describe(MINIGRID_DOOR, west), level->is_strict,
                       minigrid_describe(MINIGRID_DOOR, east), false);
}

static inline void minigrid_draft_open_opposite(MiniGrid *env, const MiniGridLevel *level,
                                                MiniGridDraft *draft) {
    int32_t colors[MINIGRID_COLORS];
    minigrid_random_subset_of_colors(env, colors, 2);
    minigrid_open_west_and_east(env, level, draft, colors[0], colors[1]);
}

/* The package draws colors here, too. */
static inline void minigrid_draft_open_red_then_blue(MiniGrid *env, const MiniGridLevel *level,
                                                     MiniGridDraft *draft) {
    int32_t unused[MINIGRID_COLORS];
    minigrid_random_subset_of_colors(env, unused, 2);
    minigrid_open_west_and_east(env, level, draft, MINIGRID_RED, MINIGRID_BLUE);
}

MINIGRID_BABYAI(open_opposite);
MINIGRID_BABYAI(open_red_then_blue);

/* Opens one of `count` doors, or two of them in an order. */
static inline void minigrid_draft_open_in_order(MiniGrid *env, const MiniGridLevel *level,
                                                MiniGridDraft *draft) {
    enum { ORDERS = 3 };
    int32_t colors[MINIGRID_COLORS], doors[MINIGRID_WALLS];
    minigrid_random_subset_of_colors(env, colors, level->count);
    for (int32_t i = 0; i < level->count; i++) {
        const int32_t side = minigrid_random_wall(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
        minigrid_add_door(env, &draft->rooms, MINIGRID_MIDDLE, MINIGRID_MIDDLE, side,
                          minigrid_door(colors[i], MINIGRID_CLOSED));
        doors[i] = colors[i];
    }
    minigrid_start_in(env, draft, MINIGRID_MIDDLE, MINIGRID_MIDDLE);
    minigrid_random_subset(env, doors, level->count, 2);
    minigrid_open_both(env, (MiniGridOrder)minigrid_random(env, 0, ORDERS),
                       minigrid_describe(MINIGRID_DOOR, doors[0]), level->is_strict,
                       minigrid_describe(MINIGRID_DOOR, doors[1]), level->is_strict);
}

MINIGRID_BABYAI(open_in_order);

#endif
