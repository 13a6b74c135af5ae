/* Trash pickup: agents on a grid carry trash to bins, which they can push.
 *
 * The grid has `grid_size` by `grid_size` cells. Agents act one after the other, in the order of their
 * numbers, and carry at most one piece of trash.
 *
 * Observation  int8[5][n][n], n = 2 * agent_sight_range + 1, the cells around the agent, row by row. Each
 *              channel is 1 where there is: 0 an empty cell, 1 trash, 2 a bin, 3 an agent (itself in the
 *              middle), 4 an agent that carries trash, and 0 elsewhere. Outside of the grid all are 0.
 * Actions      Discrete(4): 0 up, 1 down, 2 left, 3 right. Any other number stays.
 * Rewards      reward_pickup for picking up a piece, reward_deposit for putting one into a bin.
 * Ends         terminal for all when every piece is in a bin, truncation after max_steps.
 * Rules        The result depends on the cell ahead. Empty cell: the agent moves there. Trash, with empty
 *              hands: it moves there and carries the piece. Bin, with a piece: it deposits the piece and does
 *              not move. Bin, with empty hands: it pushes the bin one cell and follows, if the cell behind it
 *              is empty. Anything else blocks it.
 * Memory       of a game: 6 bytes per cell, with agent_sight_range cells around the grid, 8 per agent, and an
 *              observation: 3.3 KB by default.
 * Source       PufferLib's Trash Pickup. There the step limit is a terminal, channel 0 is always 0, so that
 *              agents cannot see where the grid ends, and the score counts some of the pieces that left the
 *              floor, instead of those that are in bins. */
#ifndef TRASH_PICKUP_H
#define TRASH_PICKUP_H

#include "puffer_env.h"

/* Contents of a cell. All but the last have their own channel. */
enum { TRASH_EMPTY, TRASH_PIECE, TRASH_BIN, TRASH_AGENT, TRASH_OUTSIDE };
enum { TRASH_CARRYING = 4, TRASH_CHANNELS };
enum { TRASH_UP, TRASH_DOWN, TRASH_LEFT, TRASH_RIGHT, TRASH_NUM_ACTIONS };
enum {
    TRASH_MIN_SIGHT = 2,
    TRASH_BLOCK = 16, /* cells that are copied together */
};

typedef struct {
    int32_t cell;
    bool carries;
} TrashAgent;

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t grid_size, num_agents, num_trash, num_bins, max_steps, agent_sight_range;
    float reward_pickup, reward_deposit;
    /* metrics */
    float score, perf;
    /* state */
    int32_t deposited, carried;
    int32_t stride, cells; /* of the grid with a margin of agent_sight_range: cells in a row, and in all */
    /* behind the struct */
    TrashAgent *agents; /* [num_agents] */
    uint8_t *kinds;     /* [cells]: content of each cell */
    int8_t *channels;   /* [TRASH_CHANNELS][cells], plus a block: the same as observed by agents */
    int8_t *scratch;    /* an observation, plus a block */
} TrashPickup;

static const char trash_pickup_about[] = "Agents on a grid carry trash to bins, which they can push about.";

/* clang-format off */
static const PufferParameter trash_pickup_parameters[] = {
    PUFFER_PARAMETER(TrashPickup, grid_size, 10, 2, 128, "cells along a side of the grid"),
    PUFFER_PARAMETER(TrashPickup, num_agents, 3, 1, 256, "agents of a game"),
    PUFFER_PARAMETER(TrashPickup, num_trash, 15, 1, 4096, "pieces of trash on the floor at first"),
    PUFFER_PARAMETER(TrashPickup, num_bins, 2, 1, 256, "bins"),
    PUFFER_PARAMETER(TrashPickup, max_steps, 300, 10, 100000000, "steps until the game is cut off"),
    PUFFER_PARAMETER(TrashPickup, agent_sight_range, 5, TRASH_MIN_SIGHT, 10, "cells that an agent sees in each direction"),
    PUFFER_PARAMETER(TrashPickup, reward_pickup, 0.5, -1000, 1000, "reward for picking up a piece"),
    PUFFER_PARAMETER(TrashPickup, reward_deposit, 0.5, -1000, 1000, "reward for putting a piece into a bin"),
};

static const size_t trash_pickup_pointers[] = {offsetof(TrashPickup, agents), offsetof(TrashPickup, kinds), offsetof(TrashPickup, channels), offsetof(TrashPickup, scratch)};

static const PufferMetric trash_pickup_metrics[] = {
    PUFFER_METRIC(TrashPickup, score, "pieces in bins"),
    PUFFER_METRIC(TrashPickup, perf, "the same as a share of all pieces"),
};
/* clang-format on */

static inline int32_t trash_pickup_side(const TrashPickup *env) {
    return 2 * env->agent_sight_range + 1;
}

/* ---- Memory, which depends on the parameters --------------------------------------------------------------
 */

/* Offsets of the arrays behind the struct. */
typedef struct {
    size_t agents, kinds, channels, scratch, end;
    int32_t stride, cells;
} TrashLayout;

static inline TrashLayout trash_pickup_layout(const TrashPickup *env) {
    TrashLayout layout = {.stride = env->grid_size + 2 * env->agent_sight_range};
    layout.cells = layout.stride * layout.stride;
    const size_t cells = (size_t)layout.cells, side = (size_t)trash_pickup_side(env);
    layout.agents = sizeof(TrashPickup);
    layout.kinds = layout.agents + (size_t)env->num_agents * sizeof(TrashAgent);
    layout.channels = layout.kinds + cells;
    layout.scratch = layout.channels + TRASH_CHANNELS * cells + TRASH_BLOCK;
    layout.end = (layout.scratch + TRASH_CHANNELS * side * side + TRASH_BLOCK + 63) / 64 * 64;
    return layout;
}

static inline size_t trash_pickup_bytes(const void *game) {
    return trash_pickup_layout(game).end;
}

enum { TRASH_FIELD_PX = 640, TRASH_TOP_PX = 56, TRASH_MARGIN_PX = 8 };

static inline int32_t trash_pickup_cell_px(const TrashPickup *env) {
    const int32_t px = TRASH_FIELD_PX / env->grid_size;
    return px < 48 ? px : 48;
}

static inline const char *trash_pickup_spec(const TrashPickup *env, PufferSpec *spec) {
    if (env->num_agents + env->num_trash + env->num_bins >= env->grid_size * env->grid_size) {
        return "num_agents plus num_trash plus num_bins must be less than grid_size squared";
    }
    const int32_t field = trash_pickup_cell_px(env) * env->grid_size + 2 * TRASH_MARGIN_PX;
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT8,
        .observation_shape = {TRASH_CHANNELS, trash_pickup_side(env), trash_pickup_side(env)},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {TRASH_NUM_ACTIONS},
        .agents = env->num_agents,
        .picture_width = field > 480 ? field : 480,
        .picture_height = field + TRASH_TOP_PX,
        .frames_per_second = 8,
    };
    return NULL;
}

/* ---- Cells ------------------------------------------------------------------------------------------------
 */

static inline void trash_pickup_set_cell(TrashPickup *env, int32_t cell, uint8_t kind) {
    env->channels[env->kinds[cell] * env->cells + cell] = false;
    env->channels[kind * env->cells + cell] = true;
    env->kinds[cell] = kind;
}

/* Puts something on a random empty cell. Returns the cell. */
static inline int32_t trash_pickup_scatter(TrashPickup *env, uint8_t kind) {
    int32_t cell;
    do {
        const int32_t row = env->agent_sight_range + puffer_random_below(&env->game.rng, env->grid_size);
        const int32_t column = env->agent_sight_range + puffer_random_below(&env->game.rng, env->grid_size);
        cell = row * env->stride + column;
    } while (env->kinds[cell] != TRASH_EMPTY);
    trash_pickup_set_cell(env, cell, kind);
    return cell;
}

static inline void trash_pickup_set_carrying(TrashPickup *env, TrashAgent *agent, bool carries) {
    env->channels[TRASH_CARRYING * env->cells + agent->cell] = carries;
    env->carried += carries - agent->carries;
    agent->carries = carries;
}

/* ---- Observing --------------------------------------------------------------------------------------------
 */

/* Copies the view of an agent, and up to TRASH_BLOCK - 1 further bytes. */
static inline void trash_pickup_copy_view(const TrashPickup *env, const TrashAgent *agent, int8_t *seen) {
    const int32_t side = trash_pickup_side(env);
    const int8_t *corner = env->channels + agent->cell - env->agent_sight_range * (env->stride + 1);
    for (int32_t channel = 0; channel < TRASH_CHANNELS; channel++, corner += env->cells) {
        const int8_t *row = corner;
        for (int32_t i = 0; i < side; i++, row += env->stride, seen += side) {
            for (int32_t k = 0; k < side; k += TRASH_BLOCK) memcpy(seen + k, row + k, TRASH_BLOCK);
        }
    }
}

/* Writes all observations. Each overwrites the extra bytes of the previous one. The last one has no extra
 * bytes. */
static inline void trash_pickup_observe(TrashPickup *env) {
    const size_t size = (size_t)(TRASH_CHANNELS * trash_pickup_side(env) * trash_pickup_side(env));
    const int32_t last = env->num_agents - 1;
    int8_t *seen = env->game.observations;
    for (int32_t i = 0; i < last; i++, seen += size) trash_pickup_copy_view(env, &env->agents[i], seen);
    trash_pickup_copy_view(env, &env->agents[last], env->scratch);
    memcpy(seen, env->scratch, size);
}

static inline void trash_pickup_clear(TrashPickup *env) {
    const int32_t sight = env->agent_sight_range, size = env->grid_size;
    memset(env->kinds, TRASH_OUTSIDE, (size_t)env->cells);
    memset(env->channels, false, (size_t)(TRASH_CHANNELS * env->cells));
    for (int32_t row = sight; row < sight + size; row++) {
        memset(env->kinds + row * env->stride + sight, TRASH_EMPTY, (size_t)size);
        memset(env->channels + row * env->stride + sight, true, (size_t)size);
    }
}

static inline void trash_pickup_reset(TrashPickup *env) {
    const TrashLayout layout = trash_pickup_layout(env);
    env->stride = layout.stride;
    env->cells = layout.cells;
    env->agents = (TrashAgent *)((char *)env + layout.agents);
    env->kinds = (uint8_t *)env + layout.kinds;
    env->channels = (int8_t *)env + layout.channels;
    env->scratch = (int8_t *)env + layout.scratch;
    env->deposited = env->carried = 0;
    trash_pickup_clear(env);
    for (int32_t i = 0; i < env->num_agents; i++) {
        env->agents[i] = (TrashAgent){.cell = trash_pickup_scatter(env, TRASH_AGENT)};
    }
    for (int32_t i = 0; i < env->num_bins; i++) trash_pickup_scatter(env, TRASH_BIN);
    for (int32_t i = 0; i < env->num_trash; i++) trash_pickup_scatter(env, TRASH_PIECE);
    trash_pickup_observe(env);
}

/* ---- A step -----------------------------------------------------------------------------------------------
 */

static inline void trash_pickup_move(TrashPickup *env, TrashAgent *agent, int32_t cell) {
    const bool carries = agent->carries;
    trash_pickup_set_carrying(env, agent, false);
    trash_pickup_set_cell(env, agent->cell, TRASH_EMPTY);
    agent->cell = cell;
    trash_pickup_set_cell(env, cell, TRASH_AGENT);
    trash_pickup_set_carrying(env, agent, carries);
}

/* An agent without trash walks against a bin. */
static inline void trash_pickup_push(TrashPickup *env, TrashAgent *agent, int32_t move) {
    const int32_t bin = agent->cell + move;
    if (env->kinds[bin + move] != TRASH_EMPTY) return;
    trash_pickup_set_cell(env, bin + move, TRASH_BIN);
    trash_pickup_move(env, agent, bin);
}

/* Returns the reward. */
static inline float trash_pickup_act(TrashPickup *env, TrashAgent *agent, int32_t move) {
    const int32_t cell = agent->cell + move;
    const uint8_t found = env->kinds[cell];
    if (found == TRASH_EMPTY) {
        trash_pickup_move(env, agent, cell);
    } else if (found == TRASH_PIECE && !agent->carries) {
        trash_pickup_move(env, agent, cell);
        trash_pickup_set_carrying(env, agent, true);
        return env->reward_pickup;
    } else if (found == TRASH_BIN && agent->carries) {
        trash_pickup_set_carrying(env, agent, false);
        env->deposited++;
        return env->reward_deposit;
    } else if (found == TRASH_BIN) {
        trash_pickup_push(env, agent, move);
    }
    return 0;
}

static inline PufferOutcome trash_pickup_step(TrashPickup *env) {
    const int32_t moves[TRASH_NUM_ACTIONS] = {-env->stride, env->stride, -1, 1};
    const uint32_t *actions = env->game.actions; /* negative numbers become large */
    for (int32_t i = 0; i < env->num_agents; i++) {
        if (actions[i] >= TRASH_NUM_ACTIONS) continue;
        env->game.rewards[i] = trash_pickup_act(env, &env->agents[i], moves[actions[i]]);
    }
    trash_pickup_observe(env);
    env->score = (float)env->deposited;
    env->perf = env->score / (float)env->num_trash;
    if (env->deposited == env->num_trash) return PUFFER_TERMINATED;
    return env->game.episode_length < env->max_steps ? PUFFER_RUNNING : PUFFER_TRUNCATED;
}

#endif
