/* Squared: walk from the centre of a square grid to a target on a random cell.
 *
 * Observation  uint8[size * size], row by row: 0 empty, 1 agent, 2 target.
 * Actions      Discrete(5): 0 stay, 1 down, 2 up, 3 left, 4 right; anything else stays.
 * Rewards      +1 on the target, -1 for leaving the grid, 0 otherwise.
 * Ends         terminal on the target and outside the grid; truncation after 3 * size steps. The limit is a
 *              truncation and costs nothing, because the observation does not show the time.
 * Source       the environment of PufferLib's tutorial (Suarez 2024), where the limit pays -1 and is a
 *              terminal.
 */
#ifndef SQUARED_H
#define SQUARED_H

#include "puffer_env.h"

enum { SQUARED_EMPTY, SQUARED_AGENT, SQUARED_TARGET };
enum { SQUARED_STAY, SQUARED_DOWN, SQUARED_UP, SQUARED_LEFT, SQUARED_RIGHT, SQUARED_NUM_ACTIONS };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t size; /* cells */
    /* metrics */
    float score, perf;
    /* state */
    int32_t row, column;
    int32_t cell, target; /* indices of cells */
} Squared;

static const char squared_about[] = "Walk from the centre of a grid to a target on a random cell.";

static const PufferParameter squared_parameters[] = {
    PUFFER_PARAMETER(Squared, size, 11, 2, 256, "cells along a side of the grid"),
};

static const PufferMetric squared_metrics[] = {
    PUFFER_METRIC(Squared, score, "last reward: 1 target reached, -1 grid left, 0 out of time"),
    PUFFER_METRIC(Squared, perf, "share of episodes that reach the target"),
};

static inline const char *squared_spec(const Squared *env, PufferSpec *spec) {
    int32_t cell_px = env->size < 64 ? 352 / env->size : 6;
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {env->size * env->size},
        .observation_low = SQUARED_EMPTY,
        .observation_high = SQUARED_TARGET,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {SQUARED_NUM_ACTIONS},
        .agents = 1,
        .picture_width = env->size * cell_px,
        .picture_height = env->size * cell_px,
        .frames_per_second = 8,
    };
    return NULL;
}

static inline void squared_reset(Squared *env) {
    uint8_t *cells = env->game.observations;
    int32_t num_cells = env->size * env->size;
    env->row = env->column = env->size / 2;
    env->cell = env->row * env->size + env->column;
    env->target = puffer_random_below(&env->game.rng, num_cells - 1);
    env->target += env->target >= env->cell; /* any cell but the centre */
    memset(cells, SQUARED_EMPTY, (size_t)num_cells);
    cells[env->cell] = SQUARED_AGENT;
    cells[env->target] = SQUARED_TARGET;
}

static inline PufferOutcome squared_end(Squared *env, float reward) {
    env->game.rewards[0] = reward;
    env->score = reward;
    env->perf = reward > 0;
    return PUFFER_TERMINATED;
}

static inline PufferOutcome squared_step(Squared *env) {
    static const int8_t down[] = {0, 1, -1, 0, 0}, right[] = {0, 0, 0, -1, 1};
    uint8_t *cells = env->game.observations;
    const uint32_t action = *(const uint32_t *)env->game.actions;
    const uint32_t move = action < SQUARED_NUM_ACTIONS ? action : SQUARED_STAY;
    const int32_t size = env->size, row = env->row + down[move], column = env->column + right[move];
    cells[env->cell] = SQUARED_EMPTY;
    /* As unsigned numbers, -1 is above any size. */
    if ((uint32_t)row >= (uint32_t)size || (uint32_t)column >= (uint32_t)size) return squared_end(env, -1);

    env->row = row;
    env->column = column;
    env->cell = row * size + column;
    cells[env->cell] = SQUARED_AGENT;
    if (env->cell == env->target) return squared_end(env, 1);
    if (env->game.episode_length < 3 * size) return PUFFER_RUNNING;
    env->score = env->perf = 0;
    return PUFFER_TRUNCATED;
}

#endif
