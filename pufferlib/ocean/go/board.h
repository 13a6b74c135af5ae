/* A Go board of 5 x 5 to 19 x 19: stones, chains, liberties, captures, legal moves, area.
 *
 * Point (row, column) has the index row * (size + 1) + column. The extra column contains no points and
 * separates the rows. A set of points has a bit for each index, in `words` words: one for boards up to 7 x 7,
 * six for 19 x 19. Every function takes the number of words from the board and is inlined, so that a caller
 * with a constant number gets specialized code.
 *
 * Connected stones of one colour form a chain. A chain has the index of one of its stones, its head, and
 * stores the set of its liberties. A move changes only the chains that it touches. */
#ifndef GO_BOARD_H
#define GO_BOARD_H

#include "puffer_env.h"

enum { GO_MIN_SIZE = 5, GO_MAX_SIZE = 19, GO_MAX_WORDS = 6, GO_NOWHERE = -1 };
enum { GO_MARGIN = 32, GO_CLASSES = 5, GO_MANY = GO_CLASSES - 1 };
enum { GO_BLACK, GO_WHITE, GO_EMPTY, GO_EDGE };

/* Pointers to the parts of a board in its owner's memory. */
typedef struct {
    int32_t size, stride, words;
    uint64_t *stones[2], *heads[2], *empty; /* sets, for each colour and for empty points */
    uint64_t *liberties;                    /* a set for each chain */
    uint16_t *chain, *next; /* for each stone: its chain, and the chain's next stone, in a circle */
    uint16_t *num_stones, *num_liberties; /* for each chain */
    uint8_t *colours;                     /* for each index, and GO_EDGE around the board */
} GoBoard;

/* ---- Sets --------------------------------------------------------------------------------------- */

static inline int32_t go_words(int32_t size) {
    return (size * (size + 1) + 63) / 64;
}

static inline bool go_has(const uint64_t *set, int32_t point) {
    return set[point >> 6] >> (point & 63) & 1;
}

static inline void go_add(uint64_t *set, int32_t point) {
    set[point >> 6] |= (uint64_t)1 << (point & 63);
}

static inline void go_remove(uint64_t *set, int32_t point) {
    set[point >> 6] &= ~((uint64_t)1 << (point & 63));
}

PUFFER_INLINE int32_t go_count(const uint64_t *set, const int32_t words) {
    int32_t count = 0;
    for (int32_t w = 0; w < words; w++) count += __builtin_popcountll(set[w]);
    return count;
}

/* Word `w` of the set of all neighbours of points in `set`, including indices that are not points. */
PUFFER_INLINE uint64_t go_neighbours(const uint64_t *set, const int32_t words, int32_t stride, int32_t w) {
    const uint64_t here = set[w], below = w > 0 ? set[w - 1] : 0, above = w + 1 < words ? set[w + 1] : 0;
    return here << 1 | below >> 63 | here >> 1 | above << 63 | here << stride | below >> (64 - stride) |
           here >> stride | above << (64 - stride);
}

/* ---- The board ---------------------------------------------------------------------------------- */

/* Memory of a board in 64-bit words. */
static inline size_t go_board_words(int32_t words) {
    const size_t sets = (size_t)words, indices = 64 * sets;
    return 5 * sets + indices * sets + 4 * indices / 4 + indices / 8 + 2 * GO_MARGIN / 8;
}

PUFFER_INLINE GoBoard go_board(uint64_t *memory, int32_t size, const int32_t words) {
    const size_t sets = (size_t)words, indices = 64 * sets;
    uint16_t *chains = (uint16_t *)(memory + 5 * sets + indices * sets);
    return (GoBoard){
        .size = size,
        .stride = size + 1,
        .words = words,
        .stones = {memory, memory + sets},
        .heads = {memory + 2 * sets, memory + 3 * sets},
        .empty = memory + 4 * sets,
        .liberties = memory + 5 * sets,
        .chain = chains,
        .next = chains + indices,
        .num_stones = chains + 2 * indices,
        .num_liberties = chains + 3 * indices,
        .colours = (uint8_t *)(chains + 4 * indices) + GO_MARGIN,
    };
}

static inline void go_clear(const GoBoard *board) {
    const size_t indices = 64 * (size_t)board->words;
    memset(board->stones[0], 0, 5 * (size_t)board->words * sizeof(uint64_t));
    memset(board->colours - GO_MARGIN, GO_EDGE, indices + 2 * GO_MARGIN);
    for (int32_t row = 0; row < board->size; row++) {
        for (int32_t column = 0; column < board->size; column++) {
            const int32_t point = row * board->stride + column;
            go_add(board->empty, point);
            board->colours[point] = GO_EMPTY;
        }
    }
}

PUFFER_INLINE void go_gain_liberty(const GoBoard *board, int32_t chain, int32_t point) {
    uint64_t *liberties = board->liberties + chain * board->words;
    board->num_liberties[chain] += !go_has(liberties, point);
    go_add(liberties, point);
}

PUFFER_INLINE void go_lose_liberty(const GoBoard *board, int32_t chain, int32_t point) {
    uint64_t *liberties = board->liberties + chain * board->words;
    board->num_liberties[chain] -= go_has(liberties, point);
    go_remove(liberties, point);
}

/* Joins two chains. The smaller one becomes part of the larger one. */
PUFFER_INLINE void go_join(const GoBoard *board, int32_t colour, int32_t one, int32_t other) {
    if (one == other) return;
    const bool swap = board->num_stones[one] < board->num_stones[other];
    const int32_t large = swap ? other : one, small = swap ? one : other;
    int32_t stone = small;
    do {
        board->chain[stone] = (uint16_t)large;
        stone = board->next[stone];
    } while (stone != small);
    const uint16_t next = board->next[large];
    board->next[large] = board->next[small];
    board->next[small] = next;

    uint64_t *liberties = board->liberties + large * board->words;
    const uint64_t *more = board->liberties + small * board->words;
    for (int32_t w = 0; w < board->words; w++) liberties[w] |= more[w];
    board->num_liberties[large] = (uint16_t)go_count(liberties, board->words);
    board->num_stones[large] += board->num_stones[small];
    go_remove(board->heads[colour], small);
}

/* Removes a chain. Its points become liberties of the surrounding chains. Returns its number of stones. */
PUFFER_INLINE int32_t go_capture(const GoBoard *board, int32_t colour, int32_t chain) {
    const int32_t steps[4] = {-board->stride, -1, 1, board->stride};
    int32_t stone = chain;
    do {
        board->colours[stone] = GO_EMPTY;
        go_remove(board->stones[colour], stone);
        go_add(board->empty, stone);
        for (int32_t i = 0; i < 4; i++) {
            const int32_t near = stone + steps[i];
            if (board->colours[near] == !colour) go_gain_liberty(board, board->chain[near], stone);
        }
        stone = board->next[stone];
    } while (stone != chain);
    go_remove(board->heads[colour], chain);
    return board->num_stones[chain];
}

PUFFER_INLINE void go_new_chain(const GoBoard *board, int32_t colour, int32_t point) {
    go_remove(board->empty, point);
    go_add(board->stones[colour], point);
    go_add(board->heads[colour], point);
    board->colours[point] = (uint8_t)colour;
    board->chain[point] = board->next[point] = (uint16_t)point;
    board->num_stones[point] = 1;
    board->num_liberties[point] = 0;
    for (int32_t w = 0; w < board->words; w++) board->liberties[point * board->words + w] = 0;
}

/* Plays a legal move. Returns the number of captured stones. */
PUFFER_INLINE int32_t go_place(const GoBoard *board, int32_t colour, int32_t point) {
    const int32_t steps[4] = {-board->stride, -1, 1, board->stride};
    int32_t captured = 0;
    go_new_chain(board, colour, point);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t near = point + steps[i], found = board->colours[near];
        if (found == GO_EMPTY) {
            go_gain_liberty(board, board->chain[point], near);
        } else if (found != GO_EDGE) {
            const int32_t chain = board->chain[near];
            go_lose_liberty(board, chain, point);
            if (found == colour) {
                go_join(board, colour, board->chain[point], chain);
            } else if (board->num_liberties[chain] == 0) {
                captured += go_capture(board, found, chain);
            }
        }
    }
    return captured;
}

/* Returns the point where the other side may not play after a move at `point`, or GO_NOWHERE. Simple ko: a
 * single stone that captured one stone, and whose only liberty is where that stone was, may not be recaptured
 * immediately. This forbids exactly the moves that would repeat the position before the last move. */
PUFFER_INLINE int32_t go_ko(const GoBoard *board, int32_t point, int32_t captured) {
    const int32_t chain = board->chain[point];
    if (captured != 1 || board->num_stones[chain] != 1 || board->num_liberties[chain] != 1) return GO_NOWHERE;
    const uint64_t *liberties = board->liberties + chain * board->words;
    int32_t w = 0;
    while (liberties[w] == 0) w++;
    return 64 * w + __builtin_ctzll(liberties[w]);
}

/* ---- Analysis of the board --------------------------------------------------------------------- */

/* Liberties of each side's chains by the chain's number of liberties: [0] of chains in atari, [1] of chains
 * with two, and so on, [GO_MANY] of chains with five or more. */
typedef struct {
    uint64_t by_count[2][GO_CLASSES][GO_MAX_WORDS];
} GoLiberties;

PUFFER_INLINE void go_count_liberties(const GoBoard *board, GoLiberties *liberties) {
    for (int32_t colour = 0; colour < 2; colour++) {
        for (int32_t class = 0; class < GO_CLASSES; class ++) {
            for (int32_t w = 0; w < board->words; w++) liberties->by_count[colour][class][w] = 0;
        }
        for (int32_t i = 0; i < board->words; i++) {
            for (uint64_t rest = board->heads[colour][i]; rest != 0; rest &= rest - 1) {
                const int32_t chain = 64 * i + __builtin_ctzll(rest);
                const int32_t class = board->num_liberties[chain] - 1;
                uint64_t *set = liberties->by_count[colour][class < GO_MANY ? class : GO_MANY];
                for (int32_t w = 0; w < board->words; w++) {
                    set[w] |= board->liberties[chain * board->words + w];
                }
            }
        }
    }
}

/* Legal moves of `colour`: next to an empty point, next to an own chain that keeps a liberty, or with a
 * capture, but not at `ko`. Suicide is illegal. */
PUFFER_INLINE void go_legal(const GoBoard *board, const GoLiberties *liberties, int32_t colour, int32_t ko,
                            uint64_t *legal) {
    for (int32_t w = 0; w < board->words; w++) {
        uint64_t good = go_neighbours(board->empty, board->words, board->stride, w);
        for (int32_t class = 1; class < GO_CLASSES; class ++) good |= liberties->by_count[colour][class][w];
        legal[w] = (good | liberties->by_count[!colour][0][w]) & board->empty[w];
    }
    if (ko != GO_NOWHERE) go_remove(legal, ko);
}

/* Empty points that are surrounded by stones of `colour` only. */
PUFFER_INLINE void go_eyes(const GoBoard *board, int32_t colour, uint64_t *eyes) {
    for (int32_t w = 0; w < board->words; w++) {
        eyes[w] = board->empty[w] & ~go_neighbours(board->empty, board->words, board->stride, w) &
                  ~go_neighbours(board->stones[!colour], board->words, board->stride, w);
    }
}

/* Extends `reached` over empty points as far as possible. */
PUFFER_INLINE void go_flood(const GoBoard *board, uint64_t *reached) {
    bool grown = true;
    while (grown) {
        grown = false;
        for (int32_t w = 0; w < board->words; w++) {
            const uint64_t near = go_neighbours(reached, board->words, board->stride, w) & board->empty[w];
            grown |= (near & ~reached[w]) != 0;
            reached[w] |= near;
        }
    }
}

/* Area of each side by Tromp and Taylor: its stones, and the empty points from which paths over empty points
 * lead only to its stones. */
PUFFER_INLINE void go_area(const GoBoard *board, uint64_t area[2][GO_MAX_WORDS]) {
    for (int32_t colour = 0; colour < 2; colour++) {
        for (int32_t w = 0; w < board->words; w++) area[colour][w] = board->stones[colour][w];
        go_flood(board, area[colour]);
    }
    for (int32_t w = 0; w < board->words; w++) {
        const uint64_t both = area[0][w] & area[1][w];
        area[0][w] &= ~both;
        area[1][w] &= ~both;
    }
}

#endif
