/* How BabyAI's levels are made: the package's RoomGridLevel. The levels are in errands.h, doors.h, keys.h and
 * grammar.h. */
#ifndef MINIGRID_BABYAI_H
#define MINIGRID_BABYAI_H

#include "follow.h"
#include "room_grid.h"

enum {
    MINIGRID_TRIES = 1000,     /* to place an object or the agent, after the first */
    MINIGRID_MAX_CHOICES = 64, /* objects and doors that an instruction can choose from */
    MINIGRID_MAX_CELLS = 22 * 22,
    MINIGRID_ANY_ROOM = -1,
};

/* A level while it is being made. The package rejects many drafts, and starts again each time with the random
 * numbers that follow. Here, a rejected draft is completed all the same, because that is simpler. The next
 * draft then continues with the generator as it was at the rejection. */
typedef struct {
    MiniGridRooms rooms;
    MiniGridPlace choices[MINIGRID_MAX_CHOICES];
    int32_t num_choices;
    uint32_t known; /* kinds and colors of objects in rooms, see minigrid_thing_bit */
    const MiniGridRoom *locked_room;
    bool is_rejected;
    PufferGenerator resumed;
} MiniGridDraft;

/* Makes a draft, whose cells have only the walls of the rooms, and its instruction. */
typedef void (*MiniGridDraftFunction)(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft);

static inline void minigrid_reject(const MiniGrid *env, MiniGridDraft *draft) {
    if (draft->is_rejected) return;
    draft->is_rejected = true;
    draft->resumed = env->generator;
}

static inline uint32_t minigrid_thing_bit(MiniGridCell thing) {
    return 1u << ((thing.kind - MINIGRID_KEY) * MINIGRID_COLORS + thing.color);
}

static inline MiniGridRoom *minigrid_room(MiniGridDraft *draft, int32_t column, int32_t row) {
    return &draft->rooms.rooms[row][column];
}

static inline bool minigrid_random_bool(MiniGrid *env) {
    return minigrid_random(env, 0, 2) == 0;
}

/* Draws `count` of the values in random order, and moves them to the front. */
static inline void minigrid_random_subset(MiniGrid *env, int32_t *values, int32_t size, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t drawn = minigrid_random(env, i, size), value = values[drawn];
        for (int32_t j = drawn; j > i; j--) values[j] = values[j - 1];
        values[i] = value;
    }
}

static inline void minigrid_random_subset_of_colors(MiniGrid *env, int32_t *colors, int32_t count) {
    for (int32_t i = 0; i < MINIGRID_COLORS; i++) colors[i] = minigrid_sorted_colors[i];
    minigrid_random_subset(env, colors, MINIGRID_COLORS, count);
}

/* ---- Placing ------------------------------------------------------------------------------------------- */

static inline void minigrid_choose_from(MiniGridDraft *draft, MiniGridPlace place) {
    if (draft->num_choices < MINIGRID_MAX_CHOICES) draft->choices[draft->num_choices++] = place;
}

/* Adds an object, not next to the agent. */
static inline MiniGridPlace minigrid_add_thing(MiniGrid *env, MiniGridDraft *draft, int32_t column,
                                               int32_t row, MiniGridCell thing) {
    const MiniGridArea room = minigrid_room(draft, column, row)->area;
    MiniGridPlace place;
    for (int32_t i = 0; i <= MINIGRID_TRIES; i++) {
        if (!minigrid_random_free(env, room, &place) || minigrid_steps(place, env->position) < 2) continue;
        *minigrid_at(env, place) = thing;
        draft->known |= minigrid_thing_bit(thing);
        return place;
    }
    minigrid_reject(env, draft);
    return place;
}

static inline MiniGridPlace minigrid_add_random_thing(MiniGrid *env, MiniGridDraft *draft, int32_t column,
                                                      int32_t row) {
    return minigrid_add_thing(env, draft, column, row, minigrid_random_thing(env, 3));
}

static inline MiniGridPlace minigrid_add_of_kind(MiniGrid *env, MiniGridDraft *draft, int32_t column,
                                                 int32_t row, int32_t kind) {
    return minigrid_add_thing(env, draft, column, row, minigrid_thing(kind, minigrid_random_color(env)));
}

/* Adds random objects to a room, or to random rooms, and to the choices. */
static inline void minigrid_add_distractors(MiniGrid *env, MiniGridDraft *draft, int32_t column, int32_t row,
                                            int32_t count, bool is_unique) {
    while (count > 0) {
        const int32_t color = minigrid_random_color(env);
        const MiniGridCell thing = minigrid_thing(MINIGRID_KEY + minigrid_random(env, 0, 3), color);
        if (is_unique && draft->known & minigrid_thing_bit(thing)) continue;
        const bool is_any = column == MINIGRID_ANY_ROOM;
        const int32_t x = is_any ? minigrid_random(env, 0, draft->rooms.columns) : column;
        const int32_t y = is_any ? minigrid_random(env, 0, draft->rooms.rows) : row;
        minigrid_choose_from(draft, minigrid_add_thing(env, draft, x, y, thing));
        count--;
    }
}

/* Moves the agent to a room, or to a random one. It faces nothing, or a wall. */
static inline void minigrid_start_in(MiniGrid *env, MiniGridDraft *draft, int32_t column, int32_t row) {
    if (column == MINIGRID_ANY_ROOM) {
        column = minigrid_random(env, 0, draft->rooms.columns);
        row = minigrid_random(env, 0, draft->rooms.rows);
    }
    const MiniGridArea room = minigrid_room(draft, column, row)->area;
    for (int32_t turns = 0; turns <= MINIGRID_TRIES; turns++) { /* the package would turn forever */
        MiniGridPlace place = {room.x + 1, room.y + 1};
        bool is_free = false;
        env->position = (MiniGridPlace){-1, -1};
        for (int32_t i = 0; i <= MINIGRID_TRIES && !is_free; i++)
            is_free = minigrid_random_free(env, room, &place);
        env->position = is_free ? place : (MiniGridPlace){room.x + 1, room.y + 1};
        if (!is_free) break;
        env->direction = minigrid_random(env, 0, MINIGRID_DIRECTIONS);
        const int32_t kind = minigrid_at(env, minigrid_front(env))->kind;
        if (kind == MINIGRID_EMPTY || kind == MINIGRID_WALL) return;
    }
    minigrid_reject(env, draft);
}

static inline void minigrid_start_anywhere(MiniGrid *env, MiniGridDraft *draft) {
    minigrid_start_in(env, draft, MINIGRID_ANY_ROOM, MINIGRID_ANY_ROOM);
}

/* Moves the agent to a random room other than the locked one. */
static inline void minigrid_start_outside(MiniGrid *env, MiniGridDraft *draft) {
    const int32_t pitch = draft->rooms.rooms[0][0].area.width - 1;
    do minigrid_start_anywhere(env, draft);
    while (!draft->is_rejected &&
           minigrid_room(draft, env->position.x / pitch, env->position.y / pitch) == draft->locked_room);
}

/* ---- Doors --------------------------------------------------------------------------------------------- */

/* Draws a wall that has a neighbor behind it and no door. */
static inline int32_t minigrid_random_wall(MiniGrid *env, MiniGridDraft *draft, int32_t column, int32_t row) {
    const MiniGridRoom *room = minigrid_room(draft, column, row);
    int32_t side;
    do side = minigrid_random(env, 0, MINIGRID_DIRECTIONS);
    while (!room->has_neighbor[side] || room->is_open[side]);
    return side;
}

/* Adds a door of random color in a random wall. */
static inline MiniGridPlace minigrid_add_random_door(MiniGrid *env, MiniGridDraft *draft, int32_t column,
                                                     int32_t row, int32_t state) {
    const int32_t side = minigrid_random_wall(env, draft, column, row), color = minigrid_random_color(env);
    return minigrid_add_door(env, &draft->rooms, column, row, side, minigrid_door(color, state));
}

static inline void minigrid_connect_rooms(MiniGrid *env, MiniGridDraft *draft, int32_t left_out) {
    if (!minigrid_connect_all(env, &draft->rooms, left_out)) minigrid_reject(env, draft);
}

static inline void minigrid_open_doors(MiniGrid *env) {
    for (int32_t i = 0; i < env->width * env->height; i++) {
        if (env->cells[i].kind == MINIGRID_DOOR) env->cells[i].state = MINIGRID_OPEN;
    }
}

/* ---- Checks -------------------------------------------------------------------------------------------- */

/* Returns true if every object and door can be reached without moving another object. Locked doors count as
 * open. */
static inline bool minigrid_are_reachable(const MiniGrid *env) {
    bool is_known[MINIGRID_MAX_CELLS] = {false};
    int32_t waiting[MINIGRID_MAX_CELLS], count = 0;
    const int32_t steps[] = {1, -1, env->width, -env->width};
    waiting[count++] = env->position.y * env->width + env->position.x;
    is_known[waiting[0]] = true;
    while (count > 0) {
        const int32_t at = waiting[--count], kind = env->cells[at].kind;
        if (kind != MINIGRID_EMPTY && kind != MINIGRID_DOOR) continue;
        for (int32_t side = 0; side < MINIGRID_DIRECTIONS; side++) {
            const int32_t next = at + steps[side];
            if (!is_known[next]) waiting[count++] = next;
            is_known[next] = true;
        }
    }
    for (int32_t i = 0; i < env->width * env->height; i++) {
        const int32_t kind = env->cells[i].kind;
        if (kind != MINIGRID_EMPTY && kind != MINIGRID_WALL && !is_known[i]) return false;
    }
    return true;
}

static inline void minigrid_require_reachable(const MiniGrid *env, MiniGridDraft *draft) {
    if (!minigrid_are_reachable(env)) minigrid_reject(env, draft);
}

/* Returns true if an object matches both descriptions of a clause, or is already where it should be put. */
static inline bool minigrid_is_put(MiniGrid *env, uint8_t object, uint8_t other) {
    for (int32_t i = 0; i < env->width * env->height; i++) {
        if (!(env->cells[i].inside & object)) continue;
        if (env->cells[i].inside & other) return true;
        if (minigrid_is_next_to(env, (MiniGridPlace){i % env->width, i / env->width}, other)) return true;
    }
    return false;
}

static inline void minigrid_validate(MiniGrid *env, MiniGridDraft *draft) {
    if (draft->is_rejected) return; /* its instruction may be about anything */
    for (int32_t i = 0; i < minigrid_num_parts(&env->instruction); i++) {
        const MiniGridPart *part = &env->instruction.parts[i];
        for (int32_t j = 0; j < part->count; j++) {
            const uint8_t object = minigrid_mark(i, j, false), other = minigrid_mark(i, j, true);
            if (part->clauses[j].verb == MINIGRID_PUTS_NEXT && minigrid_is_put(env, object, other))
                minigrid_reject(env, draft);
        }
    }
}

/* ---- Levels -------------------------------------------------------------------------------------------- */

static inline MiniGridDescription minigrid_describe_place(MiniGrid *env, MiniGridPlace place) {
    const MiniGridCell cell = *minigrid_at(env, place);
    return minigrid_describe(cell.kind, cell.color);
}

/* Describes one of the choices by its kind and color. */
static inline MiniGridDescription minigrid_describe_choice(MiniGrid *env, const MiniGridDraft *draft,
                                                           int32_t choice) {
    return minigrid_describe_place(env, draft->choices[choice]);
}

static inline MiniGridDescription minigrid_random_choice(MiniGrid *env, const MiniGridDraft *draft) {
    return minigrid_describe_choice(env, draft, minigrid_random(env, 0, draft->num_choices));
}

static inline MiniGridClause minigrid_put_next(MiniGridDescription object, MiniGridDescription other) {
    return (MiniGridClause){.verb = MINIGRID_PUTS_NEXT, .object = object, .other = other};
}

/* Sets the instruction to a single clause. */
static inline void minigrid_instruct(MiniGrid *env, MiniGridVerb verb, MiniGridDescription object) {
    env->instruction = minigrid_instruction(minigrid_clause(verb, object));
}

static inline void minigrid_make_draft(MiniGrid *env, const MiniGridLevel *level, MiniGridDraft *draft,
                                       MiniGridDraftFunction make) {
    minigrid_fill(env, minigrid_everywhere(env), minigrid_empty);
    *draft = (MiniGridDraft){.is_rejected = false};
    minigrid_make_rooms(env, level->room_size, &draft->rooms);
    env->direction = MINIGRID_EAST;
    make(env, level, draft);
    minigrid_mark_objects(env, level->room_size);
    minigrid_validate(env, draft);
    if (draft->is_rejected) env->generator = draft->resumed;
}

static inline void minigrid_make_babyai(MiniGrid *env, const MiniGridLevel *level,
                                        MiniGridDraftFunction make) {
    MiniGridDraft draft;
    do minigrid_make_draft(env, level, &draft, make);
    while (draft.is_rejected);
    env->has_emptied = false;
    env->own_max_steps = minigrid_num_ways(&env->instruction) * level->room_size * level->room_size *
                         draft.rooms.columns * draft.rooms.rows;
}

/* Defines the world minigrid_NAME, whose drafts minigrid_draft_NAME makes. */
#define MINIGRID_BABYAI(name)                                                            \
    static inline void minigrid_make_##name(MiniGrid *env, const MiniGridLevel *level) { \
        minigrid_make_babyai(env, level, minigrid_draft_##name);                         \
    }                                                                                    \
    static const MiniGridWorld minigrid_##name = {minigrid_make_##name, MINIGRID_FOLLOW, "", false}

#endif
