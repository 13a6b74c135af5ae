/* Rware: warehouse robots bring requested shelves to the goals, and then back to a free place.
 *
 * The three maps are below. A robot without a shelf can drive under shelves. A robot that carries a shelf
 * needs a free cell. Only requested shelves can be lifted.
 *
 * Observation  float[30] for each robot:
 *              - for each of the 8 cells around it, clockwise from the one above: 1 if there is a robot, its
 *                heading (0 if there is none, else 1/4 right, 2/4 down, 3/4 left, 1 up) and the cell (0
 *                outside, 1/5 floor, 2/5 free place, 3/5 shelf, 4/5 requested shelf, 1 goal)
 *              - the same code of its own cell, its row and column as fractions of the map, its heading as
 *                steps to the right and down
 *              - its load: 0 none, 1/2 a requested shelf, 1 a shelf to be returned
 * Actions      Discrete(5): 0 stay, 1 forward, 2 turn left, 3 turn right, 4 lift or put down. Any other
 *              number stays. Only requested shelves can be lifted. A requested shelf is put down at a goal,
 *              where it is emptied and stays on the robot, which must return it. A shelf to be returned is
 *              put down on any free place.
 * Rewards      for the robot: reward_lift for lifting a requested shelf, reward_deliver for emptying it at a
 *              goal, reward_return for returning it.
 * Ends         truncation after max_steps steps, for all robots. Returning a shelf completes a delivery.
 * Rules        All robots move at once. A robot that goes forward into a free cell moves. A robot that goes
 *              into the cell of a robot that moves away follows it. Circles of robots rotate. Two robots
 *              never swap places. If several want the same cell, robots are handled in the order of their
 *              numbers, each after the one in front of it, and circles come first. Robots with a shelf to be
 *              returned cannot enter a goal, and robots with any shelf cannot enter a place that has one.
 *              When a shelf is delivered, another shelf that is in its place and not requested becomes
 *              requested, so that there are always num_requested_shelves.
 * Source       Papoudakis et al., "Benchmarking Multi-Agent Deep Reinforcement Learning Algorithms in
 *              Cooperative Tasks" (2021), and PufferLib's RWare, whose maps and numbers these are. There a
 *              robot sees at most one other robot, not its own cell, and not where shelves may be returned.
 *              Seeds have no effect, and episodes never end.
 *
 * A game takes 1.3 KB for all parameters. */
#ifndef RWARE_H
#define RWARE_H

#include "puffer_env.h"

enum { RWARE_STAY, RWARE_FORWARD, RWARE_LEFT, RWARE_RIGHT, RWARE_LIFT };
enum { RWARE_OUTSIDE, RWARE_FLOOR, RWARE_PLACE, RWARE_SHELF, RWARE_REQUESTED, RWARE_GOAL };
enum { RWARE_EMPTY, RWARE_CARRY, RWARE_RETURN };
enum { RWARE_MAPS = 3, RWARE_MAX_ROWS = 16, RWARE_MAX_AGENTS = 64, RWARE_MAX_REQUESTS = 80 };
/* The map as it is stored: with a border, in rows of the same length. */
enum { RWARE_PITCH = 22, RWARE_CELLS = RWARE_PITCH * (RWARE_MAX_ROWS + 2) };
enum {
    RWARE_NUMBERS = 30,
    RWARE_OWN = 24,
    RWARE_ROBOT = 8
}; /* RWARE_ROBOT * (heading + 1): a robot on a cell */

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t num_agents, map_choice, num_requested_shelves, max_steps;
    float reward_lift, reward_deliver, reward_return;
    /* metrics */
    float score, perf;
    /* state */
    int32_t deliveries;
    float row_share, column_share;
    uint16_t cells[RWARE_MAX_AGENTS], targets[RWARE_MAX_AGENTS];
    uint8_t headings[RWARE_MAX_AGENTS], loads[RWARE_MAX_AGENTS];
    uint8_t map[RWARE_CELLS]; /* content of the cell, plus RWARE_ROBOT * (heading + 1) for the robot on it */
    uint8_t robot[RWARE_CELLS]; /* number of the robot, if there is one */
} Rware;

/* '.' floor, '#' shelf, 'G' goal */
static const char *const rware_maps[RWARE_MAPS][RWARE_MAX_ROWS + 1] = {
    {
        "..........",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        ".##....##.",
        "..........",
        "....GG....",
    },
    {
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
        "G..........########.",
        "G..........########.",
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
    },
    {
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
        "G..........########.",
        "G..........########.",
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
        "..########.########.",
        "..########.########.",
        "....................",
    },
};

static const char rware_about[] = "Robots of a warehouse bring requested shelves to the goals, and back.";

/* clang-format off */
static const PufferParameter rware_parameters[] = {
    PUFFER_PARAMETER(Rware, num_agents, 4, 1, RWARE_MAX_AGENTS, "robots"),
    PUFFER_PARAMETER(Rware, map_choice, 1, 1, RWARE_MAPS, "1 tiny (11 x 10), 2 small (10 x 20), 3 medium (16 x 20)"),
    PUFFER_PARAMETER(Rware, num_requested_shelves, 4, 1, RWARE_MAX_REQUESTS, "shelves that are asked for at any time"),
    PUFFER_PARAMETER(Rware, max_steps, 500, 1, 1000000, "steps until the episode is cut off"),
    PUFFER_PARAMETER(Rware, reward_lift, 0.5, -100, 100, "reward for lifting a requested shelf"),
    PUFFER_PARAMETER(Rware, reward_deliver, 0.5, -100, 100, "reward for emptying it at a goal"),
    PUFFER_PARAMETER(Rware, reward_return, 1, -100, 100, "reward for returning it to a free place"),
};

static const PufferMetric rware_metrics[] = {
    PUFFER_METRIC(Rware, score, "deliveries of the episode for each robot"),
    PUFFER_METRIC(Rware, perf, "1 if robots need 25 steps for a delivery, 0.5 if 50"),
};
/* clang-format on */

static inline int32_t rware_rows(const Rware *env) {
    int32_t rows = 0;
    while (rware_maps[env->map_choice - 1][rows] != NULL) rows++;
    return rows;
}

static inline int32_t rware_columns(const Rware *env) {
    return (int32_t)strlen(rware_maps[env->map_choice - 1][0]);
}

/* Returns the number of cells of the map that are `kind`: '.', '#' or 'G'. */
static inline int32_t rware_count(const Rware *env, char kind) {
    int32_t count = 0;
    for (int32_t row = 0; row < rware_rows(env); row++) {
        for (const char *at = rware_maps[env->map_choice - 1][row]; *at != '\0'; at++) count += *at == kind;
    }
    return count;
}

static inline const char *rware_spec(const Rware *env, PufferSpec *spec) {
    if (env->num_agents + env->num_requested_shelves > rware_count(env, '#')) {
        return "num_agents plus num_requested_shelves must be at most the shelves that map_choice has: 32, "
               "80 or "
               "144";
    }
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {RWARE_NUMBERS},
        .observation_low = -1,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {5},
        .agents = env->num_agents,
        .picture_width = 40 * rware_columns(env),
        .picture_height = 40 * rware_rows(env) + 60,
        .frames_per_second = 8,
    };
    return NULL;
}

static inline int32_t rware_cell(int32_t row, int32_t column) {
    return (row + 1) * RWARE_PITCH + column + 1;
}

/* ---- Observation -------------------------------------------------------------------------------- */

/* The three numbers of a neighbouring cell, for every value of `map`. The fourth is not used. */
#define RWARE_SEEN(robot, heading)                                                                  \
    {robot, heading, 0.0f}, {robot, heading, 0.2f}, {robot, heading, 0.4f}, {robot, heading, 0.6f}, \
        {robot, heading, 0.8f}, {robot, heading, 1.0f}, {robot, heading, 0.0f}, {robot, heading, 0.0f}
static const float rware_seen[5 * RWARE_ROBOT][4] = {
    RWARE_SEEN(0.0f, 0.0f),  RWARE_SEEN(1.0f, 0.25f), RWARE_SEEN(1.0f, 0.5f),
    RWARE_SEEN(1.0f, 0.75f), RWARE_SEEN(1.0f, 1.0f),
};

static inline void rware_observe(const Rware *env) {
    static const float right[4] = {1, 0, -1, 0}, down[4] = {0, 1, 0, -1}, load[3] = {0, 0.5f, 1};
    float *row = env->game.observations;
    for (int32_t i = 0; i < env->num_agents; i++, row += RWARE_NUMBERS) {
        const int32_t cell = env->cells[i], heading = env->headings[i];
        const uint8_t *at = env->map + cell;
        /* Copies four numbers at once. The next copy overwrites the last of them. */
        memcpy(row, rware_seen[at[-RWARE_PITCH]], 16);
        memcpy(row + 3, rware_seen[at[-RWARE_PITCH + 1]], 16);
        memcpy(row + 6, rware_seen[at[1]], 16);
        memcpy(row + 9, rware_seen[at[RWARE_PITCH + 1]], 16);
        memcpy(row + 12, rware_seen[at[RWARE_PITCH]], 16);
        memcpy(row + 15, rware_seen[at[RWARE_PITCH - 1]], 16);
        memcpy(row + 18, rware_seen[at[-1]], 16);
        memcpy(row + 21, rware_seen[at[-RWARE_PITCH - 1]], 16);
        row[RWARE_OWN] = rware_seen[at[0]][2];
        row[RWARE_OWN + 1] = (float)(cell / RWARE_PITCH - 1) * env->row_share;
        row[RWARE_OWN + 2] = (float)(cell % RWARE_PITCH - 1) * env->column_share;
        row[RWARE_OWN + 3] = right[heading];
        row[RWARE_OWN + 4] = down[heading];
        row[RWARE_OWN + 5] = load[env->loads[i]];
    }
}

/* ---- Reset -------------------------------------------------------------------------------------- */

static inline int32_t rware_kind(const Rware *env, int32_t cell) {
    return env->map[cell] % RWARE_ROBOT;
}

static inline bool rware_is_free(const Rware *env, int32_t cell) {
    return env->map[cell] < RWARE_ROBOT;
}

static inline void rware_place_robot(Rware *env, int32_t i, int32_t cell) {
    env->cells[i] = (uint16_t)cell;
    env->robot[cell] = (uint8_t)i;
    env->map[cell] = (uint8_t)(env->map[cell] + RWARE_ROBOT * (env->headings[i] + 1));
}

static inline void rware_remove_robot(Rware *env, int32_t i) {
    env->map[env->cells[i]] = (uint8_t)rware_kind(env, env->cells[i]);
}

static inline void rware_build(Rware *env) {
    const int32_t rows = rware_rows(env), columns = rware_columns(env);
    memset(env->map, RWARE_OUTSIDE, sizeof env->map);
    for (int32_t row = 0; row < rows; row++) {
        for (int32_t column = 0; column < columns; column++) {
            const char kind = rware_maps[env->map_choice - 1][row][column];
            env->map[rware_cell(row, column)] = kind == '#'   ? RWARE_SHELF
                                                : kind == 'G' ? RWARE_GOAL
                                                              : RWARE_FLOOR;
        }
    }
    env->row_share = 1.0f / (float)(rows - 1);
    env->column_share = 1.0f / (float)(columns - 1);
}

/* Returns a random cell of this kind, without or with a robot on it. */
static inline int32_t rware_pick(Rware *env, int32_t kind, bool robots) {
    int32_t count = 0, cell = 0;
    for (int32_t i = 0; i < RWARE_CELLS; i++) {
        count += rware_kind(env, i) == kind && (robots || rware_is_free(env, i));
    }
    for (int32_t skip = puffer_random_below(&env->game.rng, count); skip >= 0; cell++) {
        skip -= rware_kind(env, cell) == kind && (robots || rware_is_free(env, cell));
    }
    return cell - 1;
}

static inline void rware_request(Rware *env) {
    env->map[rware_pick(env, RWARE_SHELF, true)] += RWARE_REQUESTED - RWARE_SHELF;
}

static inline void rware_reset(Rware *env) {
    env->deliveries = 0;
    rware_build(env);
    for (int32_t i = 0; i < env->num_requested_shelves; i++) rware_request(env);
    for (int32_t i = 0; i < env->num_agents; i++) {
        env->headings[i] = (uint8_t)(puffer_random(&env->game.rng) >> 30);
        env->loads[i] = RWARE_EMPTY;
        rware_place_robot(env, i, rware_pick(env, RWARE_FLOOR, false));
    }
    rware_observe(env);
}

/* ---- Actions on a robot's own cell -------------------------------------------------------------- */

/* Lifts or puts down a shelf, if possible. */
static inline void rware_lift(Rware *env, int32_t i) {
    uint8_t *at = &env->map[env->cells[i]];
    const int32_t kind = *at % RWARE_ROBOT, load = env->loads[i];
    if (load == RWARE_EMPTY && kind == RWARE_REQUESTED) {
        *at -= RWARE_REQUESTED - RWARE_PLACE;
        env->loads[i] = RWARE_CARRY;
        env->game.rewards[i] = env->reward_lift;
    } else if (load == RWARE_CARRY && kind == RWARE_GOAL) {
        env->loads[i] = RWARE_RETURN;
        env->game.rewards[i] = env->reward_deliver;
        rware_request(env);
    } else if (load == RWARE_RETURN && kind == RWARE_PLACE) {
        *at += RWARE_SHELF - RWARE_PLACE;
        env->loads[i] = RWARE_EMPTY;
        env->game.rewards[i] = env->reward_return;
        env->deliveries++;
    }
}

/* Turns and lifts. Returns the set of the robots that want to move to their `targets`. */
static inline uint64_t rware_act(Rware *env) {
    static const int8_t turns[8] = {[RWARE_LEFT] = 3, [RWARE_RIGHT] = 1};
    static const int16_t steps[4] = {1, RWARE_PITCH, -1, -RWARE_PITCH};
    /* a bit for each kind of cell that a robot with this load may enter */
    static const uint8_t open[3] = {
        [RWARE_EMPTY] =
            1 << RWARE_FLOOR | 1 << RWARE_PLACE | 1 << RWARE_SHELF | 1 << RWARE_REQUESTED | 1 << RWARE_GOAL,
        [RWARE_CARRY] = 1 << RWARE_FLOOR | 1 << RWARE_PLACE | 1 << RWARE_GOAL,
        [RWARE_RETURN] = 1 << RWARE_FLOOR | 1 << RWARE_PLACE,
    };
    const int32_t *actions = env->game.actions;
    uint64_t moving = 0;
    for (int32_t i = 0; i < env->num_agents; i++) {
        const uint32_t action = (uint32_t)actions[i] <= RWARE_LIFT ? (uint32_t)actions[i] : RWARE_STAY;
        const int32_t cell = env->cells[i], heading = (env->headings[i] + turns[action]) & 3;
        const int32_t target = cell + steps[heading];
        const uint64_t enters = open[env->loads[i]] >> rware_kind(env, target) & 1;
        env->map[cell] = (uint8_t)(env->map[cell] + RWARE_ROBOT * (heading - env->headings[i]));
        env->headings[i] = (uint8_t)heading;
        env->targets[i] = (uint16_t)target;
        moving |= (enters & (action == RWARE_FORWARD)) << i;
        if (action == RWARE_LIFT) rware_lift(env, i);
    }
    return moving;
}

/* ---- Moves -------------------------------------------------------------------------------------- */

static inline void rware_move(Rware *env, int32_t i) {
    rware_remove_robot(env, i);
    rware_place_robot(env, i, env->targets[i]);
}

/* Moves a circle of robots, each of which wants the cell of the one after it in `circle`. */
static inline void rware_rotate(Rware *env, const uint8_t *circle, int32_t length) {
    for (int32_t k = 0; k < length; k++) rware_remove_robot(env, circle[k]);
    for (int32_t k = 0; k < length; k++) rware_place_robot(env, circle[k], env->targets[circle[k]]);
}

/* Resolves the move of robot `first` and of all robots that it waits for. Returns the unresolved ones. */
static inline uint64_t rware_resolve_moves(Rware *env, int32_t first, uint64_t moving) {
    uint8_t line[RWARE_MAX_AGENTS]; /* each robot wants the cell of the one after it */
    int32_t length = 0, front = first;
    for (;;) {
        moving &= ~((uint64_t)1 << front);
        line[length++] = (uint8_t)front;
        const int32_t target = env->targets[front];
        if (rware_is_free(env, target)) break;
        front = env->robot[target];
        if (!(moving >> front & 1)) {
            /* The robot stays, or is in this line: a circle, which moves unless it has two robots. */
            int32_t start = 0;
            while (start < length && line[start] != front) start++;
            if (length - start > 2) rware_rotate(env, line + start, length - start);
            return moving;
        }
    }
    while (length > 0) rware_move(env, line[--length]);
    return moving;
}

static inline PufferOutcome rware_step(Rware *env) {
    uint64_t moving = rware_act(env);
    while (moving != 0) moving = rware_resolve_moves(env, __builtin_ctzll(moving), moving);
    rware_observe(env);
    if (env->game.episode_length < env->max_steps) return PUFFER_RUNNING;
    env->score = (float)env->deliveries / (float)env->num_agents;
    env->perf = puffer_min(25 * env->score / (float)env->max_steps, 1);
    return PUFFER_TRUNCATED;
}

#endif
