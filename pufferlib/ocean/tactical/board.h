/* Tactical's board: sets of cells as bits, the maps, and visibility on them.
 *
 * A place is 16 y + x, so that a set of places is three words of four rows each. x 12 to 15 are a margin that
 * is in no set. A step to a neighbour is a shift, and the places within n steps are n shifts of a whole set.
 *
 * Maps are symmetric under a half turn. Each player can therefore be shown the board with its own side below,
 * and everything here works for both. The tables (40 maps, 0.2 MB) are filled once per process, always with
 * the same maps, and only read after that. */
#ifndef TACTICAL_BOARD_H
#define TACTICAL_BOARD_H

#include "puffer_env.h"

enum {
    TACTICAL_SIDE = 12,
    TACTICAL_CELLS = TACTICAL_SIDE * TACTICAL_SIDE,
    TACTICAL_ROW = 16, /* from a place to the one below it */
    TACTICAL_PLACES = TACTICAL_ROW * TACTICAL_SIDE,
    TACTICAL_WORDS = TACTICAL_PLACES / 64,
    TACTICAL_HOME = 9, /* first of the rows in which a player starts */
};

typedef struct {
    uint64_t words[TACTICAL_WORDS];
} TacticalBoard;

static inline int32_t tactical_place(int32_t x, int32_t y) {
    return TACTICAL_ROW * y + x;
}

static inline int32_t tactical_x(int32_t place) {
    return place & (TACTICAL_ROW - 1);
}

static inline int32_t tactical_y(int32_t place) {
    return place >> 4;
}

/* Cells are numbered by rows, without the margin, as in observations and actions. */
static inline int32_t tactical_place_of_cell(int32_t cell) {
    return cell + cell / TACTICAL_SIDE * (TACTICAL_ROW - TACTICAL_SIDE);
}

static inline int32_t tactical_cell(int32_t place) {
    return TACTICAL_SIDE * tactical_y(place) + tactical_x(place);
}

/* The place as the other player sees it. */
static inline int32_t tactical_turned(int32_t place) {
    return tactical_place(TACTICAL_SIDE - 1, TACTICAL_SIDE - 1) - place;
}

static inline int32_t tactical_distance(int32_t a, int32_t b) {
    const int32_t dx = tactical_x(a) - tactical_x(b), dy = tactical_y(a) - tactical_y(b);
    return (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
}

static inline bool tactical_in_line(int32_t a, int32_t b) {
    return tactical_x(a) == tactical_x(b) || tactical_y(a) == tactical_y(b);
}

/* ---- Sets of places ----------------------------------------------------------------------------- */

static inline bool tactical_has(const TacticalBoard *board, int32_t place) {
    return board->words[place >> 6] >> (place & 63) & 1;
}

static inline void tactical_add(TacticalBoard *board, int32_t place) {
    board->words[place >> 6] |= (uint64_t)1 << (place & 63);
}

static inline void tactical_remove(TacticalBoard *board, int32_t place) {
    board->words[place >> 6] &= ~((uint64_t)1 << (place & 63));
}

static inline TacticalBoard tactical_singleton(int32_t place) {
    TacticalBoard board = {{0}};
    tactical_add(&board, place);
    return board;
}

static inline TacticalBoard tactical_intersection(TacticalBoard a, const TacticalBoard *b) {
    for (int32_t i = 0; i < TACTICAL_WORDS; i++) a.words[i] &= b->words[i];
    return a;
}

static inline TacticalBoard tactical_difference(TacticalBoard a, const TacticalBoard *b) {
    for (int32_t i = 0; i < TACTICAL_WORDS; i++) a.words[i] &= ~b->words[i];
    return a;
}

static inline bool tactical_same(const TacticalBoard *a, const TacticalBoard *b) {
    uint64_t differ = 0;
    for (int32_t i = 0; i < TACTICAL_WORDS; i++) differ |= a->words[i] ^ b->words[i];
    return differ == 0;
}

static inline bool tactical_any(const TacticalBoard *board) {
    return (board->words[0] | board->words[1] | board->words[2]) != 0;
}

static inline int32_t tactical_count(const TacticalBoard *board) {
    int32_t count = 0;
    for (int32_t i = 0; i < TACTICAL_WORDS; i++) count += __builtin_popcountll(board->words[i]);
    return count;
}

/* The place that has `before` others of the set before it. There must be one. */
static inline int32_t tactical_nth(const TacticalBoard *board, int32_t before) {
    int32_t word = 0;
    while (before >= __builtin_popcountll(board->words[word])) {
        before -= __builtin_popcountll(board->words[word++]);
    }
    uint64_t bits = board->words[word];
    for (; before > 0; before--) bits &= bits - 1;
    return 64 * word + __builtin_ctzll(bits);
}

/* The set and the neighbours of its places that are in `free`, which must have no margin. */
static inline TacticalBoard tactical_grown(const TacticalBoard *board, const TacticalBoard *free) {
    const uint64_t a = board->words[0], b = board->words[1], c = board->words[2];
    return (TacticalBoard){{
        a | ((a << 1 | a >> 1 | a << 16 | a >> 16 | b << 48) & free->words[0]),
        b | ((b << 1 | b >> 1 | b << 16 | b >> 16 | a >> 48 | c << 48) & free->words[1]),
        c | ((c << 1 | c >> 1 | c << 16 | c >> 16 | b >> 48) & free->words[2]),
    }};
}

/* Places that can be reached from `board` through `free` in this number of steps. */
static inline TacticalBoard tactical_flooded(TacticalBoard board, const TacticalBoard *free, int32_t steps) {
    for (; steps > 0; steps--) {
        const TacticalBoard next = tactical_grown(&board, free);
        if (tactical_same(&next, &board)) break;
        board = next;
    }
    return board;
}

/* Returns the place of `goals` that is the fewest steps through `free` away from `from`, the first of
 * several, or -1. `steps`, if not NULL, is set to the number of steps. */
static inline int32_t tactical_nearest(int32_t from, const TacticalBoard *goals, const TacticalBoard *free,
                                       int32_t *steps) {
    TacticalBoard board = tactical_singleton(from);
    for (int32_t taken = 0;; taken++) {
        const TacticalBoard found = tactical_intersection(board, goals);
        if (tactical_any(&found)) {
            if (steps != NULL) *steps = taken;
            return tactical_nth(&found, 0);
        }
        const TacticalBoard next = tactical_grown(&board, free);
        if (tactical_same(&next, &board)) return -1;
        board = next;
    }
}

/* ---- Maps ----------------------------------------------------------------------------------------- */

/* A place that is neither ground nor wall is a hole: units cannot walk there, but can see across. */
typedef struct {
    TacticalBoard ground, walls;
    TacticalBoard seen[TACTICAL_PLACES]; /* from a place on the ground, excluding itself and walls */
} TacticalMap;

enum { TACTICAL_MEADOW, TACTICAL_RUINS, TACTICAL_LAKES, TACTICAL_RIVER, TACTICAL_ISLAND, TACTICAL_KINDS };
enum { TACTICAL_MAPS_OF_A_KIND = 8, TACTICAL_MAPS = TACTICAL_MAPS_OF_A_KIND * TACTICAL_KINDS };

/* Map k of a kind has the index k * TACTICAL_KINDS + kind. Only tactical_prepare writes them. */
static TacticalMap tactical_maps[TACTICAL_MAPS];
static TacticalBoard tactical_near[TACTICAL_PLACES][TACTICAL_ROW]; /* places within so many steps */
static TacticalBoard tactical_lines[TACTICAL_PLACES];              /* places in the same row or column */

static inline bool tactical_is_inside(int32_t x, int32_t y) {
    return x >= 0 && x < TACTICAL_SIDE && y >= 0 && y < TACTICAL_SIDE;
}

/* Makes a place and its opposite a wall or a hole. */
static inline void tactical_carve(TacticalMap *map, int32_t x, int32_t y, bool wall) {
    if (!tactical_is_inside(x, y)) return;
    const int32_t places[] = {tactical_place(x, y), tactical_turned(tactical_place(x, y))};
    for (int32_t i = 0; i < 2; i++) {
        tactical_remove(&map->ground, places[i]);
        tactical_remove(&map->walls, places[i]);
        if (wall) tactical_add(&map->walls, places[i]);
    }
}

/* Adds `count` rectangles, and as many opposite ones, with sides of 1 to `length` and 1 to `thickness`. */
static inline void tactical_scatter(TacticalMap *map, PufferRng *rng, int32_t count, int32_t length,
                                    int32_t thickness, bool wall) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t left = puffer_random_below(rng, TACTICAL_SIDE);
        const int32_t top = puffer_random_below(rng, TACTICAL_SIDE);
        const int32_t along = 1 + puffer_random_below(rng, length);
        const int32_t across = 1 + puffer_random_below(rng, thickness);
        const bool level = puffer_random_below(rng, 2);
        for (int32_t j = 0; j < along * across; j++) {
            const int32_t a = j % along, b = j / along;
            tactical_carve(map, left + (level ? a : b), top + (level ? b : a), wall);
        }
    }
}

/* Two rows of water with two or four bridges. */
static inline void tactical_dig_river(TacticalMap *map, PufferRng *rng) {
    const int32_t bridge = puffer_random_below(rng, TACTICAL_SIDE / 2);
    const int32_t other = puffer_random_below(rng, TACTICAL_SIDE / 2);
    for (int32_t x = 0; x < TACTICAL_SIDE; x++) {
        if (x == bridge || x == other) continue;
        if (x == TACTICAL_SIDE - 1 - bridge || x == TACTICAL_SIDE - 1 - other) continue;
        tactical_carve(map, x, TACTICAL_SIDE / 2, false);
    }
}

/* Keeps only a diamond in the middle. */
static inline void tactical_cut_island(TacticalMap *map) {
    for (int32_t y = 0; y < TACTICAL_SIDE; y++) {
        for (int32_t x = 0; x < TACTICAL_SIDE; x++) {
            const int32_t dx = 2 * x - TACTICAL_SIDE + 1, dy = 2 * y - TACTICAL_SIDE + 1;
            const int32_t off_centre = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
            if (off_centre > 16) tactical_carve(map, x, y, false);
        }
    }
}

/* Places walls and holes, the same in both halves of the board. */
static inline void tactical_place_obstacles(TacticalMap *map, PufferRng *rng, int32_t kind) {
    switch (kind) {
        case TACTICAL_MEADOW:
            tactical_scatter(map, rng, 3, 1, 1, false);
            tactical_scatter(map, rng, 6, 1, 1, true);
            break;
        case TACTICAL_RUINS:
            tactical_scatter(map, rng, 7, 4, 1, true);
            break;
        case TACTICAL_LAKES:
            tactical_scatter(map, rng, 4, 3, 3, false);
            tactical_scatter(map, rng, 4, 2, 1, true);
            break;
        case TACTICAL_RIVER:
            tactical_scatter(map, rng, 6, 2, 1, true);
            tactical_dig_river(map, rng);
            break;
        default:
            tactical_scatter(map, rng, 6, 2, 1, true);
            tactical_cut_island(map);
            break;
    }
}

/* The ground of the rows in which a player starts. */
static inline TacticalBoard tactical_start_rows(const TacticalMap *map) {
    TacticalBoard home = {{0, 0, ~(uint64_t)0 << TACTICAL_ROW * (TACTICAL_HOME % 4)}};
    return tactical_intersection(home, &map->ground);
}

/* Turns unreachable ground into holes. Returns false if the sides are not connected, or little remains. */
static inline bool tactical_connect(TacticalMap *map) {
    TacticalBoard all = map->ground, home = tactical_start_rows(map), turned = {{0}};
    if (!tactical_any(&home)) return false;
    map->ground = tactical_flooded(tactical_singleton(tactical_nth(&home, 0)), &all, TACTICAL_CELLS);
    for (int32_t place = 0; place < TACTICAL_PLACES; place++) {
        if (tactical_has(&map->ground, place)) tactical_add(&turned, tactical_turned(place));
    }
    home = tactical_start_rows(map);
    return tactical_same(&turned, &map->ground) && tactical_count(&home) >= TACTICAL_SIDE &&
           tactical_count(&map->ground) >= TACTICAL_CELLS / 2;
}

static inline void tactical_make_map(TacticalMap *map, PufferRng *rng, int32_t kind) {
    do {
        memset(map, 0, sizeof *map);
        for (int32_t word = 0; word < TACTICAL_WORDS; word++) {
            map->ground.words[word] = 0x0FFF0FFF0FFF0FFFu;
        }
        tactical_place_obstacles(map, rng, kind);
    } while (!tactical_connect(map));
}

/* ---- Sight ---------------------------------------------------------------------------------------- */

/* Returns true if no wall is on the line between the centers of two places. All places that the line touches
 * count. If it passes exactly through a corner, both places beside it count. */
static inline bool tactical_is_clear(const TacticalBoard *walls, int32_t from, int32_t to) {
    const int32_t right = tactical_x(to) - tactical_x(from), down = tactical_y(to) - tactical_y(from);
    const int32_t wide = right < 0 ? -right : right, high = down < 0 ? -down : down;
    const int32_t step_x = right < 0 ? -1 : 1, step_y = down < 0 ? -TACTICAL_ROW : TACTICAL_ROW;
    int32_t place = from, x = 0, y = 0; /* steps made in both directions */
    while (x < wide || y < high) {
        /* The line crosses the nearer edge of the place first. */
        const int32_t side = (2 * x + 1) * high, end = (2 * y + 1) * wide;
        if (side == end) {
            if (tactical_has(walls, place + step_x) || tactical_has(walls, place + step_y)) return false;
        }
        if (side <= end) place += step_x, x++;
        if (end <= side) place += step_y, y++;
        if (tactical_has(walls, place)) return false;
    }
    return true;
}

static inline void tactical_compute_sight(TacticalMap *map) {
    for (int32_t from = 0; from < TACTICAL_PLACES; from++) {
        if (tactical_x(from) >= TACTICAL_SIDE || tactical_has(&map->walls, from)) continue;
        for (int32_t to = from + 1; to < TACTICAL_PLACES; to++) {
            if (tactical_x(to) >= TACTICAL_SIDE || !tactical_is_clear(&map->walls, from, to)) continue;
            tactical_add(&map->seen[from], to);
            tactical_add(&map->seen[to], from);
        }
    }
}

static inline void tactical_compute_distances(void) {
    for (int32_t from = 0; from < TACTICAL_PLACES; from++) {
        for (int32_t cell = 0; cell < TACTICAL_CELLS; cell++) {
            const int32_t to = tactical_place_of_cell(cell);
            if (tactical_in_line(from, to)) tactical_add(&tactical_lines[from], to);
            for (int32_t steps = tactical_distance(from, to); steps < TACTICAL_ROW; steps++) {
                tactical_add(&tactical_near[from][steps], to);
            }
        }
    }
}

static inline void tactical_prepare(void) {
    PufferRng rng;
    puffer_seed(&rng, 12);
    for (int32_t i = 0; i < TACTICAL_MAPS; i++) {
        tactical_make_map(&tactical_maps[i], &rng, i % TACTICAL_KINDS);
        tactical_compute_sight(&tactical_maps[i]);
    }
    tactical_compute_distances();
}

#endif
