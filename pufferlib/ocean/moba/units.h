/* Moba, units: ids, positions on the map, and search for the nearest unit.
 *
 * A unit is an id: heroes 1 to 10, then towers, neutrals, creeps. 0 is none. A cell holds at most one unit.
 * `grid` holds the unit of each cell. `boards` hold, for each side, a bit for each cell that it occupies. A
 * search for the nearest enemy reads two words of a few rows and accesses only the units found there. */
#ifndef MOBA_UNITS_H
#define MOBA_UNITS_H

#include "map.h"

/* For functions that are called rarely or from many places, to keep the code small. */
#define MOBA_NOINLINE static __attribute__((noinline))

enum { MOBA_RADIANT, MOBA_DIRE, MOBA_NEUTRAL, MOBA_SHIELDED, MOBA_BOARDS };
enum { MOBA_BOARD_WORDS = MOBA_PADDED / 32 + 2 };

enum { MOBA_HEROES = 2 * MOBA_ROLES, MOBA_TOWERS = 2 * MOBA_SIDE_TOWERS };
enum { MOBA_CAMP_SIZE = 4, MOBA_NEUTRALS = MOBA_CAMPS * MOBA_CAMP_SIZE };
enum { MOBA_WAVE = 5, MOBA_LANE_CREEPS = 24 }; /* maximum per side and lane */
enum {
    MOBA_FIRST_HERO = 1,
    MOBA_FIRST_TOWER = MOBA_FIRST_HERO + MOBA_HEROES,
    MOBA_FIRST_NEUTRAL = MOBA_FIRST_TOWER + MOBA_TOWERS,
    MOBA_FIRST_CREEP = MOBA_FIRST_NEUTRAL + MOBA_NEUTRALS,
    MOBA_UNITS = MOBA_FIRST_CREEP + 2 * MOBA_LANES * MOBA_LANE_CREEPS,
};
_Static_assert(MOBA_UNITS <= 256, "an id is a byte");

typedef enum { MOBA_HERO, MOBA_CREEP, MOBA_NEUTRAL_CREEP, MOBA_TOWER } MobaKind;
typedef enum { MOBA_SUPPORT, MOBA_ASSASSIN, MOBA_BURST, MOBA_TANK, MOBA_CARRY } MobaRole;

typedef struct {
    int16_t hp, max_hp; /* hp 0: dead, and not on the map */
    float hp_scale;     /* 255 / max_hp */
    uint8_t x, y;
    uint8_t kind, team;
    uint8_t place;  /* a hero's role, a tower's number on its side, a neutral's camp, a creep's lane */
    uint8_t target; /* of a creep or neutral; 0 is none */
    uint8_t attack_timer, stun, slow;
    uint8_t blocked_timer; /* ticks for which a blocked creep chases only enemies in reach */
    uint8_t codes[2];      /* its code in the observations of radiant and dire */
} MobaUnit;

typedef struct {
    float x, y; /* position inside its cell */
    int32_t xp; /* in sixtieths, so that five heroes can share it exactly */
    int16_t mana, max_mana, damage;
    uint8_t level;
    uint8_t cooldown[3];
    uint8_t site;          /* its home site */
    uint8_t haste;         /* remaining ticks of double speed */
    int16_t goal_distance; /* distance to the enemy's ancient, cells */
    bool was_hit;
    bool rewarded_death, rewarded_xp, rewarded_distance, rewarded_tower; /* parts of the last reward */
    /* for rendering */
    uint8_t cast, cast_age, cast_x, cast_y, attacked;
} MobaHero;

typedef struct {
    PufferGame game;
    /* parameters */
    float agent_speed;
    float reward_death, reward_xp, reward_distance, reward_siege, reward_tower, reward_win;
    int32_t max_ticks;
    bool script_opponents;
    /* metrics */
    float score, perf, level, towers, towers_lost, kills, deaths;
    /* state */
    int32_t tick;
    int32_t agents;
    int32_t winner;                 /* a team, or -1 while both ancients exist */
    int32_t first;                  /* team that acts first in this tick */
    bool scripted[2];               /* teams whose heroes are scripted */
    uint32_t awake;                 /* bit i: camp i is active */
    uint32_t creeps[2][MOBA_LANES]; /* bit i: creep i of the side in the lane is alive */
    int32_t fallen[2], hero_kills[2];
    MobaHero heroes[MOBA_HEROES];
    MobaUnit units[MOBA_UNITS];
    uint32_t boards[MOBA_BOARDS][MOBA_PADDED][MOBA_BOARD_WORDS];
    uint8_t grid[MOBA_SIZE * MOBA_SIZE]; /* in tiles of 8 x 8, so that neighbours are close in memory */
} Moba;

/* ---- Ids ------------------------------------------------------------------------------------------ */

static inline int32_t moba_hero_id(int32_t team, int32_t role) {
    return MOBA_FIRST_HERO + team * MOBA_ROLES + role;
}

static inline int32_t moba_tower_id(int32_t team, int32_t number) {
    return MOBA_FIRST_TOWER + team * MOBA_SIDE_TOWERS + number;
}

static inline int32_t moba_neutral_id(int32_t camp, int32_t number) {
    return MOBA_FIRST_NEUTRAL + camp * MOBA_CAMP_SIZE + number;
}

static inline int32_t moba_creep_id(int32_t team, int32_t lane, int32_t number) {
    return MOBA_FIRST_CREEP + (team * MOBA_LANES + lane) * MOBA_LANE_CREEPS + number;
}

static inline bool moba_is_hero(int32_t id) {
    return id < MOBA_FIRST_TOWER;
}

static inline MobaHero *moba_hero(Moba *env, int32_t id) {
    return &env->heroes[id - MOBA_FIRST_HERO];
}

/* Code of a unit in observations. Friends have low numbers and enemies high ones, with gaps between the
 * numbers for networks that treat them as amounts. 0 is free ground, 15 a wall. */
static inline uint8_t moba_code(MobaKind kind, int32_t team, int32_t role, int32_t viewer) {
    if (kind == MOBA_NEUTRAL_CREEP) return 135;
    const int32_t side = team == viewer ? 0 : 120;
    return (uint8_t)(side + (kind == MOBA_CREEP ? 30 : kind == MOBA_TOWER ? 45 : 60 + 15 * role));
}

/* ---- Places --------------------------------------------------------------------------------------- */

static inline int32_t moba_cell(int32_t x, int32_t y) {
    return y >> 3 << 10 | x >> 3 << 6 | (y & 7) << 3 | (x & 7);
}

static inline bool moba_is_free(const Moba *env, int32_t x, int32_t y) {
    return moba_terrain[y][x] != MOBA_FOREST && env->grid[moba_cell(x, y)] == 0;
}

static inline void moba_flip(Moba *env, int32_t board, int32_t x, int32_t y) {
    const uint32_t column = (uint32_t)(x + MOBA_PAD);
    env->boards[board][y + MOBA_PAD][column >> 5] ^= (uint32_t)1 << (column & 31);
}

static inline void moba_place_unit(Moba *env, int32_t id, int32_t board, int32_t x, int32_t y) {
    env->units[id].x = (uint8_t)x;
    env->units[id].y = (uint8_t)y;
    env->grid[moba_cell(x, y)] = (uint8_t)id;
    moba_flip(env, board, x, y);
}

static inline void moba_remove_unit(Moba *env, int32_t id, int32_t board) {
    const MobaUnit *unit = &env->units[id];
    env->grid[moba_cell(unit->x, unit->y)] = 0;
    moba_flip(env, board, unit->x, unit->y);
}

/* Moves a unit to a free cell. The caller sets the exact position of a hero. */
static inline void moba_move(Moba *env, int32_t id, int32_t x, int32_t y) {
    const int32_t board = env->units[id].team;
    moba_remove_unit(env, id, board);
    moba_place_unit(env, id, board, x, y);
}

/* Finds the nearest free cell within 6, mirrored for dire. Returns false if there is none. */
MOBA_NOINLINE bool moba_find_free(const Moba *env, int32_t team, int32_t x, int32_t y, MobaCell *found) {
    const int32_t reach = 6;
    int32_t nearest = INT32_MAX;
    for (int32_t i = -reach; i <= reach; i++) {
        for (int32_t j = -reach; j <= reach; j++) {
            const int32_t u = x + (team == 0 ? j : i), v = y + (team == 0 ? i : j);
            if (u < 0 || v < 0 || u >= MOBA_SIZE || v >= MOBA_SIZE || i * i + j * j >= nearest) continue;
            if (!moba_is_free(env, u, v)) continue;
            nearest = i * i + j * j;
            *found = (MobaCell){(uint8_t)u, (uint8_t)v};
        }
    }
    return nearest < INT32_MAX;
}

static inline int32_t moba_distance(const MobaUnit *a, const MobaUnit *b) { /* in steps, also diagonal */
    const int32_t dx = a->x > b->x ? a->x - b->x : b->x - a->x;
    const int32_t dy = a->y > b->y ? a->y - b->y : b->y - a->y;
    return dx > dy ? dx : dy;
}

/* ---- Nearby units ----------------------------------------------------------------------------------- */

typedef const uint32_t (*MobaBoard)[MOBA_BOARD_WORDS];

/* Occupied cells of a board in row y, from column x on: bit i is column x + i. */
static inline uint32_t moba_row(MobaBoard board, int32_t x, int32_t y) {
    const uint32_t *row = board[y + MOBA_PAD], column = (uint32_t)(x + MOBA_PAD);
    const uint64_t words = row[column >> 5] | (uint64_t)row[(column >> 5) + 1] << 32;
    return (uint32_t)(words >> (column & 31));
}

/* Returns the nearest unit on either board within `reach` columns and rows that `wanted` accepts, the lower
 * id at equal distance, or 0 if there is none. */
PUFFER_INLINE int32_t moba_nearest(const Moba *env, MobaBoard one, MobaBoard other, int32_t x, int32_t y,
                                   int32_t reach, bool (*wanted)(const MobaUnit *unit)) {
    int32_t best = INT32_MAX; /* squared distance, and the id */
    for (int32_t i = 0; i <= 2 * reach; i++) {
        const int32_t dy = i & 1 ? (i + 1) / 2 : -(i / 2); /* from the middle outwards */
        if (dy * dy > best >> 8) break;
        uint32_t bits = moba_row(one, x - reach, y + dy) | moba_row(other, x - reach, y + dy);
        for (bits &= (2u << (2 * reach)) - 1; bits != 0; bits &= bits - 1) {
            const int32_t dx = __builtin_ctz(bits) - reach, id = env->grid[moba_cell(x + dx, y + dy)];
            const int32_t key = (dx * dx + dy * dy) << 8 | id;
            if (key < best && (wanted == NULL || wanted(&env->units[id]))) best = key;
        }
    }
    return best == INT32_MAX ? 0 : best & 255;
}

enum { MOBA_MAX_NEAR = 121 }; /* for a reach of 5 */

/* Collects all units on either board within `reach` columns and rows. Returns their number. */
MOBA_NOINLINE int32_t moba_collect(const Moba *env, MobaBoard one, MobaBoard other, int32_t x, int32_t y,
                                   int32_t reach, uint8_t ids[MOBA_MAX_NEAR]) {
    int32_t count = 0;
    for (int32_t dy = -reach; dy <= reach; dy++) {
        uint32_t bits = moba_row(one, x - reach, y + dy) | moba_row(other, x - reach, y + dy);
        for (bits &= (2u << (2 * reach)) - 1; bits != 0; bits &= bits - 1) {
            ids[count++] = env->grid[moba_cell(x + __builtin_ctz(bits) - reach, y + dy)];
        }
    }
    return count;
}

static inline bool moba_is_hero_or_tower(const MobaUnit *unit) {
    return unit->kind == MOBA_HERO || unit->kind == MOBA_TOWER;
}

/* ---- Small moves ----------------------------------------------------------------------------------- */

/* Returns the first direction with a free cell among this one and those up to 90 degrees beside it, or -1.
 * Radiant tries its right side first, dire the left one. */
MOBA_NOINLINE int32_t moba_free_direction(const Moba *env, int32_t team, int32_t x, int32_t y,
                                          int32_t direction) {
    static const int8_t turns[5] = {0, 1, -1, 2, -2};
    for (int32_t i = 0; i < 5; i++) {
        const int32_t d = (direction + (team == MOBA_RADIANT ? turns[i] : -turns[i])) & 7;
        if (moba_is_free(env, x + moba_dx[d], y + moba_dy[d])) return d;
    }
    return -1;
}

/* The direction closest to (dx, dy), which must not be (0, 0). */
static inline int32_t moba_direction(int32_t dx, int32_t dy) {
    static const uint8_t directions[3][3] = {{7, 0, 1}, {6, 0, 2}, {5, 4, 3}};
    return directions[(dy > 0) - (dy < 0) + 1][(dx > 0) - (dx < 0) + 1];
}

/* Moves a hero to the middle of a free cell. */
static inline void moba_move_hero(Moba *env, int32_t id, int32_t x, int32_t y) {
    MobaHero *hero = moba_hero(env, id);
    moba_move(env, id, x, y);
    hero->x = (float)x + 0.5f;
    hero->y = (float)y + 0.5f;
}

/* Drags a unit up to `cells` cells straight towards (x, y), until it is blocked, and not onto that cell. */
MOBA_NOINLINE void moba_drag(Moba *env, int32_t id, int32_t x, int32_t y, int32_t cells) {
    MobaUnit *unit = &env->units[id];
    for (; cells > 0 && (unit->x != x || unit->y != y); cells--) {
        const int32_t d = moba_direction(x - unit->x, y - unit->y);
        const int32_t u = unit->x + moba_dx[d], v = unit->y + moba_dy[d];
        if (!moba_is_free(env, u, v)) return;
        if (moba_is_hero(id)) {
            moba_move_hero(env, id, u, v);
        } else {
            moba_move(env, id, u, v);
        }
    }
}

#endif
