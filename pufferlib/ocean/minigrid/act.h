/* What the actions do to the world. */
#ifndef MINIGRID_ACT_H
#define MINIGRID_ACT_H

#include "levels.h"

/* Moves each obstacle to a free place next to it. It stays if none is found. */
static inline void minigrid_move_obstacles(MiniGrid *env) {
    enum { TRIES = 101 };
    for (int32_t i = 0; i < minigrid_level(env)->count; i++) {
        const MiniGridPlace old = env->obstacles[i];
        MiniGridPlace new;
        int32_t tries = 0;
        while (tries < TRIES && !minigrid_random_free(env, (MiniGridArea){old.x - 1, old.y - 1, 3, 3}, &new))
            tries++;
        if (tries == TRIES) continue;
        *minigrid_at(env, new) = *minigrid_at(env, old);
        *minigrid_at(env, old) = minigrid_empty;
        env->obstacles[i] = new;
    }
}

static inline bool minigrid_go_forward(MiniGrid *env, MiniGridCell front) {
    const bool is_ground = front.kind == MINIGRID_EMPTY || front.kind == MINIGRID_FLOOR;
    if (!is_ground && front.kind != MINIGRID_GOAL && front.kind != MINIGRID_LAVA && !minigrid_is_open(front))
        return false;
    env->position = minigrid_front(env);
    return true;
}

/* Lets the agent carry the object of a cell. The marks in the cell say that it was there. */
static inline void minigrid_take(MiniGrid *env, MiniGridCell *cell) {
    env->carried = *cell;
    *cell = (MiniGridCell){MINIGRID_EMPTY, 0, 0, cell->inside};
    env->has_emptied = true;
}

static inline bool minigrid_pick_up(MiniGrid *env, MiniGridCell *front) {
    const bool is_object = front->kind >= MINIGRID_KEY && front->kind <= MINIGRID_BOX;
    if (!is_object || env->carried.kind != MINIGRID_EMPTY) return false;
    minigrid_take(env, front);
    return true;
}

static inline bool minigrid_drop(MiniGrid *env, MiniGridCell *front) {
    if (env->carried.kind == MINIGRID_EMPTY || front->kind != MINIGRID_EMPTY) return false;
    *front = env->carried;
    env->carried = minigrid_empty;
    return true;
}

/* Replaces a box by what is in it. Boxes are empty where their byte `inside` has marks. */
static inline void minigrid_open_box(MiniGrid *env, MiniGridCell *box) {
    const MiniGridLevel *level = minigrid_level(env);
    const bool is_marked = level->world->task == MINIGRID_FOLLOW && !level->is_boxed;
    if (box->inside > 0 && !is_marked)
        *box = minigrid_thing(MINIGRID_KEY, box->inside - 1);
    else
        *box = (MiniGridCell){MINIGRID_EMPTY, 0, 0, box->inside};
    env->has_emptied = true;
}

/* Opens, closes or unlocks a door, or opens a box. */
static inline bool minigrid_toggle(MiniGrid *env, MiniGridCell *front) {
    if (front->kind == MINIGRID_BOX) {
        minigrid_open_box(env, front);
        return true;
    }
    if (front->kind != MINIGRID_DOOR) return false;
    if (front->state == MINIGRID_LOCKED &&
        !minigrid_is_same(env->carried, minigrid_thing(MINIGRID_KEY, front->color)))
        return false;
    front->state = front->state == MINIGRID_OPEN ? MINIGRID_CLOSED : MINIGRID_OPEN;
    return true;
}

/* Returns true if anything has changed. */
static inline bool minigrid_act(MiniGrid *env, int32_t action) {
    MiniGridCell *front = minigrid_at(env, minigrid_front(env));
    switch (action) {
        case MINIGRID_LEFT:
            env->direction = (env->direction + 3) % MINIGRID_DIRECTIONS;
            return true;
        case MINIGRID_RIGHT:
            env->direction = (env->direction + 1) % MINIGRID_DIRECTIONS;
            return true;
        case MINIGRID_FORWARD:
            return minigrid_go_forward(env, *front);
        case MINIGRID_PICK_UP:
            return minigrid_pick_up(env, front);
        case MINIGRID_DROP:
            return minigrid_drop(env, front);
        case MINIGRID_TOGGLE:
            return minigrid_toggle(env, front);
        default:
            return false;
    }
}

#endif
