/* BabyAI's levels with random sentences: the package's LevelGen. */
#ifndef MINIGRID_GRAMMAR_H
#define MINIGRID_GRAMMAR_H

#include "babyai.h"

/* Which sentences a level has. */
struct MiniGridGrammar {
    double locked_share; /* probability of a locked room */
    bool has_locations;  /* descriptions can tell where an object is */
    bool needs_unblock;  /* objects can be in the way */
    bool needs_unlock;   /* a locked door may have to be opened without being named */
    bool has_sequences;  /* sentences can have several clauses */
    bool has_one_verb;   /* all clauses have the verb of the level */
};

/* ---- Random sentences ---------------------------------------------------------------------------------- */

/* Returns true if an object matches. If a level needs no unlocking, it must be outside the locked room. */
static inline bool minigrid_has_match(const MiniGrid *env, const MiniGridLevel *level,
                                      const MiniGridDraft *draft, MiniGridDescription wanted) {
    const MiniGridRoom *locked = level->grammar->needs_unlock ? NULL : draft->locked_room;
    for (int32_t y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++) {
            const MiniGridPlace place = {x, y};
            if (!minigrid_matches(env, level->room_size, wanted, place)) continue;
            if (locked == NULL || !minigrid_is_inside(locked->area, place)) return true;
        }
    }
    return false;
}

/* Draws the description of an object that exists. `kinds` is 1 for doors, 3 for objects, 4 for both. */
static inline MiniGridDescription minigrid_random_description(MiniGrid *env, const MiniGridLevel *level,
                                                              MiniGridDraft *draft, int32_t kinds) {
    enum { TRIES = 100, DOORS = 1 };
    static const int8_t sorted[] = {MINIGRID_BOX, MINIGRID_BALL, MINIGRID_KEY, MINIGRID_DOOR};
    MiniGridDescription wanted = minigrid_describe(MINIGRID_DOOR, MINIGRID_ANY);
    for (int32_t i = 0; i <= TRIES; i++) {
        const int32_t color = minigrid_random(env, 0, 1 + MINIGRID_COLORS),
                      kind = minigrid_random(env, 0, kinds);
        wanted.color = (int8_t)(color == 0 ? MINIGRID_ANY : minigrid_sorted_colors[color - 1]);
        wanted.kind = kinds == DOORS ? MINIGRID_DOOR : sorted[kind];
        wanted.location = MINIGRID_ANYWHERE;
        if (level->grammar->has_locations && minigrid_random_bool(env))
            wanted.location = (int8_t)minigrid_random(env, 0, MINIGRID_LOCATIONS);
        if (minigrid_has_match(env, level, draft, wanted)) return wanted;
    }
    minigrid_reject(env, draft);
    return wanted;
}

static inline MiniGridClause minigrid_random_clause(MiniGrid *env, const MiniGridLevel *level,
                                                    MiniGridDraft *draft) {
    enum { DOORS = 1, OBJECTS = 3, BOTH = 4 };
    static const int32_t kinds[] = {[MINIGRID_GOES_TO] = BOTH,
                                    [MINIGRID_PICKS_UP] = OBJECTS,
                                    [MINIGRID_OPENS] = DOORS,
                                    [MINIGRID_PUTS_NEXT] = OBJECTS};
    const int32_t verb =
        level->grammar->has_one_verb ? (int32_t)level->verb : minigrid_random(env, 0, MINIGRID_VERBS);
    MiniGridClause clause =
        minigrid_clause(verb, minigrid_random_description(env, level, draft, kinds[verb]));
    if (verb == MINIGRID_PUTS_NEXT) clause.other = minigrid_random_description(env, level, draft, BOTH);
    return clause;
}

static inline MiniGridPart minigrid_random_part(MiniGrid *env, const MiniGridLevel *level,
                                                MiniGridDraft *draft, int32_t count) {
    MiniGridPart part = {.count = count};
    for (int32_t i = 0; i < count; i++) part.clauses[i] = minigrid_random_clause(env, level, draft);
    return part;
}

/* Draws a clause, two clauses, or two parts of one or two clauses. */
static inline MiniGridInstruction minigrid_random_sentence(MiniGrid *env, const MiniGridLevel *level,
                                                           MiniGridDraft *draft) {
    enum { SEQUENCE = 3 };
    MiniGridInstruction instruction = {.order = MINIGRID_ALONE};
    const int32_t kind = level->grammar->has_sequences ? 1 + minigrid_random(env, 0, SEQUENCE) : 1;
    if (kind < SEQUENCE) {
        instruction.parts[0] = minigrid_random_part(env, level, draft, kind);
        return instruction;
    }
    for (int32_t i = 0; i < MINIGRID_MAX_PARTS; i++)
        instruction.parts[i] = minigrid_random_part(env, level, draft, 1 + minigrid_random(env, 0, 2));
    instruction.order = minigrid_random(env, 0, 2) == 0 ? MINIGRID_THEN : MINIGRID_AFTER;
    return instruction;
}

/* ---- Levels -------------------------------------------------------------------------------------------- */

/* Locks a random room, and adds its key to another one. */
static inline void minigrid_add_locked_room(MiniGrid *env, MiniGridDraft *draft) {
    int32_t column, row, side;
    do {
        column = minigrid_random(env, 0, draft->rooms.columns);
        row = minigrid_random(env, 0, draft->rooms.rows);
        side = minigrid_random(env, 0, MINIGRID_DIRECTIONS);
        draft->locked_room = minigrid_room(draft, column, row);
    } while (!draft->locked_room->has_neighbor[side]);
    const int32_t color = minigrid_random_color(env);
    minigrid_add_door(env, &draft->rooms, column, row, side, minigrid_door(color, MINIGRID_LOCKED));
    do {
        column = minigrid_random(env, 0, draft->rooms.columns);
        row = minigrid_random(env, 0, draft->rooms.rows);
    } while (minigrid_room(draft, column, row) == draft->locked_room);
    minigrid_add_thing(env, draft, column, row, minigrid_thing(MINIGRID_KEY, color));
}

/* Returns true if a description names the color of a key that opens a locked door. */
static inline bool minigrid_names_key(const MiniGrid *env, MiniGridDescription object) {
    if (object.kind != MINIGRID_KEY) return false;
    for (int32_t i = 0; i < env->width * env->height; i++) {
        const MiniGridCell cell = env->cells[i];
        if (cell.kind == MINIGRID_DOOR && cell.state == MINIGRID_LOCKED && cell.color == object.color)
            return true;
    }
    return false;
}

/* Rejects sentences about keys that are needed. */
static inline void minigrid_reject_keys(const MiniGrid *env, MiniGridDraft *draft) {
    for (int32_t i = 0; i < minigrid_num_parts(&env->instruction); i++) {
        const MiniGridPart *part = &env->instruction.parts[i];
        for (int32_t j = 0; j < part->count; j++) {
            const MiniGridClause *clause = &part->clauses[j];
            const bool is_put = clause->verb == MINIGRID_PUTS_NEXT;
            if (minigrid_names_key(env, clause->object) || (is_put && minigrid_names_key(env, clause->other)))
                minigrid_reject(env, draft);
        }
    }
}

static inline void minigrid_draft_sentence(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft) {
    const MiniGridGrammar *grammar = level->grammar;
    if (puffer_unit(&env->generator) < grammar->locked_share) minigrid_add_locked_room(env, draft);
    minigrid_connect_rooms(env, draft, MINIGRID_ANY);
    minigrid_add_distractors(env, draft, MINIGRID_ANY_ROOM, MINIGRID_ANY_ROOM, level->count, false);
    minigrid_start_outside(env, draft);
    if (!grammar->needs_unblock) minigrid_require_reachable(env, draft);
    env->instruction = minigrid_random_sentence(env, level, draft);
    if (grammar->needs_unblock) minigrid_reject_keys(env, draft);
}

MINIGRID_BABYAI(sentence);

static const MiniGridGrammar minigrid_go_to_sequence = {
    .needs_unlock = true, .has_sequences = true, .has_one_verb = true};
static const MiniGridGrammar minigrid_pick_up_located = {
    .has_locations = true, .needs_unlock = true, .has_one_verb = true};
static const MiniGridGrammar minigrid_synth = {.locked_share = 0.5, .needs_unblock = true};
static const MiniGridGrammar minigrid_synth_located = {
    .locked_share = 0.5, .has_locations = true, .needs_unblock = true};
static const MiniGridGrammar minigrid_synth_sequence = {
    .locked_share = 0.5, .has_locations = true, .needs_unblock = true, .has_sequences = true};
static const MiniGridGrammar minigrid_boss = {.locked_share = 0.5,
                                              .has_locations = true,
                                              .needs_unblock = true,
                                              .needs_unlock = true,
                                              .has_sequences = true};
static const MiniGridGrammar minigrid_mini_boss = {.locked_share = 0.25,
                                                   .has_locations = true,
                                                   .needs_unblock = true,
                                                   .needs_unlock = true,
                                                   .has_sequences = true};
static const MiniGridGrammar minigrid_boss_without_lock = {
    .has_locations = true, .needs_unblock = true, .has_sequences = true};

#endif
