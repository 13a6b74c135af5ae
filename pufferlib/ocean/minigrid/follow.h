/* Which objects an instruction of BabyAI means, and whether the agent has followed it.
 *
 * The package remembers the objects that match a description when the episode starts, and their places. It
 * updates the places only when the agent drops something. Until then, an object counts as being where it was
 * picked up, or where a box was opened. Here, each cell has a mark for each description: the byte `inside` of
 * its MiniGridCell. Objects keep their marks when they move, and emptied cells keep theirs until the next
 * drop. */
#ifndef MINIGRID_FOLLOW_H
#define MINIGRID_FOLLOW_H

#include "grid.h"

/* Returns the bit of a description in the marks of a cell. */
static inline uint8_t minigrid_mark(int32_t part, int32_t clause, bool is_other) {
    return (uint8_t)(1 << ((part * MINIGRID_MAX_CLAUSES + clause) * 2 + is_other));
}

/* ---- Descriptions -------------------------------------------------------------------------------------- */

static inline bool minigrid_is_inside(MiniGridArea area, MiniGridPlace place) {
    return place.x >= area.x && place.x < area.x + area.width && place.y >= area.y &&
           place.y < area.y + area.height;
}

/* Returns the room in which the agent is, with its walls. */
static inline MiniGridArea minigrid_agent_room(const MiniGrid *env, int32_t room_size) {
    const int32_t pitch = room_size - 1;
    return (MiniGridArea){env->position.x / pitch * pitch, env->position.y / pitch * pitch, room_size,
                          room_size};
}

/* Returns true if a place is in the agent's room and on that side of the agent. */
static inline bool minigrid_is_located(const MiniGrid *env, int32_t room_size, int32_t location,
                                       MiniGridPlace place) {
    const MiniGridPlace step = minigrid_next((MiniGridPlace){0, 0}, env->direction);
    const int32_t dx = place.x - env->position.x, dy = place.y - env->position.y;
    const int32_t ahead = step.x * dx + step.y * dy, right = step.x * dy - step.y * dx;
    if (!minigrid_is_inside(minigrid_agent_room(env, room_size), place)) return false;
    switch (location) {
        case MINIGRID_ON_LEFT:
            return right < 0;
        case MINIGRID_ON_RIGHT:
            return right > 0;
        case MINIGRID_IN_FRONT:
            return ahead > 0;
        default:
            return ahead < 0;
    }
}

/* A description of any kind matches walls too. */
static inline bool minigrid_matches(const MiniGrid *env, int32_t room_size, MiniGridDescription wanted,
                                    MiniGridPlace place) {
    const MiniGridCell cell = env->cells[place.y * env->width + place.x];
    if (cell.kind == MINIGRID_EMPTY) return false;
    if (wanted.kind != MINIGRID_ANY && cell.kind != wanted.kind) return false;
    if (wanted.color != MINIGRID_ANY && cell.color != wanted.color) return false;
    return wanted.location == MINIGRID_ANYWHERE ||
           minigrid_is_located(env, room_size, wanted.location, place);
}

static inline void minigrid_mark_matches(MiniGrid *env, int32_t room_size, MiniGridDescription *wanted,
                                         uint8_t mark) {
    int32_t count = 0;
    for (int32_t y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++) {
            if (!minigrid_matches(env, room_size, *wanted, (MiniGridPlace){x, y})) continue;
            minigrid_at(env, (MiniGridPlace){x, y})->inside |= mark;
            count++;
        }
    }
    wanted->is_plural = count > 1;
}

/* Marks the objects of the instruction, when the episode starts. */
static inline void minigrid_mark_objects(MiniGrid *env, int32_t room_size) {
    for (int32_t i = 0; i < minigrid_num_parts(&env->instruction); i++) {
        MiniGridPart *part = &env->instruction.parts[i];
        for (int32_t j = 0; j < part->count; j++) {
            MiniGridClause *clause = &part->clauses[j];
            minigrid_mark_matches(env, room_size, &clause->object, minigrid_mark(i, j, false));
            if (clause->verb == MINIGRID_PUTS_NEXT)
                minigrid_mark_matches(env, room_size, &clause->other, minigrid_mark(i, j, true));
        }
    }
}

/* Forgets where objects were. */
static inline void minigrid_forget_places(MiniGrid *env) {
    if (!env->has_emptied) return;
    env->has_emptied = false;
    for (int32_t i = 0; i < env->width * env->height; i++) {
        if (env->cells[i].kind == MINIGRID_EMPTY) env->cells[i].inside = 0;
    }
}

/* Returns true if a marked place is above, below, left or right of a place that is not in the border. */
static inline bool minigrid_is_next_to(MiniGrid *env, MiniGridPlace place, uint8_t mark) {
    for (int32_t side = 0; side < MINIGRID_DIRECTIONS; side++) {
        if (minigrid_at(env, minigrid_next(place, side))->inside & mark) return true;
    }
    return false;
}

/* ---- Verifying ----------------------------------------------------------------------------------------- */

/* Verifies a clause after an action. `had` is what the agent carried before it. In the first step in which a
 * clause is verified, the package takes the agent to have carried nothing. */
static inline MiniGridResult minigrid_verify_clause(MiniGrid *env, MiniGridClause *clause, uint8_t object,
                                                    uint8_t other, int32_t action, MiniGridCell had) {
    const MiniGridCell front = *minigrid_at(env, minigrid_front(env));
    const bool is_carrying = env->carried.kind != MINIGRID_EMPTY;
    const bool has_carried = clause->is_watched && had.kind != MINIGRID_EMPTY;
    bool is_done = false, is_wrong = false;
    clause->is_watched = true;
    switch (clause->verb) {
        case MINIGRID_GOES_TO:
            is_done = front.inside & object;
            break;
        case MINIGRID_PICKS_UP:
            if (action != MINIGRID_PICK_UP) break;
            is_done = is_carrying && !has_carried && env->carried.inside & object;
            is_wrong = is_carrying;
            break;
        case MINIGRID_OPENS:
            if (action != MINIGRID_TOGGLE) break;
            is_done = minigrid_is_open(front) && front.inside & object;
            is_wrong = front.kind == MINIGRID_DOOR;
            break;
        default:
            is_done = action == MINIGRID_DROP && has_carried && !is_carrying && had.inside & object &&
                      minigrid_is_next_to(env, minigrid_front(env), other);
    }
    if (is_done) return MINIGRID_SUCCEEDS;
    return is_wrong && clause->is_strict ? MINIGRID_FAILS : MINIGRID_CONTINUES;
}

/* Verifies the clauses of a part. Two clauses can be done in any order, and neither fails. */
static inline MiniGridResult minigrid_verify_part(MiniGrid *env, int32_t number, int32_t action,
                                                  MiniGridCell had) {
    MiniGridPart *part = &env->instruction.parts[number];
    bool are_done = true;
    for (int32_t i = 0; i < part->count; i++) {
        MiniGridClause *clause = &part->clauses[i];
        if (clause->is_done) continue;
        const MiniGridResult result = minigrid_verify_clause(env, clause, minigrid_mark(number, i, false),
                                                             minigrid_mark(number, i, true), action, had);
        if (result == MINIGRID_FAILS && part->count == 1) return MINIGRID_FAILS;
        clause->is_done = result == MINIGRID_SUCCEEDS;
        are_done &= clause->is_done;
    }
    return are_done ? MINIGRID_SUCCEEDS : MINIGRID_CONTINUES;
}

/* Verifies the instruction after an action. The one that ends the first part can end the second one too. */
static inline MiniGridResult minigrid_verify(MiniGrid *env, int32_t action, MiniGridCell had) {
    MiniGridInstruction *instruction = &env->instruction;
    const int32_t first = instruction->order == MINIGRID_AFTER ? 1 : 0;
    if (action == MINIGRID_DROP) minigrid_forget_places(env);
    if (!instruction->is_halfway) {
        const MiniGridResult result = minigrid_verify_part(env, first, action, had);
        if (result != MINIGRID_SUCCEEDS || instruction->order == MINIGRID_ALONE) return result;
        instruction->is_halfway = true;
    }
    return minigrid_verify_part(env, 1 - first, action, had);
}

#endif
