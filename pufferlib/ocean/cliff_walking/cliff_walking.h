/* Cliff Walking: go along a cliff to the goal, and do not fall down. The way beside the edge is the shortest.
 *
 * Observation  int32[1]: row * 12 + column of the walker, on a map of 4 rows.
 * Actions      Discrete(4): 0 up, 1 right, 2 down, 3 left. If it is slippery, the walker moves in this
 *              direction or to one of its sides, each with probability 1/3. The border of the map stops moves.
 *              Any other number does not move.
 * Rewards      -100 for a fall, after which the walker is back at the start, otherwise -1 for each step.
 * Ends         terminal at the goal, truncation after max_steps steps.
 * Source       Gymnasium's CliffWalking-v1, after example 6.6 of Sutton and Barto (2018). A test checks that
 *              the same seed and actions give the same bytes. CliffWalkingSlippery-v1 is the same with
 *              is_slippery. */
#ifndef CLIFF_WALKING_H
#define CLIFF_WALKING_H

#include "puffer_env.h"
#include "puffer_numpy.h"

enum { CLIFF_WALKING_UP, CLIFF_WALKING_RIGHT, CLIFF_WALKING_DOWN, CLIFF_WALKING_LEFT, CLIFF_WALKING_ACTIONS };
enum { CLIFF_WALKING_ROWS = 4, CLIFF_WALKING_COLUMNS = 12 };
enum {
    CLIFF_WALKING_START = (CLIFF_WALKING_ROWS - 1) * CLIFF_WALKING_COLUMNS,
    CLIFF_WALKING_GOAL = CLIFF_WALKING_ROWS * CLIFF_WALKING_COLUMNS - 1, /* between them is the cliff */
};

typedef struct {
    PufferGame game;
    /* parameters */
    bool is_slippery;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* infos */
    float prob; /* probability of the last move's direction */
    double exact_prob;
    /* state */
    int32_t place; /* row * CLIFF_WALKING_COLUMNS + column */
    PufferGenerator generator;
} CliffWalking;

static const char cliff_walking_about[] = "Walk to the goal along a cliff: Gymnasium's CliffWalking-v1.";

/* clang-format off */
static const PufferParameter cliff_walking_parameters[] = {
    PUFFER_PARAMETER(CliffWalking, is_slippery, false, false, true, "moves may go to the side"),
    PUFFER_PARAMETER(CliffWalking, max_steps, 0, 0, 1000000, "steps until the episode is cut off; 0 is no limit"),
};

static const PufferMetric cliff_walking_metrics[] = {
    PUFFER_METRIC(CliffWalking, score, "sum of the rewards"),
    PUFFER_METRIC(CliffWalking, perf, "steps of the shortest way, as a share of the costs; 0 without the goal"),
};

static const PufferInfo cliff_walking_infos[] = {
    PUFFER_INFO(CliffWalking, prob, 0, 1),
};

static const PufferInfo cliff_walking_last_infos[] = {
    PUFFER_LAST_INFO(CliffWalking, exact_prob, "prob", PUFFER_FLOAT64),
};
/* clang-format on */

static inline const char *cliff_walking_spec(const CliffWalking *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = CLIFF_WALKING_GOAL,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {CLIFF_WALKING_ACTIONS},
        .agents = 1,
        .picture_width = 480,
        .picture_height = 160,
        .frames_per_second = 4,
        .max_steps = env->max_steps,
    };
    return NULL;
}

static inline void cliff_walking_observe(CliffWalking *env) {
    *(int32_t *)env->game.observations = env->place;
}

static inline void cliff_walking_reset(CliffWalking *env) {
    puffer_unit(&env->generator); /* chooses among the starts, of which there is one */
    env->place = CLIFF_WALKING_START;
    env->prob = 1;
    env->exact_prob = 1;
    cliff_walking_observe(env);
}

static inline int32_t cliff_walking_moved(int32_t place, int32_t direction) {
    const int32_t row = place / CLIFF_WALKING_COLUMNS, column = place % CLIFF_WALKING_COLUMNS;
    switch (direction) {
        case CLIFF_WALKING_UP:
            return row > 0 ? place - CLIFF_WALKING_COLUMNS : place;
        case CLIFF_WALKING_RIGHT:
            return place + (column < CLIFF_WALKING_COLUMNS - 1);
        case CLIFF_WALKING_DOWN:
            return row < CLIFF_WALKING_ROWS - 1 ? place + CLIFF_WALKING_COLUMNS : place;
        default:
            return place - (column > 0);
    }
}

/* Draws the direction of the move. Gymnasium draws a number if it is not slippery, too. */
static inline int32_t cliff_walking_direction(CliffWalking *env, int32_t action) {
    static const double sums[] = {1.0 / 3, 1.0 / 3 + 1.0 / 3, 1.0 / 3 + 1.0 / 3 + 1.0 / 3};
    if (!env->is_slippery) {
        puffer_unit(&env->generator);
        return action;
    }
    env->prob = 1.0f / 3;
    env->exact_prob = 1.0 / 3;
    return (action + 3 + puffer_categorical(&env->generator, sums, 3)) % 4;
}

static inline PufferOutcome cliff_walking_end(CliffWalking *env, PufferOutcome outcome) {
    const float shortest = CLIFF_WALKING_COLUMNS + 1;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = outcome == PUFFER_TERMINATED ? puffer_min(shortest / -env->score, 1) : 0;
    return outcome;
}

static inline PufferOutcome cliff_walking_step(CliffWalking *env) {
    const int32_t action = *(const int32_t *)env->game.actions;
    if (action >= 0 && action < CLIFF_WALKING_ACTIONS)
        env->place = cliff_walking_moved(env->place, cliff_walking_direction(env, action));
    const bool fell = env->place > CLIFF_WALKING_START && env->place < CLIFF_WALKING_GOAL;
    if (fell) env->place = CLIFF_WALKING_START;
    env->game.rewards[0] = fell ? -100 : -1;
    cliff_walking_observe(env);
    if (env->place == CLIFF_WALKING_GOAL) return cliff_walking_end(env, PUFFER_TERMINATED);
    if (env->max_steps == 0 || env->game.episode_length < env->max_steps) return PUFFER_RUNNING;
    return cliff_walking_end(env, PUFFER_TRUNCATED);
}

#endif
