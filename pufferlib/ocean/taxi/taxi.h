/* Taxi: fetch a passenger in a small town with walls, and bring them to their destination.
 *
 * Observation  int32[1]: ((row * 5 + column) * 5 + passenger) * 4 + destination. The passenger and the
 *              destination are stands: 0 red, 1 green, 2 yellow, 3 blue. Passenger 4 is in the taxi.
 * Actions      Discrete(6): 0 south, 1 north, 2 east, 3 west, 4 pick the passenger up, 5 drop them off. Walls
 *              stop moves. A passenger can be dropped off at any stand. With is_rainy, a move that no wall
 *              stops goes this way with rainy_probability, otherwise to the left or the right of it, each as
 *              likely as the other. Any other number does nothing.
 *              With fickle_passenger, the passenger may change their mind once: with fickle_probability in an
 *              episode, the first move with them in the taxi draws another destination.
 * Rewards      20 for dropping the passenger off at the destination, -10 for picking up or dropping off where
 *              that is impossible, otherwise -1 for each step.
 * Ends         terminal after the passenger was dropped off at the destination, truncation after max_steps steps.
 * Source       Gymnasium's Taxi-v4, after Dietterich (2000). A test checks that the same seed and actions give
 *              the same bytes. */
#ifndef TAXI_H
#define TAXI_H

#include "puffer_env.h"
#include "puffer_numpy.h"

enum { TAXI_SOUTH, TAXI_NORTH, TAXI_EAST, TAXI_WEST, TAXI_PICK_UP, TAXI_DROP_OFF, TAXI_ACTIONS };
enum { TAXI_SIZE = 5, TAXI_STANDS = 4, TAXI_INSIDE = TAXI_STANDS };
enum { TAXI_STATES = TAXI_SIZE * TAXI_SIZE * (TAXI_STANDS + 1) * TAXI_STANDS };
enum { TAXI_STARTS = TAXI_SIZE * TAXI_SIZE * TAXI_STANDS * (TAXI_STANDS - 1) };

typedef struct {
    PufferGame game;
    /* parameters */
    bool is_rainy, fickle_passenger;
    float rainy_probability, fickle_probability;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* infos */
    float prob;                       /* probability of what the last action did */
    double exact_prob;                /* only at the end of an episode, as is the mask */
    int8_t action_mask[TAXI_ACTIONS]; /* 1 for an action with an effect */
    /* state */
    int32_t place; /* row * TAXI_SIZE + column */
    int32_t passenger, destination;
    bool changes_mind; /* at the next move with the passenger */
    double sums[3];    /* of the probabilities of a move ahead, to the left and to the right */
    PufferGenerator generator;
} Taxi;

static const char taxi_about[] =
    "Fetch a passenger and bring them to their destination: Gymnasium's Taxi-v4.";

/* clang-format off */
static const PufferParameter taxi_parameters[] = {
    PUFFER_PARAMETER(Taxi, is_rainy, false, false, true, "moves may go to the side"),
    PUFFER_PARAMETER(Taxi, fickle_passenger, false, false, true, "the destination may change once"),
    PUFFER_PARAMETER(Taxi, rainy_probability, 0.8, 0, 1, "probability of the chosen direction in the rain"),
    PUFFER_PARAMETER(Taxi, fickle_probability, 0.3, 0, 1, "probability of a change of mind in an episode"),
    PUFFER_PARAMETER(Taxi, max_steps, 200, 0, 1000000, "steps until the episode is cut off; 0 is no limit"),
};

static const PufferMetric taxi_metrics[] = {
    PUFFER_METRIC(Taxi, score, "sum of the rewards"),
    PUFFER_METRIC(Taxi, perf, "1 if the passenger has arrived"),
};

static const PufferInfo taxi_infos[] = {
    PUFFER_INFO(Taxi, prob, 0, 1),
};

static const PufferInfo taxi_last_infos[] = {
    PUFFER_LAST_INFO(Taxi, exact_prob, "prob", PUFFER_FLOAT64),
    PUFFER_LAST_INFO(Taxi, action_mask, "action_mask", PUFFER_INT8),
};
/* clang-format on */

static const int32_t taxi_stands[TAXI_STANDS] = {0, 4, 20, 23}; /* places */

/* Walls between a place and the next one to the east. */
static const bool taxi_walls[TAXI_SIZE * TAXI_SIZE] = {
    0, 1, 0, 0, 1, /**/
    0, 1, 0, 0, 1, /**/
    0, 0, 0, 0, 1, /**/
    1, 0, 1, 0, 1, /**/
    1, 0, 1, 0, 1, /**/
};

/* States in which an episode can start, and the sums of their probabilities up to each of them. */
static int32_t taxi_starts[TAXI_STARTS];
static double taxi_start_sums[TAXI_STARTS];

static inline int32_t taxi_state(int32_t place, int32_t passenger, int32_t destination) {
    return (place * (TAXI_STANDS + 1) + passenger) * TAXI_STANDS + destination;
}

static inline void taxi_prepare(void) {
    int32_t count = 0;
    double sum = 0;
    for (int32_t state = 0; state < TAXI_STATES; state++) {
        const int32_t destination = state % TAXI_STANDS, passenger = state / TAXI_STANDS % (TAXI_STANDS + 1);
        if (passenger == TAXI_INSIDE || passenger == destination) continue;
        taxi_starts[count] = state;
        taxi_start_sums[count++] = sum += 1.0 / TAXI_STARTS;
    }
}

static inline const char *taxi_spec(const Taxi *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = TAXI_STATES - 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {TAXI_ACTIONS},
        .agents = 1,
        .picture_width = 320,
        .picture_height = 360,
        .frames_per_second = 4,
        .max_steps = env->max_steps,
    };
    return NULL;
}

static inline void taxi_observe(Taxi *env) {
    *(int32_t *)env->game.observations = taxi_state(env->place, env->passenger, env->destination);
}

static inline void taxi_read_parameters(Taxi *env) {
    const double ahead = puffer_decimal(env->rainy_probability), side = (1.0 - ahead) / 2.0;
    env->sums[0] = ahead;
    env->sums[1] = ahead + side;
    env->sums[2] = ahead + side + side;
}

/* Draws a state like `puffer_categorical` with all sums. As starts are equally likely, the search begins near
 * the right one. State 0, which is no start, is what Gymnasium draws if the last sum is not above the number. */
static inline int32_t taxi_draw_start(Taxi *env) {
    const double drawn = puffer_unit(&env->generator);
    int32_t i = (int32_t)(drawn * TAXI_STARTS);
    while (i > 0 && taxi_start_sums[i - 1] > drawn) i--;
    while (i < TAXI_STARTS && !(taxi_start_sums[i] > drawn)) i++;
    return i < TAXI_STARTS ? taxi_starts[i] : 0;
}

static inline void taxi_reset(Taxi *env) {
    if (puffer_is_first(&env->game)) taxi_read_parameters(env);
    const int32_t state = taxi_draw_start(env);
    env->destination = state % TAXI_STANDS;
    env->passenger = state / TAXI_STANDS % (TAXI_STANDS + 1);
    env->place = state / (TAXI_STANDS * (TAXI_STANDS + 1));
    env->prob = 1;
    env->changes_mind =
        env->fickle_passenger && puffer_unit(&env->generator) < puffer_decimal(env->fickle_probability);
    taxi_observe(env);
}

/* The place after a move, or the same one if a wall or the end of the town stops it. */
static inline int32_t taxi_moved(int32_t place, int32_t direction) {
    switch (direction) {
        case TAXI_SOUTH:
            return place < TAXI_SIZE * (TAXI_SIZE - 1) ? place + TAXI_SIZE : place;
        case TAXI_NORTH:
            return place >= TAXI_SIZE ? place - TAXI_SIZE : place;
        case TAXI_EAST:
            return place + !taxi_walls[place];
        default:
            return place - (place % TAXI_SIZE > 0 && !taxi_walls[place - 1]);
    }
}

static inline int32_t taxi_stand_at(int32_t place) {
    for (int32_t stand = 0; stand < TAXI_STANDS; stand++) {
        if (taxi_stands[stand] == place) return stand;
    }
    return -1;
}

/* Moves ahead or, in the rain, to a side. If the way ahead is closed, there is no move to a side either. */
static inline void taxi_move(Taxi *env, int32_t action) {
    static const int32_t sides[][3] = {
        [TAXI_SOUTH] = {TAXI_SOUTH, TAXI_EAST, TAXI_WEST},
        [TAXI_NORTH] = {TAXI_NORTH, TAXI_WEST, TAXI_EAST},
        [TAXI_EAST] = {TAXI_EAST, TAXI_NORTH, TAXI_SOUTH},
        [TAXI_WEST] = {TAXI_WEST, TAXI_SOUTH, TAXI_NORTH},
    };
    const int32_t before = env->place;
    const int32_t drawn =
        env->is_rainy ? puffer_categorical(&env->generator, env->sums, 3) : (puffer_unit(&env->generator), 0);
    if (env->is_rainy) env->prob = (float)(drawn == 0 ? env->sums[0] : (1.0 - env->sums[0]) / 2.0);
    if (taxi_moved(before, action) != before) env->place = taxi_moved(before, sides[action][drawn]);
    if (!env->changes_mind || env->passenger != TAXI_INSIDE || env->place == before) return;
    env->changes_mind = false;
    const int32_t other = (int32_t)puffer_integer(&env->generator, TAXI_STANDS - 1);
    env->destination = other + (other >= env->destination);
}

/* Returns the reward. */
static inline float taxi_pick_up(Taxi *env) {
    if (env->passenger == TAXI_INSIDE || taxi_stands[env->passenger] != env->place) return -10;
    env->passenger = TAXI_INSIDE;
    return -1;
}

/* Returns the reward. */
static inline float taxi_drop_off(Taxi *env) {
    const int32_t stand = taxi_stand_at(env->place);
    if (env->passenger != TAXI_INSIDE || stand < 0) return -10;
    env->passenger = stand;
    return stand == env->destination ? 20 : -1;
}

static inline float taxi_act(Taxi *env, int32_t action) {
    if (action < 0 || action >= TAXI_ACTIONS) return -1;
    if (action < TAXI_PICK_UP) {
        taxi_move(env, action);
        return -1;
    }
    puffer_unit(&env->generator); /* chooses among the outcomes, of which there is one */
    env->prob = 1;
    return action == TAXI_PICK_UP ? taxi_pick_up(env) : taxi_drop_off(env);
}

/* Computes the infos of the last step. */
static inline void taxi_end(Taxi *env) {
    const bool is_inside = env->passenger == TAXI_INSIDE;
    const double ahead = env->sums[0], side = (1.0 - ahead) / 2.0;
    env->exact_prob = env->prob == 1 ? 1 : env->prob == (float)ahead ? ahead : side;
    for (int32_t action = 0; action < TAXI_PICK_UP; action++)
        env->action_mask[action] = taxi_moved(env->place, action) != env->place;
    env->action_mask[TAXI_PICK_UP] = !is_inside && taxi_stands[env->passenger] == env->place;
    env->action_mask[TAXI_DROP_OFF] = is_inside && taxi_stand_at(env->place) >= 0;
}

static inline PufferOutcome taxi_step(Taxi *env) {
    env->game.rewards[0] = taxi_act(env, *(const int32_t *)env->game.actions);
    taxi_observe(env);
    const bool has_arrived = env->game.rewards[0] > 0;
    if (!has_arrived && (env->max_steps == 0 || env->game.episode_length < env->max_steps))
        return PUFFER_RUNNING;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = has_arrived;
    taxi_end(env);
    return has_arrived ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
