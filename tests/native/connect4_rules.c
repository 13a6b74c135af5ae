/* All lines of connect4, and positions with known outcomes. Stops with a sentence at the first that is wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "connect4/connect4.h"

enum { LINES = 69, SEEDS = 200 };

static uint64_t lines[LINES];

static void fail(const char *what) {
    fprintf(stderr, "connect4: %s\n", what);
    exit(1);
}

static uint64_t cell(int column, int row) {
    return (uint64_t)1 << (7 * column + row);
}

static void check_number_of_lines(void) {
    static const int across[4] = {0, 1, 1, 1}, up[4] = {1, -1, 0, 1};
    int count = 0;
    for (int place = 0; place < CONNECT4_CELLS * 4; place++) {
        const int direction = place % 4, column = place / 4 / CONNECT4_ROWS, row = place / 4 % CONNECT4_ROWS;
        const int last_column = column + 3 * across[direction], last_row = row + 3 * up[direction];
        if (last_column >= CONNECT4_COLUMNS || last_row < 0 || last_row >= CONNECT4_ROWS) continue;
        for (int i = 0; i < 4; i++)
            lines[count] |= cell(column + i * across[direction], row + i * up[direction]);
        count++;
    }
    if (count != LINES) fail("there are not 69 lines");
}

/* The cells that have no disc in them or above them. */
static uint64_t open_cells(uint64_t discs) {
    for (int i = 0; i < CONNECT4_ROWS; i++) discs |= discs >> 1 & CONNECT4_BOARD;
    return CONNECT4_BOARD & ~discs;
}

/* Compare with the list of lines what the game makes of these discs. */
static void check_discs(uint64_t discs) {
    const uint64_t open = open_cells(discs);
    uint64_t completing = 0;
    bool has_line = false;
    for (int i = 0; i < LINES; i++) {
        const uint64_t missing = lines[i] & ~discs;
        has_line |= missing == 0;
        for (uint64_t one = lines[i]; one != 0; one &= one - 1) {
            if ((missing & ~(one & -one)) == 0) completing |= one & -one;
        }
    }
    if (connect4_has_line(discs) != has_line) fail("a line is not seen, or one is seen where there is none");
    if ((connect4_completing(discs) & open) != (completing & open))
        fail("the cells that complete lines are others");
}

/* Every choice of `count` cells from the `from`-th on, added to `discs`. */
static void check_choices(uint64_t discs, int from, int count) {
    if (count == 0) {
        check_discs(discs);
        return;
    }
    for (int i = from; i < CONNECT4_CELLS; i++) {
        check_choices(discs | cell(i / CONNECT4_ROWS, i % CONNECT4_ROWS), i + 1, count - 1);
    }
}

static void check_crowds(void) {
    PufferRng rng;
    puffer_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        const uint64_t words[2] = {puffer_random(&rng), puffer_random(&rng)};
        check_discs((words[0] << 32 | words[1]) & CONNECT4_BOARD);
    }
}

typedef struct {
    const char *what, *rows[CONNECT4_ROWS]; /* from the top; x of the agent, o of the opponent */
    int32_t depth, action;
    const char *answers; /* columns among which the opponent chooses; NULL if it has no turn */
    PufferOutcome outcome;
    float reward;
} Case;

/* clang-format off */
static const Case cases[] = {
    {"four upright win",
     {".......", ".......", ".......", "..x....", "..x.o..", "..x.o.o"}, 4, 2, NULL, PUFFER_TERMINATED, 1},
    {"four level win, the third last",
     {".......", ".......", ".......", ".......", "o..oo..", "xx.xo.."}, 4, 2, NULL, PUFFER_TERMINATED, 1},
    {"four rising win",
     {".......", ".......", ".......", "..xo...", ".xoo...", "xoxo..."}, 4, 3, NULL, PUFFER_TERMINATED, 1},
    {"the top cell of a column wins",
     {".......", "...x...", "...x...", "...x...", "...o..o", "...o..o"}, 4, 3, NULL, PUFFER_TERMINATED, 1},
    {"a full column loses",
     {"...o...", "...x...", "...o...", "...x...", "...o...", "...x..."}, 4, 3, NULL, PUFFER_TERMINATED, -1},
    {"no column loses",
     {".......", ".......", ".......", ".......", ".......", "......."}, 4, 7, NULL, PUFFER_TERMINATED, -1},
    {"a negative column loses",
     {".......", ".......", ".......", ".......", ".......", "......."}, 4, -1, NULL, PUFFER_TERMINATED, -1},
    {"a full board is a draw",
     {"xxo.xo.", "oxxxoox", "oooxxoo", "oxxooxx", "xoxxxoo", "ooxxxoo"}, 4, 3, "6", PUFFER_TERMINATED, 0},
    {"the last disc may win",
     {"xxo.xx.", "oxoooxo", "oxooxoo", "xoxoxoo", "xoxxxox", "oxxooxx"}, 4, 3, "6", PUFFER_TERMINATED, -1},
    {"any first answer is as good as another",
     {".......", ".......", ".......", ".......", ".......", "......."}, 4, 3, "0123456", PUFFER_RUNNING, 0},
    {"at depth 0 it plays any column that is not full",
     {"...o...", "...x...", "...o...", "...x...", "...o...", "...x..."}, 0, 0, "012456", PUFFER_RUNNING, 0},
    {"from depth 1 on a win is taken",
     {".......", ".......", ".......", "o......", "o......", "oxx...."}, 1, 6, "0", PUFFER_TERMINATED, -1},
    {"a win comes before a block",
     {".......", ".......", ".......", "o......", "o......", "oxx...."}, 4, 3, "0", PUFFER_TERMINATED, -1},
    {"at depth 1 a block is missed",
     {".......", ".......", ".......", ".......", "o......", "oxx...."}, 1, 3, "0123456", PUFFER_RUNNING, 0},
    {"from depth 2 on it blocks",
     {".......", ".......", ".......", ".......", "o......", "oxx...."}, 2, 3, "4", PUFFER_RUNNING, 0},
    {"it blocks in the middle of a line",
     {".......", ".......", ".......", ".......", "o......", "oxx...."}, 4, 4, "3", PUFFER_RUNNING, 0},
    {"of two cells it can block one, though all is lost",
     {".......", ".......", ".......", ".......", "..o....", "..xx..o"}, 4, 4, "15", PUFFER_RUNNING, 0},
    {"it does not lift the agent into a line",
     {".......", ".......", ".......", "..x....", ".xox..o", "xoxo..o"}, 2, 6, "012456", PUFFER_RUNNING, 0},
    {"at depth 3 it lets the agent have two threats",
     {".......", ".......", ".......", ".......", "...o...", "...x..."}, 3, 2, "0123456", PUFFER_RUNNING, 0},
    {"at depth 4 it keeps the agent from two threats",
     {".......", ".......", ".......", ".......", "...o...", "...x..."}, 4, 2, "14", PUFFER_RUNNING, 0},
    {"at depth 2 it does not see a fork of its own",
     {".......", ".......", ".......", ".......", "...x...", "..oo..."}, 2, 3, "0123456", PUFFER_RUNNING, 0},
    {"at depth 3 it plays a fork",
     {".......", ".......", ".......", ".......", "...x...", "..oo..."}, 3, 3, "14", PUFFER_RUNNING, 0},
};
/* clang-format on */

static void set_up(Connect4 *env, const Case *one) {
    env->depth = one->depth;
    connect4_reset(env);
    for (int i = 0; i < CONNECT4_CELLS; i++) {
        const int column = i / CONNECT4_ROWS, row = i % CONNECT4_ROWS;
        const char disc = one->rows[CONNECT4_ROWS - 1 - row][column];
        if (disc == 'x') env->own |= cell(column, row);
        if (disc == 'o') env->other |= cell(column, row);
    }
}

/* With every seed the outcome is the same; the opponent's answers over all seeds are those expected. */
static void check_case(const Case *one) {
    float observations[CONNECT4_OBSERVED], reward = 0;
    bool answered[CONNECT4_COLUMNS] = {false};
    Connect4 env = {.game = {.observations = observations, .actions = &one->action, .rewards = &reward},
                    .players = 1};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        puffer_seed(&env.game.rng, seed);
        reward = 0;
        set_up(&env, one);
        if (connect4_step(&env) != one->outcome || reward != one->reward) fail(one->what);
        if ((env.other_last != 0) != (one->answers != NULL)) fail(one->what);
        for (int column = 0; column < CONNECT4_COLUMNS; column++) {
            answered[column] |= (env.other_last & connect4_column(column)) != 0;
        }
    }
    for (int column = 0; column < CONNECT4_COLUMNS; column++) {
        const bool expected = one->answers != NULL && strchr(one->answers, '0' + column) != NULL;
        if (answered[column] != expected) fail(one->what);
    }
}

int main(void) {
    check_number_of_lines();
    for (int count = 0; count <= 4; count++) check_choices(0, 0, count);
    check_crowds();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
    return 0;
}
