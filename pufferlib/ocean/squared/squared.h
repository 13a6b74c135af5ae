/* Squared: walk from the center of a square to each of the targets on its edge.
 *
 * Observation  uint8[size * size], row by row: 0 empty, 1 the agent, 2 a target, 3 a target that was hit.
 * Actions      Discrete(9), the moves of a chess king: 0 stay, 1 down, 2 up, 3 left, 4 right, 5 down left, 6
 *              down right, 7 up left, 8 up right. Any other number stays. Every target is `size / 2` moves
 *              from the center.
 * Rewards      On the edge: 1 minus the L-infinity distance to the nearest target that was not hit before, in
 *              units of the distance from the center to the edge. A target therefore gives 1, and the edge at
 *              least -1. All other steps give 0.
 * Edge         After its reward, the agent is back at the center in the same step. A target is rewarded once.
 * Ends         terminal after as many visits to the edge as there are targets. Truncation after twice the
 *              number of steps of the shortest paths.
 *
 * Three settings make a policy fail that lacks one ability. They can be combined.
 *
 * - memory: targets are shown only while the agent is at the center, so it must remember its destination.
 *
 * - exploration: targets have the same positions in every episode and are shown only after a hit. The rest of
 *   the edge gives 0.1, regardless of the distance. A learner that settles for it never finds the targets.
 *
 * - stochasticity: a target looks the same after it was hit, and only the first hit is rewarded. Without
 *   memory, the best policy chooses a random target at the center, and walks straight to it.
 *
 * Source       Squared of PufferLib 0.6 and of its paper (Suarez 2024). docs/ocean.md lists the differences.
 */
#ifndef SQUARED_H
#define SQUARED_H

#include "puffer_env.h"

#define SQUARED_MAX_TARGETS 16
#define SQUARED_FIXED_SEED  42   /* of the positions that must be explored */
#define SQUARED_TRAP        0.1f /* reward of the edge beside a target that must be explored */

enum { SQUARED_EMPTY, SQUARED_AGENT, SQUARED_TARGET, SQUARED_HIT };
enum {
    SQUARED_STAY,
    SQUARED_DOWN,
    SQUARED_UP,
    SQUARED_LEFT,
    SQUARED_RIGHT,
    SQUARED_DOWN_LEFT,
    SQUARED_DOWN_RIGHT,
    SQUARED_UP_LEFT,
    SQUARED_UP_RIGHT,
    SQUARED_NUM_ACTIONS
};

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t size, num_targets;
    int32_t memory, exploration, stochasticity;
    /* metrics */
    float score, perf;
    /* state; bit i of `hits` is target i */
    int32_t row, column;
    int32_t visits; /* number of visits to the edge */
    uint32_t hits;
    uint8_t rows[SQUARED_MAX_TARGETS], columns[SQUARED_MAX_TARGETS];
} Squared;

static const char squared_about[] = "Walk from the center of a square to each of the targets on its edge.";

static const PufferParameter squared_parameters[] = {
    PUFFER_PARAMETER(Squared, size, 7, 3, 255, "cells along a side of the square, an odd number"),
    PUFFER_PARAMETER(Squared, num_targets, 4, 1, SQUARED_MAX_TARGETS, "targets on the edge"),
    PUFFER_PARAMETER(Squared, memory, 0, 0, 1, "1 shows targets only while the agent is at the center"),
    PUFFER_PARAMETER(Squared, exploration, 0, 0, 1, "1 hides targets, at fixed places, until they are hit"),
    PUFFER_PARAMETER(Squared, stochasticity, 0, 0, 1, "1 shows a target that was hit like the others"),
};

static const PufferMetric squared_metrics[] = {
    PUFFER_METRIC(Squared, score, "share of the targets that were hit"),
    PUFFER_METRIC(Squared, perf, "share of episodes in which all targets were hit"),
};

static inline const char *squared_spec(const Squared *env, PufferSpec *spec) {
    if (env->size % 2 == 0) return "size must be odd, so that the square has a center";
    if (env->num_targets > 4 * (env->size - 1))
        return "num_targets must be at most 4 * (size - 1), the cells of the edge";
    int32_t cell_px = env->size < 64 ? 352 / env->size : 6;
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {env->size * env->size},
        .observation_low = SQUARED_EMPTY,
        .observation_high = SQUARED_HIT,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {SQUARED_NUM_ACTIONS},
        .agents = 1,
        .picture_width = env->size * cell_px,
        .picture_height = env->size * cell_px,
        .frames_per_second = 8,
    };
    return NULL;
}

/* Returns the target at a cell of the edge, or num_targets. */
static inline int32_t squared_target_at(const Squared *env, int32_t placed, int32_t row, int32_t column) {
    int32_t target = 0;
    while (target < placed && (env->rows[target] != row || env->columns[target] != column)) target++;
    return target;
}

static inline void squared_place(Squared *env, PufferRng *rng) {
    const int32_t side = env->size - 1;
    for (int32_t placed = 0; placed < env->num_targets;) {
        const int32_t place = puffer_random_below(rng, 4 * side), along = place % side;
        int32_t row = 0, column = along; /* clockwise from the upper left corner */
        if (place >= 3 * side) {
            row = side - along, column = 0;
        } else if (place >= 2 * side) {
            row = side, column = side - along;
        } else if (place >= side) {
            row = along, column = side;
        }
        if (squared_target_at(env, placed, row, column) < placed) continue;
        env->rows[placed] = (uint8_t)row;
        env->columns[placed++] = (uint8_t)column;
    }
}

static inline bool squared_is_at_center(const Squared *env) {
    return env->row == env->size / 2 && env->column == env->size / 2;
}

/* The observed code at the position of a target. */
static inline uint8_t squared_code(const Squared *env, int32_t target) {
    const bool is_hit = env->hits >> target & 1;
    if (env->memory && !squared_is_at_center(env)) return SQUARED_EMPTY;
    if (is_hit && !env->stochasticity) return SQUARED_HIT;
    return env->exploration ? SQUARED_EMPTY : SQUARED_TARGET;
}

static inline void squared_show(Squared *env) {
    uint8_t *cells = env->game.observations;
    for (int32_t i = 0; i < env->num_targets; i++) {
        cells[env->rows[i] * env->size + env->columns[i]] = squared_code(env, i);
    }
}

static inline void squared_reset(Squared *env) {
    uint8_t *cells = env->game.observations;
    PufferRng fixed;
    puffer_seed(&fixed, SQUARED_FIXED_SEED);
    squared_place(env, env->exploration ? &fixed : &env->game.rng);
    env->row = env->column = env->size / 2;
    env->visits = 0;
    env->hits = 0;
    memset(cells, SQUARED_EMPTY, (size_t)(env->size * env->size));
    cells[env->row * env->size + env->column] = SQUARED_AGENT;
    squared_show(env);
}

static inline float squared_reward(const Squared *env) {
    int32_t nearest = env->size - 1;
    for (int32_t i = 0; i < env->num_targets; i++) {
        if (env->hits >> i & 1) continue;
        int32_t down = env->rows[i] - env->row, right = env->columns[i] - env->column;
        if (down < 0) down = -down;
        if (right < 0) right = -right;
        const int32_t distance = down > right ? down : right;
        if (distance < nearest) nearest = distance;
    }
    if (env->exploration && nearest > 0) return SQUARED_TRAP;
    if (env->stochasticity) return nearest == 0;
    return 1 - (float)nearest / (float)(env->size / 2);
}

static inline void squared_reach_edge(Squared *env) {
    const int32_t target = squared_target_at(env, env->num_targets, env->row, env->column);
    env->game.rewards[0] = squared_reward(env);
    if (target < env->num_targets) env->hits |= 1u << target;
    env->row = env->column = env->size / 2;
    env->visits++;
    squared_show(env);
}

static inline PufferOutcome squared_step(Squared *env) {
    static const int8_t down[] = {0, 1, -1, 0, 0, 1, 1, -1, -1}, right[] = {0, 0, 0, -1, 1, -1, 1, -1, 1};
    uint8_t *cells = env->game.observations;
    const uint32_t action = *(const uint32_t *)env->game.actions;
    const uint32_t move = action < SQUARED_NUM_ACTIONS ? action : SQUARED_STAY;
    const int32_t size = env->size, last = size - 1;
    cells[env->row * size + env->column] = SQUARED_EMPTY;
    env->row += down[move];
    env->column += right[move];
    if (env->row == 0 || env->column == 0 || env->row == last || env->column == last) {
        squared_reach_edge(env);
    } else if (env->memory) {
        squared_show(env);
    }
    cells[env->row * size + env->column] = SQUARED_AGENT;

    const bool is_done = env->visits == env->num_targets;
    if (!is_done && env->game.episode_length < 2 * env->num_targets * (size / 2)) return PUFFER_RUNNING;
    env->score = (float)__builtin_popcount(env->hits) / (float)env->num_targets;
    env->perf = env->score == 1;
    return is_done ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
