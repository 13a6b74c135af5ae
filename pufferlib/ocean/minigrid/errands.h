/* BabyAI's levels in which the agent goes to objects, picks them up, or puts them next to others. */
#ifndef MINIGRID_ERRANDS_H
#define MINIGRID_ERRANDS_H

#include "babyai.h"

/* ---- Go to an object, or pick it up -------------------------------------------------------------------- */

/* Objects in one or more rooms, of which the agent goes to one or picks it up. */
static inline void minigrid_draft_errand(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    minigrid_start_anywhere(env, draft);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_add_distractors(env, draft, MINIGRID_ANY_ROOM, MINIGRID_ANY_ROOM, level->count, false);
    if (minigrid_are_reachable(env) == level->is_blocked) minigrid_reject(env, draft);
    minigrid_instruct(env, level->verb, minigrid_random_choice(env, draft));
    if (level->are_open) minigrid_open_doors(env);
}

MINIGRID_BABYAI(errand);

static inline void minigrid_draft_red_ball(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    const MiniGridCell ball = minigrid_thing(MINIGRID_BALL, MINIGRID_RED);
    minigrid_start_anywhere(env, draft);
    minigrid_add_thing(env, draft, 0, 0, ball);
    minigrid_add_distractors(env, draft, 0, 0, level->count, false);
    minigrid_require_reachable(env, draft);
    minigrid_instruct(env, MINIGRID_GOES_TO, minigrid_describe(ball.kind, ball.color));
}

MINIGRID_BABYAI(red_ball);

static inline void minigrid_draft_red_ball_in_grey(MiniGrid *env, const MiniGridLevel *level,
                                                   MiniGridDraft *draft) {
    minigrid_draft_red_ball(env, level, draft);
    for (int32_t i = 0; i < draft->num_choices; i++)
        minigrid_at(env, draft->choices[i])->color = MINIGRID_GREY;
}

MINIGRID_BABYAI(red_ball_in_grey);

/* A red or a blue ball, and objects that are neither. */
static inline void minigrid_draft_red_or_blue_ball(MiniGrid *env, const MiniGridLevel *level,
                                                   MiniGridDraft *draft) {
    const MiniGridCell red = minigrid_thing(MINIGRID_BALL, MINIGRID_RED),
                       blue = minigrid_thing(MINIGRID_BALL, MINIGRID_BLUE);
    minigrid_start_anywhere(env, draft);
    minigrid_add_distractors(env, draft, 0, 0, level->count, false);
    if (draft->known & (minigrid_thing_bit(red) | minigrid_thing_bit(blue))) minigrid_reject(env, draft);
    const MiniGridCell ball = minigrid_random(env, 0, 2) == 0 ? red : blue;
    minigrid_add_thing(env, draft, 0, 0, ball);
    minigrid_require_reachable(env, draft);
    minigrid_instruct(env, MINIGRID_GOES_TO, minigrid_describe(ball.kind, ball.color));
}

MINIGRID_BABYAI(red_or_blue_ball);

/* Several objects in a room. The agent picks up one that is given by its kind, its color or both. */
static inline void minigrid_draft_given_by(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    enum { BY_KIND, BY_COLOR, WAYS = 3 };
    minigrid_add_distractors(env, draft, 0, 0, level->count, true);
    minigrid_start_in(env, draft, 0, 0);
    MiniGridDescription object = minigrid_random_choice(env, draft);
    const int32_t way = minigrid_random(env, 0, WAYS);
    if (way == BY_COLOR) object.kind = MINIGRID_ANY;
    if (way == BY_KIND) object.color = MINIGRID_ANY;
    minigrid_instruct(env, MINIGRID_PICKS_UP, object);
    env->instruction.parts[0].clauses[0].is_strict = level->is_strict;
}

MINIGRID_BABYAI(given_by);

static inline void minigrid_draft_above(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    (void)level;
    const MiniGridPlace place = minigrid_add_random_thing(env, draft, 1, 0);
    minigrid_add_door(env, &draft->rooms, 1, 1, MINIGRID_NORTH,
                      minigrid_door(minigrid_random_color(env), MINIGRID_CLOSED));
    minigrid_start_in(env, draft, 1, 1);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_instruct(env, MINIGRID_PICKS_UP, minigrid_describe_place(env, place));
}

MINIGRID_BABYAI(above);

/* One object in any room. */
static inline void minigrid_draft_find(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    (void)level;
    const int32_t column = minigrid_random(env, 0, draft->rooms.columns),
                  row = minigrid_random(env, 0, draft->rooms.rows);
    const MiniGridPlace place = minigrid_add_random_thing(env, draft, column, row);
    minigrid_start_in(env, draft, 1, 1);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_instruct(env, MINIGRID_PICKS_UP, minigrid_describe(minigrid_at(env, place)->kind, MINIGRID_ANY));
}

MINIGRID_BABYAI(find);

static inline void minigrid_draft_ball(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    (void)level;
    minigrid_add_of_kind(env, draft, 0, 0, MINIGRID_BALL);
    minigrid_start_anywhere(env, draft);
    minigrid_instruct(env, MINIGRID_PICKS_UP, minigrid_describe(MINIGRID_BALL, MINIGRID_ANY));
}

MINIGRID_BABYAI(ball);

/* ---- Put an object next to another --------------------------------------------------------------------- */

static inline void minigrid_draft_put_in_room(MiniGrid *env, const MiniGridLevel *level,
                                              MiniGridDraft *draft) {
    int32_t chosen[MINIGRID_MAX_CHOICES];
    minigrid_start_anywhere(env, draft);
    minigrid_add_distractors(env, draft, 0, 0, level->count, true);
    minigrid_require_reachable(env, draft);
    for (int32_t i = 0; i < level->count; i++) chosen[i] = i;
    minigrid_random_subset(env, chosen, level->count, 2);
    env->instruction = minigrid_instruction(minigrid_put_next(
        minigrid_describe_choice(env, draft, chosen[0]), minigrid_describe_choice(env, draft, chosen[1])));
}

MINIGRID_BABYAI(put_in_room);

/* Fills two rooms with `count` objects each, and removes the wall between them. */
static inline void minigrid_fill_two_rooms(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    minigrid_start_in(env, draft, 0, 0);
    minigrid_add_distractors(env, draft, 0, 0, level->count, true);
    minigrid_add_distractors(env, draft, 1, 0, level->count, true);
    minigrid_fill_column(env, level->room_size - 1, 1, level->room_size - 2, minigrid_empty);
    minigrid_connect(&draft->rooms, 0, 0, MINIGRID_EAST);
}

/* Puts an object of one half next to one of the other. */
static inline void minigrid_draft_put_across(MiniGrid *env, const MiniGridLevel *level,
                                             MiniGridDraft *draft) {
    minigrid_fill_two_rooms(env, level, draft);
    int32_t moved = minigrid_random(env, 0, level->count),
            other = level->count + minigrid_random(env, 0, level->count);
    if (minigrid_random_bool(env)) {
        const int32_t first = moved;
        moved = other;
        other = first;
    }
    env->target = draft->choices[moved];
    env->instruction = minigrid_instruction(minigrid_put_next(minigrid_describe_choice(env, draft, moved),
                                                              minigrid_describe_choice(env, draft, other)));
}

MINIGRID_BABYAI(put_across);

/* Puts an object of the left half next to one of the right, then another one of the right half next to
 * another one of the left. */
static inline void minigrid_draft_put_two_across(MiniGrid *env, const MiniGridLevel *level,
                                                 MiniGridDraft *draft) {
    int32_t left[MINIGRID_MAX_CHOICES], right[MINIGRID_MAX_CHOICES];
    minigrid_fill_two_rooms(env, level, draft);
    for (int32_t i = 0; i < level->count; i++) {
        left[i] = i;
        right[i] = level->count + i;
    }
    minigrid_random_subset(env, left, level->count, 2);
    minigrid_random_subset(env, right, level->count, 2);
    const MiniGridClause first = minigrid_put_next(minigrid_describe_choice(env, draft, left[0]),
                                                   minigrid_describe_choice(env, draft, right[0]));
    const MiniGridClause second = minigrid_put_next(minigrid_describe_choice(env, draft, right[1]),
                                                    minigrid_describe_choice(env, draft, left[1]));
    env->instruction =
        (MiniGridInstruction){.parts = {minigrid_part(first), minigrid_part(second)}, .order = MINIGRID_THEN};
}

MINIGRID_BABYAI(put_two_across);

#endif
