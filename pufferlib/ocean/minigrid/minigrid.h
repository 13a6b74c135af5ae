/* MiniGrid: 172 small worlds with doors, keys, balls, boxes, lava and moving obstacles, seen from inside.
 *
 * Levels       `level` is the number of a level, the row of the table in levels.h. First the 76 of MiniGrid:
 *              BlockedUnlockPickup, DistShift, DoorKey, Dynamic-Obstacles, Empty, Fetch,
 *              FourRooms, GoToDoor, GoToObject, KeyCorridor, LavaCrossing, LavaGap, LockedRoom, Memory,
 *              MultiRoom, ObstructedMaze, Playground, PutNear, RedBlueDoors, SimpleCrossing, Unlock and
 *              UnlockPickup, most of them in several sizes. Then the 96 of BabyAI, with instructions to go to
 *              objects, pick them up, open doors or put objects next to others.
 * Observation  uint8, the bytes of a struct with alignment:
 *              - The agent's direction as an int32, little-endian: 0 east, 1 south, 2 west, 3 north.
 *              - agent_view_size x agent_view_size cells in front of the agent, which is in the middle of the
 *                last row, column by column from its left, each from far to near. A cell is three bytes:
 *                  kind   0 not seen, 1 empty, 2 wall, 3 floor, 4 door, 5 key, 6 ball, 7 box, 8 goal, 9 lava
 *                  color  0 red, 1 green, 2 blue, 3 purple, 4 yellow, 5 grey
 *                  state  of a door: 0 open, 1 closed, 2 locked
 *                Walls and closed doors hide what is behind them, except in some levels. The agent's own cell
 *                shows what it carries.
 *              - With `mission`, 96 bytes with the text of the mission, 512 bytes in BabyAI, padded with 0.
 *              - Padding to a multiple of 4 bytes.
 * Actions      Discrete(7): 0 turn left, 1 turn right, 2 go forward, 3 pick up, 4 drop, 5 toggle (open, close
 *              or unlock a door, open a box), 6 done. In Dynamic-Obstacles Discrete(3): above them is 0. Any
 *              other number does nothing.
 * Rewards      1 - 0.9 * steps / max_steps for success. -1 for a collision in Dynamic-Obstacles.
 * Ends         terminal with success, failure (lava, a wrong object, the wrong end of a corridor, ...) and a
 *              collision. Truncation after max_steps steps. In some levels of BabyAI, their number depends on
 *              the instruction.
 * Source       The package minigrid 3.2.0 (Chevalier-Boisvert et al. 2023, arXiv 2306.13831, and 2019, arXiv
 *              1810.08272). A test checks that the same seed and actions give the same bytes. */
#ifndef MINIGRID_H
#define MINIGRID_H

#include "act.h"
#include "view.h"

#ifdef MINIGRID_OWN_LEVELS
static const char minigrid_about[] = "Explore levels of your own in the world of MiniGrid.";
#define MINIGRID_FIRST_LEVEL 0
#define MINIGRID_LEVEL_TEXT  "number of the level in the table of the file"
#else
static const char minigrid_about[] =
    "Explore small worlds with doors, keys, boxes and lava: the levels of MiniGrid and BabyAI.";
#define MINIGRID_FIRST_LEVEL 14
#define MINIGRID_LEVEL_TEXT \
    "number of the level in levels.h; 14 is MiniGrid-Empty-5x5-v0, and BabyAI's follow from 76 on"
#endif

/* clang-format off */
static const PufferParameter minigrid_parameters[] = {
    PUFFER_PARAMETER(MiniGrid, level, MINIGRID_FIRST_LEVEL, 0, MINIGRID_LEVELS - 1, MINIGRID_LEVEL_TEXT),
    PUFFER_PARAMETER(MiniGrid, max_steps, 0, 0, 1000000, "steps until the episode is cut off; 0 is the level's own number"),
    PUFFER_PARAMETER(MiniGrid, agent_view_size, 7, 3, MINIGRID_MAX_VIEW, "cells in a row of the view, odd"),
    PUFFER_PARAMETER(MiniGrid, see_through_walls, false, false, true, "nothing hides what is behind it, in every level"),
    PUFFER_PARAMETER(MiniGrid, mission, false, false, true, "observations include the text of the mission"),
};

static const PufferMetric minigrid_metrics[] = {
    PUFFER_METRIC(MiniGrid, score, "sum of the rewards"),
    PUFFER_METRIC(MiniGrid, perf, "1 if the mission has succeeded"),
};

static const PufferInfo minigrid_infos[] = {
    {"agent_pos", PUFFER_INT32, offsetof(MiniGrid, position), sizeof(MiniGridPlace), 0, INT16_MAX},
};

/* Only the last step has a reward. */
static const PufferInfo minigrid_last_infos[] = {
    PUFFER_LAST_INFO(MiniGrid, exact_return, "episode_return", PUFFER_FLOAT64),
    PUFFER_LAST_INFO(MiniGrid, position, "agent_pos", PUFFER_INT32),
};
/* clang-format on */

static inline size_t minigrid_bytes(const void *game) {
    const MiniGridLevel *level = minigrid_level(game);
    return sizeof(MiniGrid) + (size_t)(level->width * level->height) * sizeof(MiniGridCell);
}

/* ---- Observation --------------------------------------------------------------------------------------- */

/* Offsets of the parts of an observation. */
enum { MINIGRID_IMAGE_AT = sizeof(int32_t) };

static inline int32_t minigrid_mission_at(const MiniGrid *env) {
    return MINIGRID_IMAGE_AT + 3 * env->agent_view_size * env->agent_view_size;
}

static inline int32_t minigrid_observation_size(const MiniGrid *env) {
    return (minigrid_mission_at(env) + (env->mission ? minigrid_mission_bytes(env) : 0) + 3) / 4 * 4;
}

/* The usual size of the view is a constant, for which the compiler writes faster code. */
static inline void minigrid_observe(MiniGrid *env) {
    uint8_t *row = env->game.observations;
    memcpy(row, &env->direction, sizeof env->direction);
    if (env->agent_view_size == 7)
        minigrid_write_image(env, 7, row + MINIGRID_IMAGE_AT);
    else
        minigrid_write_image(env, env->agent_view_size, row + MINIGRID_IMAGE_AT);
}

/* Width of the image, and height of the panel below it for a mission or a long instruction, px. */
enum { MINIGRID_PICTURE = 512, MINIGRID_PANEL = 104, MINIGRID_TALL_PANEL = 236 };

static inline int32_t minigrid_panel(const MiniGrid *env) {
    return minigrid_level(env)->grammar == NULL ? MINIGRID_PANEL : MINIGRID_TALL_PANEL;
}

/* No level is higher than wide. */
static inline int32_t minigrid_cell_pixels(const MiniGrid *env) {
    return MINIGRID_PICTURE / minigrid_level(env)->width;
}

static inline int32_t minigrid_num_actions(const MiniGrid *env) {
    return minigrid_level(env)->world->task == MINIGRID_DODGE ? MINIGRID_FORWARD + 1 : MINIGRID_ACTIONS;
}

/* Returns the step limit of every episode, or 0 if it depends on the instruction. */
static inline int32_t minigrid_fixed_max_steps(const MiniGrid *env) {
    return env->max_steps > 0 ? env->max_steps : minigrid_level(env)->max_steps;
}

/* Returns the step limit of this episode. */
static inline int32_t minigrid_max_steps(const MiniGrid *env) {
    const int32_t fixed = minigrid_fixed_max_steps(env);
    return fixed > 0 ? fixed : env->own_max_steps;
}

static inline void minigrid_generate(MiniGrid *env) {
    const MiniGridLevel *level = minigrid_level(env);
    env->width = level->width;
    env->height = level->height;
    env->position = (MiniGridPlace){-1, -1};
    env->direction = MINIGRID_EAST;
    env->carried = minigrid_empty;
    minigrid_fill(env, minigrid_everywhere(env), minigrid_empty);
    level->world->generate(env, level);
}

/* Generates a level of your own a few times. Returns NULL, or what is wrong. */
static inline const char *minigrid_check_level(const MiniGrid *env) {
    enum { SEEDS = 20, MAX_WIDTH = 64 };
    const MiniGridLevel *level = minigrid_level(env);
    if (level->height < 3 || level->height > level->width || level->width > MAX_WIDTH)
        return "the level must be at least 3 cells high, not higher than wide, and at most 64 cells wide";
    if (level->max_steps < 1) return "max_steps of the level must be at least 1";
    if (level->world->task == MINIGRID_OWN && level->judge == NULL)
        return "the level has the task MINIGRID_OWN, so it needs a function judge";
    uint64_t memory[(sizeof(MiniGrid) + sizeof(MiniGridCell[MAX_WIDTH * MAX_WIDTH])) / sizeof(uint64_t) + 1];
    MiniGrid *trial = (MiniGrid *)memory;
    memcpy(trial, env, sizeof *env);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        puffer_seed_generator(&trial->generator, seed);
        trial->is_full = false;
        minigrid_generate(trial);
        if (trial->is_full) return "the level has no free place for what its function places at random";
        if (trial->position.x < 0) return "the function of the level must place the agent";
    }
    return NULL;
}

static inline const char *minigrid_spec(const MiniGrid *env, PufferSpec *spec) {
    if (env->agent_view_size % 2 == 0) return "agent_view_size must be odd";
#ifdef MINIGRID_OWN_LEVELS
    const char *fault = minigrid_check_level(env);
    if (fault != NULL) return fault;
#endif
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {minigrid_observation_size(env)},
        .observation_low = 0,
        .observation_high = 255,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {minigrid_num_actions(env)},
        .agents = 1,
        .picture_width = MINIGRID_PICTURE,
        .picture_height = minigrid_level(env)->height * minigrid_cell_pixels(env) + minigrid_panel(env),
        .frames_per_second = 6,
        .max_steps = minigrid_fixed_max_steps(env),
    };
    return NULL;
}

/* As in the package, the first observation does not show that the agent starts with an object. */
static inline void minigrid_reset(MiniGrid *env) {
    minigrid_generate(env);
    uint8_t *row = env->game.observations;
    memset(row + minigrid_mission_at(env), 0,
           (size_t)(minigrid_observation_size(env) - minigrid_mission_at(env)));
    if (env->mission)
        minigrid_mission(env, (char *)row + minigrid_mission_at(env), (size_t)minigrid_mission_bytes(env));
    minigrid_observe(env);
    if (minigrid_level(env)->is_carrying) minigrid_take(env, minigrid_at(env, env->target));
}

/* ---- Missions ------------------------------------------------------------------------------------------ */

static inline MiniGridResult minigrid_succeeds_if(bool has_succeeded, MiniGridResult otherwise) {
    return has_succeeded ? MINIGRID_SUCCEEDS : otherwise;
}

/* Judges standing on the goal or in lava. */
static inline MiniGridResult minigrid_judge_place(MiniGrid *env) {
    const int32_t kind = minigrid_at(env, env->position)->kind;
    return minigrid_succeeds_if(kind == MINIGRID_GOAL,
                                kind == MINIGRID_LAVA ? MINIGRID_FAILS : MINIGRID_CONTINUES);
}

/* Judges the corridor's ends. They are at the same distance from its middle. */
static inline MiniGridResult minigrid_judge_match(const MiniGrid *env) {
    const MiniGridPlace other = {env->target.x, env->height - 1 - env->target.y};
    if (minigrid_is_place(env->position, other)) return MINIGRID_FAILS;
    return minigrid_succeeds_if(minigrid_is_place(env->position, env->target), MINIGRID_CONTINUES);
}

/* `had` is what the agent carried before the action. */
static inline MiniGridResult minigrid_judge_put_near(const MiniGrid *env, int32_t action, MiniGridCell had) {
    const bool is_carrying = env->carried.kind != MINIGRID_EMPTY;
    if (action == MINIGRID_PICK_UP && is_carrying && !minigrid_is_same(env->carried, env->object))
        return MINIGRID_FAILS;
    if (action != MINIGRID_DROP || had.kind == MINIGRID_EMPTY) return MINIGRID_CONTINUES;
    return minigrid_succeeds_if(!is_carrying && minigrid_far(minigrid_front(env), env->target) <= 1,
                                MINIGRID_FAILS);
}

/* Judges an action that was carried out. */
static inline MiniGridResult minigrid_judge(MiniGrid *env, int32_t action, MiniGridCell had) {
    const MiniGridCell front = *minigrid_at(env, minigrid_front(env));
    switch (minigrid_level(env)->world->task) {
        case MINIGRID_FETCH:
            if (env->carried.kind == MINIGRID_EMPTY) return MINIGRID_CONTINUES;
            return minigrid_succeeds_if(minigrid_is_same(env->carried, env->object), MINIGRID_FAILS);
        case MINIGRID_GO_TO:
            if (action == MINIGRID_TOGGLE) return MINIGRID_FAILS;
            if (action != MINIGRID_DONE) return MINIGRID_CONTINUES;
            return minigrid_succeeds_if(minigrid_steps(env->position, env->target) == 1, MINIGRID_FAILS);
        case MINIGRID_GET:
            return minigrid_succeeds_if(minigrid_is_same(env->carried, env->object), MINIGRID_CONTINUES);
        case MINIGRID_UNLOCK:
            return minigrid_succeeds_if(minigrid_is_open(front), MINIGRID_CONTINUES);
        case MINIGRID_PUT_NEAR:
            return minigrid_judge_put_near(env, action, had);
        case MINIGRID_OPEN_BOTH:
            if (!minigrid_is_open(front) || front.color != MINIGRID_BLUE) return MINIGRID_CONTINUES;
            return minigrid_succeeds_if(minigrid_is_open(*minigrid_at(env, env->target)), MINIGRID_FAILS);
        case MINIGRID_MATCH:
            return minigrid_judge_match(env);
        case MINIGRID_FOLLOW:
            return minigrid_verify(env, action, had);
        case MINIGRID_OWN:
            return minigrid_level(env)->judge(env, action, had);
        default:
            return minigrid_judge_place(env);
    }
}

/* Returns the action that the package carries out instead of one that a level does not have. */
static inline int32_t minigrid_available(MiniGridTask task, int32_t action) {
    if (task == MINIGRID_DODGE && action > MINIGRID_FORWARD) return MINIGRID_LEFT;
    if (task == MINIGRID_MATCH && action == MINIGRID_PICK_UP) return MINIGRID_TOGGLE;
    return action;
}

/* Carries out an action, and observes its effect. Obstacles move first, and may then have left the cell that
 * the agent walks into. That is a collision all the same. */
static inline MiniGridResult minigrid_play(MiniGrid *env, MiniGridTask task, int32_t action) {
    const MiniGridCell had = env->carried;
    bool has_changed = env->game.episode_length == 1 && minigrid_level(env)->is_carrying, collides = false;
    if (task == MINIGRID_DODGE) {
        const int32_t kind = minigrid_at(env, minigrid_front(env))->kind;
        collides = action == MINIGRID_FORWARD && kind != MINIGRID_EMPTY && kind != MINIGRID_GOAL;
        minigrid_move_obstacles(env);
        has_changed = true;
    }
    has_changed |= minigrid_act(env, action);
    if (has_changed) minigrid_observe(env);
    return collides ? MINIGRID_COLLIDES : minigrid_judge(env, action, had);
}

static inline PufferOutcome minigrid_step(MiniGrid *env) {
    const MiniGridLevel *level = minigrid_level(env);
    const MiniGridTask task = level->world->task;
    const int32_t action = minigrid_available(task, *(const int32_t *)env->game.actions);
    const MiniGridResult result = minigrid_play(env, task, action);
    const int32_t steps = env->game.episode_length;
    const int32_t max_steps = minigrid_max_steps(env);
    if (result == MINIGRID_CONTINUES && steps < max_steps) return PUFFER_RUNNING;
    env->exact_return = result == MINIGRID_SUCCEEDS   ? 1 - 0.9 * ((double)steps / max_steps)
                        : result == MINIGRID_COLLIDES ? -1
                                                      : 0;
    env->game.rewards[0] = (float)env->exact_return;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = result == MINIGRID_SUCCEEDS;
    if (result == MINIGRID_CONTINUES) return PUFFER_TRUNCATED;
    return steps < max_steps ? PUFFER_TERMINATED : PUFFER_TERMINATED_LAST;
}

#endif
