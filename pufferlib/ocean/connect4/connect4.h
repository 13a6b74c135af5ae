/* Connect4: drop discs into seven columns of six cells. Four in a line win. The agent moves first. An
 * opponent that searches `depth` moves ahead answers within the same step, or a second agent takes turns with
 * it.
 *
 * Observation  float[49]: 42 cells, column by column from the left, each from the bottom: 1 own disc, -1 disc
 *              of the opponent, 0 empty. Then a mask of the 7 actions: 1 if legal, 0 if the column is full.
 * Actions      Discrete(7): the column. A full column, or any other number, loses immediately. With two
 *              players, the player who is not to move can only wait: 0 is legal, and any number does nothing.
 * Rewards      1 for a win, -1 for a loss, 0 for a draw and for all other moves.
 * Ends         terminal with four in a line, with a full board (a draw), and with an illegal move.
 * Opponent     Minimax, `depth` moves ahead, including its own next move. It forces a win as soon as
 *              possible, or else avoids a loss, or delays it as long as possible. Among equal moves it
 *              chooses at random. It therefore never misses a win from depth 1 on, nor a block from depth 2
 *              on. If all moves lose to the next one, it blocks what can be blocked.
 * Players      1: an agent against the opponent. 2: an agent for each side. The first one moves first. Both
 *              are present in every step, each sees its own discs as 1, and one of them waits.
 * Source       PufferLib's connect4. There the opponent also looks four moves ahead, but adds up values over
 *              replies, so that it makes mistakes, and answers two openings from a book. A full board is
 *              never a draw, and only games that end at the moment of a report are counted.
 *
 * A side is a word of bits, seven per column. The lowest is the bottom cell and the seventh is always 0,
 * which prevents lines from wrapping around the edges. A game has 56 bytes in addition to the common head.
 * There are no tables. */
#ifndef CONNECT4_H
#define CONNECT4_H

#include "puffer_env.h"

enum { CONNECT4_COLUMNS = 7, CONNECT4_ROWS = 6, CONNECT4_CELLS = 42 };
enum { CONNECT4_OBSERVED = CONNECT4_CELLS + CONNECT4_COLUMNS };

#define CONNECT4_BOTTOM 0x0000040810204081u /* lowest cell of each column */
#define CONNECT4_BOARD  (CONNECT4_BOTTOM * 0x3Fu)

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t depth, players;
    /* metrics */
    float score, perf, drawn, illegal;
    /* state */
    uint64_t own, other;           /* discs of the agent, and of the opponent or second agent */
    uint64_t own_last, other_last; /* the last disc; 0 before the first, and after an illegal move */
} Connect4;

static const char connect4_about[] = "Four in a line against an opponent that searches with minimax.";

/* clang-format off */
static const PufferParameter connect4_parameters[] = {
    PUFFER_PARAMETER(Connect4, depth, 4, 0, 8, "moves that the opponent looks ahead, 0 to play at random"),
    PUFFER_PARAMETER(Connect4, players, 1, 1, 2, "agents of a game: 1 plays against the opponent, 2 against each other"),
};

static const PufferMetric connect4_metrics[] = {
    PUFFER_METRIC(Connect4, score, "1 for a win, 0 for a draw, -1 for a loss, for the first agent"),
    PUFFER_METRIC(Connect4, perf, "share of games that the first agent won"),
    PUFFER_METRIC(Connect4, drawn, "share of games drawn"),
    PUFFER_METRIC(Connect4, illegal, "share of games lost by an illegal move"),
};
/* clang-format on */

static inline const char *connect4_spec(const Connect4 *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {CONNECT4_OBSERVED},
        .observation_low = -1,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {CONNECT4_COLUMNS},
        .action_mask = {.offset = CONNECT4_CELLS, .size = CONNECT4_COLUMNS},
        .agents = env->players,
        .picture_width = 600,
        .picture_height = 600,
        .frames_per_second = 2,
    };
    return NULL;
}

/* ---- The board ---------------------------------------------------------------------------------- */

static inline uint64_t connect4_column(int32_t column) {
    return (uint64_t)0x3F << 7 * column;
}

/* Returns the cells that a disc can fall into, one in each column that is not full. */
static inline uint64_t connect4_playable(uint64_t discs) {
    return (discs + CONNECT4_BOTTOM) & CONNECT4_BOARD;
}

/* Neighbours are 1 bit apart upwards, 6 down to the right, 7 to the right, 8 up to the right. */
static inline bool connect4_has_line(uint64_t side) {
    const uint64_t up = side & side >> 1, down = side & side >> 6;
    const uint64_t level = side & side >> 7, rising = side & side >> 8;
    return ((up & up >> 2) | (down & down >> 12) | (level & level >> 14) | (rising & rising >> 16)) != 0;
}

static inline uint64_t connect4_completing_along(uint64_t side, int32_t step) {
    const uint64_t after = side << step & side << 2 * step, before = side >> step & side >> 2 * step;
    return (after & (side << 3 * step | side >> step)) | (before & (side >> 3 * step | side << step));
}

/* Returns the cells that complete a line of four with three discs of `side`. Vertical lines are completed
 * only from above, as discs fall. Cells that hold a disc, or have one above them, are meaningless. */
static inline uint64_t connect4_completing(uint64_t side) {
    uint64_t cells = side << 1 & side << 2 & side << 3;
    for (int32_t step = 6; step <= 8; step++) cells |= connect4_completing_along(side, step);
    return cells & CONNECT4_BOARD;
}

/* ---- The opponent --------------------------------------------------------------------------------- */

/* Returns the cells of `playable` after which the other side, which completes a line in the cells `theirs`,
 * cannot do so with its next move. */
static inline uint64_t connect4_safe(uint64_t playable, uint64_t theirs) {
    const uint64_t blocks = playable & theirs;
    if (blocks != 0) playable = (blocks & (blocks - 1)) == 0 ? blocks : 0;
    return playable & ~(theirs >> 1);
}

/* Value of a position for the side `own`, which is to move, cannot win immediately, and looks depth >= 2
 * moves ahead. The value is 0 if no line is completed within these moves. Otherwise it is the number of moves
 * left when the winner drops its last disc, including that one, and negative if the other side wins. A value
 * outside of `alpha` to `beta` is only a bound (alpha-beta search). The last two moves need no search. */
static int32_t connect4_value(uint64_t own, uint64_t other, int32_t depth, int32_t alpha, int32_t beta) {
    static const int32_t from_the_middle[CONNECT4_COLUMNS] = {3, 2, 4, 1, 5, 0, 6};
    const uint64_t playable = connect4_playable(own | other);
    const uint64_t moves = connect4_safe(playable, connect4_completing(other));
    if (moves == 0) return playable == 0 ? 0 : 1 - depth;
    if (depth == 2) return 0;
    if (beta > depth - 2) beta = depth - 2; /* the best possible value: a win with the next own move */
    for (int32_t i = 0; i < CONNECT4_COLUMNS && alpha < beta; i++) {
        const uint64_t move = moves & connect4_column(from_the_middle[i]);
        if (move == 0) continue;
        const int32_t value = -connect4_value(other, own | move, depth - 1, -beta, -alpha);
        if (value > alpha) alpha = value;
    }
    return alpha;
}

/* Returns the best moves for the side `own`, which is to move. The board must not be full. */
static inline uint64_t connect4_best_moves(uint64_t own, uint64_t other, int32_t depth) {
    const uint64_t playable = connect4_playable(own | other);
    if (depth == 0) return playable;
    const uint64_t wins = playable & connect4_completing(own);
    if (wins != 0) return wins;
    if (depth == 1) return playable;
    const uint64_t theirs = connect4_completing(other), moves = connect4_safe(playable, theirs);
    if (moves == 0) return playable & theirs ? playable & theirs : playable;
    if (depth == 2 || (moves & (moves - 1)) == 0) return moves;

    uint64_t best_moves = 0;
    int32_t best = -depth;
    for (uint64_t rest = moves; rest != 0; rest &= rest - 1) {
        const uint64_t move = rest & -rest;
        /* Values worse than the best are only bounds. Equally good values are exact. */
        const int32_t value = -connect4_value(other, own | move, depth - 1, -depth, 1 - best);
        if (value > best) best_moves = 0;
        if (value >= best) best_moves |= move, best = value;
    }
    return best_moves;
}

static inline uint64_t connect4_pick(PufferRng *rng, uint64_t moves) {
    int32_t count = 0;
    for (uint64_t rest = moves; rest != 0; rest &= rest - 1) count++;
    for (int32_t skip = puffer_random_below(rng, count); skip > 0; skip--) moves &= moves - 1;
    return moves & -moves;
}

/* ---- The game ----------------------------------------------------------------------------------- */

static inline void connect4_observe_move(float *observation, uint64_t move, float disc) {
    const int32_t bit = __builtin_ctzll(move), column = bit / 7, row = bit % 7;
    observation[CONNECT4_ROWS * column + row] = disc;
    if (row == CONNECT4_ROWS - 1) observation[CONNECT4_CELLS + column] = 0;
}

/* Writes the mask of one of two agents: the legal columns if it `acts`, otherwise column 0. */
static inline void connect4_observe_turn(const Connect4 *env, float *observation, bool acts) {
    const uint64_t playable = connect4_playable(env->own | env->other);
    for (int32_t column = 0; column < CONNECT4_COLUMNS; column++) {
        const bool legal = acts ? (playable & connect4_column(column)) != 0 : column == 0;
        observation[CONNECT4_CELLS + column] = legal;
    }
}

static inline void connect4_reset(Connect4 *env) {
    float *observation = env->game.observations;
    env->own = env->other = env->own_last = env->other_last = 0;
    memset(observation, 0, CONNECT4_CELLS * sizeof(float));
    for (int32_t i = CONNECT4_CELLS; i < CONNECT4_OBSERVED; i++) observation[i] = 1;
    if (env->players == 1) return;
    memset(observation + CONNECT4_OBSERVED, 0, CONNECT4_CELLS * sizeof(float));
    connect4_observe_turn(env, observation + CONNECT4_OBSERVED, false);
}

static inline PufferOutcome connect4_end(Connect4 *env, int32_t result, bool illegal) {
    env->game.rewards[0] = env->score = (float)result;
    env->perf = result > 0;
    env->drawn = result == 0;
    env->illegal = illegal;
    return PUFFER_TERMINATED;
}

/* `result` is the result of the first agent. */
static inline PufferOutcome connect4_end_of_two(Connect4 *env, int32_t result, bool illegal) {
    env->game.rewards[1] = (float)-result;
    return connect4_end(env, result, illegal);
}

/* Returns the cell that a disc falls into, or 0 if the column is full or does not exist. */
static inline uint64_t connect4_cell(const Connect4 *env, int32_t action) {
    const uint64_t column = action >= 0 && action < CONNECT4_COLUMNS ? connect4_column(action) : 0;
    return connect4_playable(env->own | env->other) & column;
}

/* A step with two agents. The one with fewer discs is to move, or the first if both have equally many. */
static inline PufferOutcome connect4_step_of_two(Connect4 *env) {
    const uint64_t discs = env->own | env->other;
    const int32_t mover = __builtin_popcountll(discs) & 1, won = mover == 0 ? 1 : -1;
    float *observation = env->game.observations;
    const uint64_t move = connect4_cell(env, ((const int32_t *)env->game.actions)[mover]);
    uint64_t *side = mover == 0 ? &env->own : &env->other;
    *(mover == 0 ? &env->own_last : &env->other_last) = move;
    if (move == 0) return connect4_end_of_two(env, -won, true);
    *side |= move;
    connect4_observe_move(observation + CONNECT4_OBSERVED * mover, move, 1);
    connect4_observe_move(observation + CONNECT4_OBSERVED * (1 - mover), move, -1);
    for (int32_t agent = 0; agent < 2; agent++) {
        connect4_observe_turn(env, observation + CONNECT4_OBSERVED * agent, agent != mover);
    }
    if (connect4_has_line(*side)) return connect4_end_of_two(env, won, false);
    if ((discs | move) == CONNECT4_BOARD) return connect4_end_of_two(env, 0, false);
    return PUFFER_RUNNING;
}

static inline PufferOutcome connect4_step(Connect4 *env) {
    if (env->players == 2) return connect4_step_of_two(env);
    env->own_last = connect4_cell(env, *(const int32_t *)env->game.actions);
    if (env->own_last == 0) return connect4_end(env, -1, true);
    env->own |= env->own_last;
    connect4_observe_move(env->game.observations, env->own_last, 1);
    if (connect4_has_line(env->own)) return connect4_end(env, 1, false);

    /* The agent moved first, so there is an empty cell. */
    env->other_last = connect4_pick(&env->game.rng, connect4_best_moves(env->other, env->own, env->depth));
    env->other |= env->other_last;
    connect4_observe_move(env->game.observations, env->other_last, -1);
    if (connect4_has_line(env->other)) return connect4_end(env, -1, false);
    if ((env->own | env->other) == CONNECT4_BOARD) return connect4_end(env, 0, false);
    return PUFFER_RUNNING;
}

#endif
