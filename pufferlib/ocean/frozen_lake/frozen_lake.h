/* Frozen Lake: cross a frozen lake to the goal without falling into a hole. The ice is slippery.
 *
 * Observation  int32[1]: row * columns + column of the player.
 * Actions      Discrete(4): 0 left, 1 down, 2 right, 3 up. On slippery ice, the player moves in this direction
 *              with the probability success_rate, otherwise to one of the two sides, each as likely as the
 *              other. The border of the map stops moves. Any other number does not move.
 * Rewards      goal_reward on reaching the goal, hole_reward in a hole, frozen_reward for any other step.
 * Ends         terminal at the goal and in a hole, truncation after max_steps steps.
 * Source       Gymnasium's FrozenLake-v1. A test checks that the same seed and actions give the same bytes.
 *              FrozenLake8x8-v1 is the same with size 8 and max_steps 200. A random map is that of Gymnasium's
 *              generate_random_map(size, frozen_share, map_seed). With several starts in a map of one's own,
 *              each is as likely as the others. */
#ifndef FROZEN_LAKE_H
#define FROZEN_LAKE_H

#include "puffer_env.h"
#include "puffer_numpy.h"

#define FROZEN_LAKE_MAX_SIZE  16
#define FROZEN_LAKE_MAX_TILES (FROZEN_LAKE_MAX_SIZE * FROZEN_LAKE_MAX_SIZE)
#define FROZEN_LAKE_MAX_TEXT  (FROZEN_LAKE_MAX_TILES + FROZEN_LAKE_MAX_SIZE - 1)

enum { FROZEN_LAKE_LEFT, FROZEN_LAKE_DOWN, FROZEN_LAKE_RIGHT, FROZEN_LAKE_UP, FROZEN_LAKE_ACTIONS };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t size, map_seed;
    float frozen_share;
    bool is_slippery;
    float success_rate, goal_reward, hole_reward, frozen_reward;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* infos */
    float prob; /* probability of the last move's direction */
    double exact_prob;
    double exact_return; /* sum of the rewards, which Python sums as doubles */
    /* state */
    int32_t place;                     /* row * columns + column */
    char tiles[FROZEN_LAKE_MAX_TILES]; /* S, F, H or G by row */
    int32_t rows, columns, starts;
    double rate;    /* success_rate */
    double sums[3]; /* of the probabilities of the directions before, at and after the action */
    PufferGenerator generator;
    /* a parameter, here because no step reads it */
    char desc[FROZEN_LAKE_MAX_TEXT + 1];
} FrozenLake;

static const char frozen_lake_about[] =
    "Cross slippery ice without falling into a hole: Gymnasium's FrozenLake-v1.";

/* clang-format off */
static const PufferParameter frozen_lake_parameters[] = {
    PUFFER_PARAMETER(FrozenLake, desc, 0, 0, FROZEN_LAKE_MAX_TEXT, "rows of a map of S, F, H and G, as SFF/FHG"),
    PUFFER_PARAMETER(FrozenLake, size, 4, 2, FROZEN_LAKE_MAX_SIZE, "rows and columns; without map_seed 4 or 8"),
    PUFFER_PARAMETER(FrozenLake, map_seed, -1, -1, INT32_MAX, "seed of a random map; -1 is Gymnasium's own map"),
    PUFFER_PARAMETER(FrozenLake, frozen_share, 0.8, 0.6, 1, "probability of ice in each tile of a random map"),
    PUFFER_PARAMETER(FrozenLake, is_slippery, true, false, true, "moves may go to the side"),
    PUFFER_PARAMETER(FrozenLake, success_rate, 1.0 / 3, 0, 1, "probability of the chosen direction on slippery ice"),
    PUFFER_PARAMETER(FrozenLake, goal_reward, 1, -1000, 1000, "reward for the goal"),
    PUFFER_PARAMETER(FrozenLake, hole_reward, 0, -1000, 1000, "reward in a hole"),
    PUFFER_PARAMETER(FrozenLake, frozen_reward, 0, -1000, 1000, "reward of a step onto ice"),
    PUFFER_PARAMETER(FrozenLake, max_steps, 100, 0, 1000000, "steps until the episode is cut off; 0 is no limit"),
};

static const PufferMetric frozen_lake_metrics[] = {
    PUFFER_METRIC(FrozenLake, score, "sum of the rewards"),
    PUFFER_METRIC(FrozenLake, perf, "1 if the goal was reached"),
};

static const PufferInfo frozen_lake_infos[] = {
    PUFFER_INFO(FrozenLake, prob, 0, 1),
};

static const PufferInfo frozen_lake_last_infos[] = {
    PUFFER_LAST_INFO(FrozenLake, exact_prob, "prob", PUFFER_FLOAT64),
    PUFFER_LAST_INFO(FrozenLake, exact_return, "episode_return", PUFFER_FLOAT64),
};
/* clang-format on */

static const char frozen_lake_map_4[] =
    "SFFF"
    "FHFH"
    "FFFH"
    "HFFG";

static const char frozen_lake_map_8[] =
    "SFFFFFFF"
    "FFFFFFFF"
    "FFFHFFFF"
    "FFFFFHFF"
    "FFFHFFFF"
    "FHHFFFHF"
    "FHFFHFHF"
    "FFFHFFFG";

/* Reads the tiles of the parameter desc. Returns NULL or an error. */
static inline const char *frozen_lake_read_desc(FrozenLake *env) {
    int32_t tiles = 0;
    env->rows = env->columns = 0;
    for (const char *row = env->desc, *end;; row = end + 1) {
        const size_t width = strcspn(row, "/");
        end = row + width;
        if (env->rows == 0) env->columns = (int32_t)width;
        if (width == 0 || width > FROZEN_LAKE_MAX_SIZE || (int32_t)width != env->columns ||
            strspn(row, "SFHG") < width || env->rows == FROZEN_LAKE_MAX_SIZE)
            return "desc must have up to 16 rows of S, F, H and G, separated by /, of one length up to 16";
        memcpy(env->tiles + tiles, row, width);
        tiles += env->columns;
        env->rows++;
        if (*end == 0) break;
    }
    return memchr(env->tiles, 'S', (size_t)tiles) == NULL ? "desc must contain S, a start" : NULL;
}

static inline const char *frozen_lake_spec(const FrozenLake *env, PufferSpec *spec) {
    FrozenLake lake = *env;
    lake.rows = lake.columns = env->size;
    const char *problem = env->desc[0] != 0 ? frozen_lake_read_desc(&lake) : NULL;
    if (problem != NULL) return problem;
    if (env->desc[0] == 0 && env->map_seed < 0 && env->size != 4 && env->size != 8)
        return "size must be 4 or 8 without map_seed, which makes a random map of any size";
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = (float)(lake.rows * lake.columns - 1),
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {FROZEN_LAKE_ACTIONS},
        .agents = 1,
        .picture_width = 384,
        .picture_height = 384,
        .frames_per_second = 4,
        .max_steps = env->max_steps,
    };
    return NULL;
}

static inline int32_t frozen_lake_moved(const FrozenLake *env, int32_t place, int32_t direction) {
    const int32_t row = place / env->columns, column = place % env->columns;
    switch (direction) {
        case FROZEN_LAKE_LEFT:
            return place - (column > 0);
        case FROZEN_LAKE_DOWN:
            return row < env->rows - 1 ? place + env->columns : place;
        case FROZEN_LAKE_RIGHT:
            return place + (column < env->columns - 1);
        default:
            return row > 0 ? place - env->columns : place;
    }
}

/* Returns true if the goal can be reached from the start. */
static inline bool frozen_lake_has_path(const FrozenLake *env) {
    int32_t waiting[FROZEN_LAKE_MAX_TILES], count = 1;
    bool seen[FROZEN_LAKE_MAX_TILES] = {true};
    waiting[0] = 0;
    while (count > 0) {
        const int32_t place = waiting[--count];
        for (int32_t direction = 0; direction < FROZEN_LAKE_ACTIONS; direction++) {
            const int32_t next = frozen_lake_moved(env, place, direction);
            if (env->tiles[next] == 'G') return true;
            if (env->tiles[next] == 'H' || seen[next]) continue;
            seen[next] = true;
            waiting[count++] = next;
        }
    }
    return false;
}

/* Draws maps until one has a path, with the random numbers of `Generator.choice` with probabilities. */
static inline void frozen_lake_draw_map(FrozenLake *env) {
    const int32_t tiles = env->size * env->size;
    const double share = puffer_decimal(env->frozen_share), sum = share + (1 - share);
    PufferGenerator generator;
    puffer_seed_generator(&generator, (uint64_t)env->map_seed);
    do {
        for (int32_t i = 0; i < tiles; i++) env->tiles[i] = puffer_unit(&generator) < share / sum ? 'F' : 'H';
        env->tiles[0] = 'S';
        env->tiles[tiles - 1] = 'G';
    } while (!frozen_lake_has_path(env));
}

static inline void frozen_lake_read_map(FrozenLake *env) {
    env->rows = env->columns = env->size;
    if (env->desc[0] != 0) {
        frozen_lake_read_desc(env);
    } else if (env->map_seed >= 0) {
        frozen_lake_draw_map(env);
    } else {
        memcpy(env->tiles, env->size == 4 ? frozen_lake_map_4 : frozen_lake_map_8,
               (size_t)(env->size * env->size));
    }
    env->starts = 0;
    for (int32_t i = 0; i < env->rows * env->columns; i++) env->starts += env->tiles[i] == 'S';
}

static inline void frozen_lake_read_parameters(FrozenLake *env) {
    frozen_lake_read_map(env);
    /* A third has no finite number of decimals. */
    env->rate = env->success_rate == (float)(1.0 / 3) ? 1.0 / 3 : puffer_decimal(env->success_rate);
    const double side = (1.0 - env->rate) / 2.0;
    env->sums[0] = side;
    env->sums[1] = side + env->rate;
    env->sums[2] = side + env->rate + side;
}

static inline void frozen_lake_observe(FrozenLake *env) {
    *(int32_t *)env->game.observations = env->place;
}

/* Draws a start, like `puffer_categorical`: tile 0, if the last sum of probabilities was rounded. */
static inline int32_t frozen_lake_draw_start(FrozenLake *env) {
    const double drawn = puffer_unit(&env->generator);
    double sum = 0;
    for (int32_t i = 0; i < env->rows * env->columns; i++) {
        if (env->tiles[i] == 'S') sum += 1.0 / env->starts;
        if (sum > drawn) return i;
    }
    return 0;
}

static inline void frozen_lake_reset(FrozenLake *env) {
    if (puffer_is_first(&env->game)) frozen_lake_read_parameters(env);
    env->place = frozen_lake_draw_start(env);
    env->prob = 1;
    env->exact_prob = 1;
    env->exact_return = 0;
    frozen_lake_observe(env);
}

/* Draws the direction of the move. Gymnasium draws a number on ice that is not slippery, too. */
static inline int32_t frozen_lake_direction(FrozenLake *env, int32_t action) {
    if (!env->is_slippery) {
        puffer_unit(&env->generator);
        return action;
    }
    const int32_t turn = puffer_categorical(&env->generator, env->sums, 3);
    env->exact_prob = turn == 1 ? env->rate : env->sums[0];
    env->prob = (float)env->exact_prob;
    return (action + 3 + turn) % 4;
}

static inline PufferOutcome frozen_lake_step(FrozenLake *env) {
    const int32_t action = *(const int32_t *)env->game.actions;
    if (action >= 0 && action < FROZEN_LAKE_ACTIONS)
        env->place = frozen_lake_moved(env, env->place, frozen_lake_direction(env, action));
    frozen_lake_observe(env);
    const char tile = env->tiles[env->place];
    env->game.rewards[0] = tile == 'G'   ? env->goal_reward
                           : tile == 'H' ? env->hole_reward
                                         : env->frozen_reward;
    if (env->game.rewards[0] != 0) env->exact_return += puffer_decimal(env->game.rewards[0]);
    const bool is_over = tile == 'G' || tile == 'H';
    if (!is_over && (env->max_steps == 0 || env->game.episode_length < env->max_steps)) return PUFFER_RUNNING;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = tile == 'G';
    return is_over ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
