/* Positions of Go with known outcomes: captures, ko, suicide, area, and what the scripted player chooses.
 * Prints what differs and fails. Built with the sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "go/go.h"

enum { MAX_MOVES = 4, TRIES = 400 };

static int faults;

static void check(bool good, const char *name, const char *what) {
    if (good) return;
    printf("%s: %s\n", name, what);
    faults++;
}

/* ---- Diagrams: rows from the top, X black, O white, . empty ------------------------------------------ */

static int32_t size_of(const char *diagram) {
    int32_t size = GO_MIN_SIZE;
    while (size * size < (int32_t)strlen(diagram)) size++;
    return size;
}

static Go *set_up(const char *diagram) {
    const Go sized = {.grid_size = size_of(diagram)};
    const size_t row = (size_t)(3 * sized.grid_size * sized.grid_size + 5);
    Go *env = calloc(1, go_bytes(&sized));
    env->grid_size = sized.grid_size;
    env->opponent = GO_GREEDY;
    env->moves_per_point = 3;
    env->komi = 7.5f;
    env->game.observations = calloc(row, sizeof(float));
    env->game.rewards = calloc(1, sizeof(float));
    go_reset(env);
    const GoBoard board = go_board_of(env, env->words);
    for (int32_t i = 0; diagram[i] != '\0'; i++) {
        const int32_t point = i / board.size * board.stride + i % board.size;
        if (diagram[i] != '.') go_place(&board, diagram[i] == 'X' ? GO_BLACK : GO_WHITE, point);
    }
    return env;
}

static void tear_down(Go *env) {
    free(env->game.observations);
    free(env->game.rewards);
    free(env);
}

static bool shows(const Go *env, const char *diagram) {
    const GoBoard board = go_board_of(env, env->words);
    bool same = true;
    for (int32_t i = 0; diagram[i] != '\0'; i++) {
        const int32_t point = i / board.size * board.stride + i % board.size;
        const char found = "XO."[board.colours[point]];
        same &= found == diagram[i];
        same &= go_has(board.stones[GO_BLACK], point) == (found == 'X');
        same &= go_has(board.stones[GO_WHITE], point) == (found == 'O');
        same &= go_has(board.empty, point) == (found == '.');
    }
    return same;
}

/* ---- Moves ------------------------------------------------------------------------------------------- */

enum { ILLEGAL = -1 };

typedef struct {
    char colour;
    int32_t row, column;
    int32_t captured; /* or ILLEGAL */
} Move;

static const struct {
    const char *name, *before;
    Move moves[MAX_MOVES];
    const char *after;
} games[] = {
    {"a stone in the corner is captured",
     "OX..."
     "....."
     "....."
     "....."
     ".....",
     {{'X', 1, 0, 1}},
     ".X..."
     "X...."
     "....."
     "....."
     "....."},
    {"a chain at the edge is captured whole",
     ".OOO."
     "XXXXX"
     "....."
     "....."
     ".....",
     {{'X', 0, 0, 0}, {'X', 0, 4, 3}},
     "X...X"
     "XXXXX"
     "....."
     "....."
     "....."},
    {"a chain that turns a corner is captured whole",
     "..X.."
     ".XOX."
     ".XOOX"
     ".XXO."
     "...X.",
     {{'X', 3, 4, 4}},
     "..X.."
     ".X.X."
     ".X..X"
     ".XX.X"
     "...X."},
    {"one move captures four chains",
     "..X.."
     ".XOX."
     "XO.OX"
     ".XOX."
     "..X..",
     {{'X', 2, 2, 4}},
     "..X.."
     ".X.X."
     "X.X.X"
     ".X.X."
     "..X.."},
    {"a move into an eye is suicide",
     ".O..."
     "O...."
     "....."
     "....."
     ".....",
     {{'X', 0, 0, ILLEGAL}, {'O', 0, 0, 0}},
     "OO..."
     "O...."
     "....."
     "....."
     "....."},
    {"a move that takes the last liberty of its own chain is suicide",
     ".XXO."
     "OOO.."
     "....."
     "....."
     ".....",
     {{'X', 0, 0, ILLEGAL}},
     ".XXO."
     "OOO.."
     "....."
     "....."
     "....."},
    {"a move without liberties is legal where it captures",
     ".OX.."
     "OX..."
     "X...."
     "....."
     ".....",
     {{'X', 0, 0, 2}},
     "X.X.."
     ".X..."
     "X...."
     "....."
     "....."},
    {"an occupied point is no move",
     "X...."
     ".O..."
     "....."
     "....."
     ".....",
     {{'X', 0, 0, ILLEGAL}, {'X', 1, 1, ILLEGAL}, {'O', 0, 0, ILLEGAL}},
     "X...."
     ".O..."
     "....."
     "....."
     "....."},
    {"ko: the stone that captured may be taken back after a move elsewhere, not at once",
     ".XO.."
     "XO.O."
     ".XO.."
     "....."
     ".....",
     {{'X', 1, 2, 1}, {'O', 1, 1, ILLEGAL}, {'X', 4, 4, 0}, {'O', 1, 1, 1}},
     ".XO.."
     "XO.O."
     ".XO.."
     "....."
     "....X"},
    {"snapback: the chain that captured one stone is captured at once",
     "X..OX"
     "XOOOX"
     "XXXXX"
     "....."
     ".....",
     {{'X', 0, 2, 0}, {'O', 0, 1, 1}, {'X', 0, 2, 5}},
     "X.X.X"
     "X...X"
     "XXXXX"
     "....."
     "....."},
    {"a stone that captured two may be taken back at once",
     ".OOX."
     "OXX.."
     "....."
     "....."
     ".....",
     {{'X', 0, 0, 2}, {'O', 0, 1, 1}},
     ".O.X."
     "OXX.."
     "....."
     "....."
     "....."},
    {"chains are joined, and live by each other's liberties",
     "OX.XO"
     "OX.XO"
     "OOOOO"
     "....."
     ".....",
     {{'X', 1, 2, 0}, {'O', 0, 2, 5}},
     "O.O.O"
     "O...O"
     "OOOOO"
     "....."
     "....."},
};

static void play(const Go *env, const char *name, Move move, int32_t *ko) {
    const GoBoard board = go_board_of(env, env->words);
    const int32_t colour = move.colour == 'X' ? GO_BLACK : GO_WHITE;
    const int32_t point = move.row * board.stride + move.column;
    GoLiberties liberties;
    uint64_t legal[GO_MAX_WORDS];
    go_count_liberties(&board, &liberties);
    go_legal(&board, &liberties, colour, *ko, legal);
    check(go_has(legal, point) == (move.captured != ILLEGAL), name, "legal or not");
    if (!go_has(legal, point)) return;
    const int32_t captured = go_place(&board, colour, point);
    check(captured == move.captured, name, "stones captured");
    *ko = go_ko(&board, point, captured);
}

static void check_games(void) {
    for (size_t i = 0; i < sizeof games / sizeof *games; i++) {
        Go *env = set_up(games[i].before);
        int32_t ko = GO_NOWHERE;
        check(shows(env, games[i].before), games[i].name, "the board before");
        for (int32_t k = 0; k < MAX_MOVES && games[i].moves[k].colour != 0; k++) {
            play(env, games[i].name, games[i].moves[k], &ko);
        }
        check(shows(env, games[i].after), games[i].name, "the board after");
        tear_down(env);
    }
}

/* ---- Area -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *board;
    int32_t black, white;
} areas[] = {
    {"nobody owns an empty board",
     "....."
     "....."
     "....."
     "....."
     ".....",
     0, 0},
    {"one stone owns the board",
     "....."
     "....."
     "..X.."
     "....."
     ".....",
     25, 0},
    {"a wall divides the board, points between the colours are nobody's",
     "..X.O"
     "..X.O"
     "..X.O"
     "..X.O"
     "..X.O",
     15, 5},
    {"eyes count, stones that could be captured stay",
     ".XO.O"
     "XXOOO"
     "XXXXO"
     ".OX.X"
     "XXXXX",
     16, 8},
    {"a region that touches both colours is nobody's, however large",
     "X......"
     "......."
     "......."
     "......."
     "......."
     "......."
     "......O",
     1, 1},
    {"9 x 9 needs more than a word",
     "....XO..."
     "....XO..."
     "....XO..."
     "....XO..."
     "....XOOOO"
     "....XXXXX"
     "........."
     ".O......."
     "O.O......",
     10, 24},
};

static void check_areas(void) {
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        Go *env = set_up(areas[i].board);
        const GoBoard board = go_board_of(env, env->words);
        uint64_t area[2][GO_MAX_WORDS];
        go_area(&board, area);
        check(go_count(area[GO_BLACK], board.words) == areas[i].black, areas[i].name, "area of black");
        check(go_count(area[GO_WHITE], board.words) == areas[i].white, areas[i].name, "area of white");
        check(go_lead(env, &board) == (float)(areas[i].black - areas[i].white) - 7.5f, areas[i].name, "lead");
        tear_down(env);
    }
}

/* ---- The scripted player: * marks all points that it may choose; none: it passes ------------------------
 */

static const struct {
    const char *name;
    int32_t opponent;
    const char *before, *choices;
} replies[] = {
    {"it captures before anything else", GO_GREEDY,
     "XO..."
     "....."
     "....."
     "....."
     "OX...",
     "....."
     "*...."
     "....."
     "....."
     "....."},
    {"it saves a chain in atari when it can capture nothing", GO_GREEDY,
     "OX..."
     "....."
     "...X."
     "....."
     ".....",
     "....."
     "*...."
     "....."
     "....."
     "....."},
    {"it takes the liberties of a chain with two", GO_GREEDY,
     "X...."
     "....."
     "...X."
     "....."
     ".....",
     ".*..."
     "*...."
     "....."
     "....."
     "....."},
    {"else of a chain with three", GO_GREEDY,
     "..X.."
     "....."
     "....."
     "..X.."
     ".....",
     ".*.*."
     "..*.."
     "....."
     "....."
     "....."},
    {"else of a chain with four", GO_GREEDY,
     "....."
     "....."
     "..X.."
     "....."
     ".....",
     "....."
     "..*.."
     ".*.*."
     "..*.."
     "....."},
    {"the easy one captures", GO_EASY,
     "XO..."
     "....."
     "....."
     "....."
     ".....",
     "....."
     "*...."
     "....."
     "....."
     "....."},
    {"the easy one attacks nothing", GO_EASY,
     "X...."
     "....."
     "....."
     "....."
     ".....",
     ".****"
     "*****"
     "*****"
     "*****"
     "*****"},
    {"the random one plays anywhere", GO_RANDOM,
     "XO..."
     "....."
     "....."
     "....."
     ".....",
     "..***"
     "*****"
     "*****"
     "*****"
     "*****"},
    {"it fills no eye and commits no suicide", GO_GREEDY,
     ".OOO."
     "OOOOO"
     "OOOXX"
     "OOX.X"
     "OOXX.",
     "....."
     "....."
     "....."
     "....."
     "....."},
};

static void check_replies(void) {
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        Go *env = set_up(replies[i].before);
        const GoBoard board = go_board_of(env, env->words);
        bool chosen[GO_MAX_SIZE * GO_MAX_SIZE] = {0}, passed = false;
        GoLiberties liberties;
        env->opponent = replies[i].opponent;
        go_count_liberties(&board, &liberties);
        for (int32_t k = 0; k < TRIES; k++) {
            const int32_t point = go_choose_reply(env, &board, &liberties);
            passed |= point == GO_NOWHERE;
            if (point != GO_NOWHERE) chosen[point / board.stride * board.size + point % board.stride] = true;
        }
        for (int32_t k = 0; k < board.size * board.size; k++) {
            check(chosen[k] == (replies[i].choices[k] == '*'), replies[i].name, "its choices");
        }
        check(passed == (strchr(replies[i].choices, '*') == NULL), replies[i].name, "its pass");
        tear_down(env);
    }
}

int main(void) {
    check_games();
    check_areas();
    check_replies();
    return faults > 0;
}
