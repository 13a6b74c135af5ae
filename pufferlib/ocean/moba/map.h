/* Moba, the map: 128 x 128 cells, generated when the process first needs it.
 *
 * Radiant's base is in the lower left corner, dire's in the upper right one. The map is symmetric: cell (x,
 * y) equals (y, x). It is therefore defined only for radiant and mirrored for dire. x points right and y
 * down. Three lanes connect the bases: along the left and upper edge, through the middle, and along the lower
 * and right edge. The river separates the halves. Clearings in the forest are the camps of neutrals. */
#ifndef MOBA_MAP_H
#define MOBA_MAP_H

#include <math.h>

#include "puffer_env.h"

enum { MOBA_SIZE = 128 };
enum { MOBA_SIGHT = 5, MOBA_VIEW = 2 * MOBA_SIGHT + 1, MOBA_LAYERS = 4 }; /* view of a hero */
enum { MOBA_PAD = 8 }; /* rows and columns around the map, so that views need no bounds checks */
enum { MOBA_PADDED = MOBA_SIZE + 2 * MOBA_PAD };
enum { MOBA_LANES = 3, MOBA_SIDE_TOWERS = 12, MOBA_SIDE_CAMPS = 9, MOBA_CAMPS = 2 * MOBA_SIDE_CAMPS };
enum { MOBA_ROLES = 5, MOBA_CLEARING_RADIUS = 5 };

typedef enum {
    MOBA_FOREST, /* the only terrain that cannot be entered */
    MOBA_GROUND,
    MOBA_CLEARING,
    MOBA_RIVER,
    MOBA_LANE,
    MOBA_BASE,
} MobaTerrain;

typedef struct {
    uint8_t x, y;
} MobaCell;

/* Eight directions, clockwise from north. The mirror image of direction d is (6 - d) & 7. */
static const int8_t moba_dx[8] = {0, 1, 1, 1, 0, -1, -1, -1};
static const int8_t moba_dy[8] = {-1, -1, 0, 1, 1, 1, 0, -1};

/* Sites of radiant: three towers of each of the tiers 1 to 3, by lane, two of tier 4, and the ancient. */
enum { MOBA_ANCIENT = MOBA_SIDE_TOWERS - 1 };
static const MobaCell moba_tower_sites[MOBA_SIDE_TOWERS] = {
    {10, 40},  {54, 73},  {87, 117}, /* tier 1 */
    {10, 70},  {42, 85},  {57, 117}, /* tier 2 */
    {10, 96},  {27, 100}, {31, 117}, /* tier 3 */
    {13, 108}, {19, 114}, {12, 115},
};
static const uint8_t moba_tower_tier[MOBA_SIDE_TOWERS] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5};

static const MobaCell moba_hero_sites[MOBA_ROLES] = {{6, 121}, {4, 121}, {8, 121}, {6, 119}, {6, 123}};
static const MobaCell moba_wave_sites[MOBA_LANES] = {{11, 102}, {22, 105}, {25, 116}};
static const MobaCell moba_camp_sites[MOBA_SIDE_CAMPS] = {
    {25, 40}, {26, 58}, {26, 78}, {42, 59}, {42, 73}, {87, 102}, {69, 101}, {49, 101}, {68, 85},
};

/* The lanes from radiant's base to dire's. Each is symmetric. */
enum { MOBA_LANE_POINTS = 5 };
static const MobaCell moba_lane_points[MOBA_LANES][MOBA_LANE_POINTS] = {
    {{12, 106}, {10, 96}, {10, 10}, {96, 10}, {106, 12}},
    {{20, 107}, {42, 85}, {63, 64}, {85, 42}, {107, 20}},
    {{21, 115}, {31, 117}, {117, 117}, {117, 31}, {115, 21}},
};

/* Paths through the forest of radiant's half. */
static const MobaCell moba_paths[][2] = {
    {{25, 40}, {26, 58}},   {{26, 58}, {26, 78}},   {{25, 40}, {10, 40}},   {{26, 78}, {10, 84}},
    {{25, 40}, {36, 36}},   {{26, 58}, {42, 59}},   {{42, 59}, {42, 73}},   {{42, 73}, {26, 78}},
    {{42, 73}, {48, 79}},   {{42, 59}, {55, 60}},   {{26, 78}, {28, 99}},   {{87, 102}, {69, 101}},
    {{69, 101}, {49, 101}}, {{87, 102}, {87, 117}}, {{49, 101}, {43, 117}}, {{87, 102}, {91, 91}},
    {{69, 101}, {68, 85}},  {{68, 85}, {54, 85}},   {{54, 85}, {49, 101}},  {{54, 85}, {48, 79}},
    {{68, 85}, {67, 72}},   {{49, 101}, {28, 99}},
};

/* ---- The tables, 0.2 MB, written once by moba_prepare ------------------------------------------- */

static uint8_t moba_terrain[MOBA_SIZE][MOBA_SIZE];               /* [y][x] */
static uint8_t moba_view[MOBA_PADDED][MOBA_PADDED][MOBA_LAYERS]; /* view of an empty map */
static uint8_t moba_flow[MOBA_LANES][MOBA_SIZE][MOBA_SIZE];      /* radiant's next direction along a lane */
static uint8_t moba_camp_at[MOBA_SIZE][MOBA_SIZE];               /* 1 + the camp of the clearing */
static float moba_velocity[7][7][2];                             /* x and y for two components of an action */

static inline MobaCell moba_mirror(MobaCell cell, int32_t team) {
    return team == 0 ? cell : (MobaCell){cell.y, cell.x};
}

static inline MobaCell moba_camp_site(int32_t camp) {
    return moba_mirror(moba_camp_sites[camp % MOBA_SIDE_CAMPS], camp / MOBA_SIDE_CAMPS);
}

/* The direction in which the creeps of a side follow a lane from here. */
static inline int32_t moba_lane_direction(int32_t team, int32_t lane, int32_t x, int32_t y) {
    return team == 0 ? moba_flow[lane][y][x] : (6 - moba_flow[lane][x][y]) & 7;
}

/* ---- Carving ------------------------------------------------------------------------------------- */

/* Carves a round area and its mirror image. The outermost cells remain forest. */
static inline void moba_carve(int32_t x, int32_t y, int32_t radius, MobaTerrain terrain) {
    const int32_t low = 3, high = MOBA_SIZE - 4;
    for (int32_t v = y - radius; v <= y + radius; v++) {
        for (int32_t u = x - radius; u <= x + radius; u++) {
            if (u < low || u > high || v < low || v > high) continue;
            if ((u - x) * (u - x) + (v - y) * (v - y) > radius * radius + radius) continue;
            moba_terrain[v][u] = moba_terrain[u][v] = (uint8_t)terrain;
        }
    }
}

static inline void moba_carve_line(MobaCell from, MobaCell to, int32_t radius, MobaTerrain terrain) {
    const int32_t dx = to.x - from.x, dy = to.y - from.y;
    const int32_t wide = dx < 0 ? -dx : dx, high = dy < 0 ? -dy : dy, steps = wide > high ? wide : high;
    for (int32_t i = 0; i <= steps; i++) {
        moba_carve(from.x + dx * i / steps, from.y + dy * i / steps, radius, terrain);
    }
}

static inline void moba_carve_lane(int32_t lane, int32_t radius, MobaTerrain terrain) {
    for (int32_t i = 1; i < MOBA_LANE_POINTS; i++) {
        moba_carve_line(moba_lane_points[lane][i - 1], moba_lane_points[lane][i], radius, terrain);
    }
}

static inline void moba_carve_camp(int32_t camp) {
    const MobaCell site = moba_camp_site(camp);
    const int32_t radius = MOBA_CLEARING_RADIUS;
    for (int32_t y = site.y - radius; y <= site.y + radius; y++) {
        for (int32_t x = site.x - radius; x <= site.x + radius; x++) {
            const int32_t dx = x - site.x, dy = y - site.y;
            if (dx * dx + dy * dy > radius * radius + radius) continue;
            moba_camp_at[y][x] = (uint8_t)(1 + camp);
        }
    }
    moba_carve(site.x, site.y, radius, MOBA_CLEARING);
}

static inline void moba_carve_map(void) {
    memset(moba_terrain, MOBA_FOREST, sizeof moba_terrain);
    for (size_t i = 0; i < sizeof moba_paths / sizeof *moba_paths; i++) {
        moba_carve_line(moba_paths[i][0], moba_paths[i][1], 1, MOBA_GROUND);
    }
    for (int32_t camp = 0; camp < MOBA_CAMPS; camp++) moba_carve_camp(camp);
    moba_carve_line((MobaCell){10, 10}, (MobaCell){117, 117}, 4, MOBA_RIVER);
    moba_carve(12, 115, 18, MOBA_BASE);
    for (int32_t lane = 0; lane < MOBA_LANES; lane++) moba_carve_lane(lane, 3, MOBA_LANE);
}

/* ---- Flow fields --------------------------------------------------------------------------------- */

enum { MOBA_OFF_LANE = 6 }; /* cost of a cell beside the lane */

/* Sets the cost of entering each cell, 0 for forest and towers, which cannot be entered. */
static inline void moba_set_costs(int32_t lane, uint8_t cost[MOBA_SIZE][MOBA_SIZE]) {
    for (int32_t y = 0; y < MOBA_SIZE; y++) {
        for (int32_t x = 0; x < MOBA_SIZE; x++) {
            const MobaTerrain terrain = (MobaTerrain)moba_terrain[y][x];
            cost[y][x] = terrain == MOBA_FOREST ? 0 : terrain == MOBA_BASE ? 1 : MOBA_OFF_LANE;
        }
    }
    for (int32_t i = 1; i < MOBA_LANE_POINTS; i++) {
        const MobaCell from = moba_lane_points[lane][i - 1], to = moba_lane_points[lane][i];
        const int32_t dx = to.x - from.x, dy = to.y - from.y, steps = MOBA_SIZE;
        for (int32_t j = 0; j <= steps; j++) {
            const int32_t x = from.x + dx * j / steps, y = from.y + dy * j / steps;
            for (int32_t spot = 0; spot < 25; spot++) cost[y + spot / 5 - 2][x + spot % 5 - 2] = 1;
        }
    }
    for (int32_t i = 0; i < 2 * MOBA_SIDE_TOWERS; i++) {
        const MobaCell site = moba_mirror(moba_tower_sites[i % MOBA_SIDE_TOWERS], i / MOBA_SIDE_TOWERS);
        cost[site.y][site.x] = 0;
    }
}

/* Relaxes the distance to dire's ancient from (x, y) via its neighbours. A step costs twice the cost of the
 * cell that it enters, a diagonal one three times. */
static inline bool moba_relax(const uint8_t cost[MOBA_SIZE][MOBA_SIZE],
                              uint16_t distance[MOBA_SIZE][MOBA_SIZE], int32_t x, int32_t y) {
    int32_t best = distance[y][x];
    for (int32_t d = 0; d < 8; d++) {
        const int32_t u = x + moba_dx[d], v = y + moba_dy[d];
        const int32_t through = distance[v][u] + cost[v][u] * (2 + (d & 1));
        if (through < best) best = through;
    }
    const bool shorter = best < distance[y][x];
    distance[y][x] = (uint16_t)best;
    return shorter;
}

/* Sweeps back and forth until nothing changes, which propagates distances quickly along the sweep. */
static inline void moba_find_distances(const uint8_t cost[MOBA_SIZE][MOBA_SIZE],
                                       uint16_t distance[MOBA_SIZE][MOBA_SIZE]) {
    const MobaCell goal = moba_mirror(moba_tower_sites[MOBA_ANCIENT], 1);
    const int32_t last = MOBA_SIZE - 1, inner = (MOBA_SIZE - 2) * (MOBA_SIZE - 2);
    memset(distance, 0xFF, sizeof(uint16_t) * MOBA_SIZE * MOBA_SIZE);
    distance[goal.y][goal.x] = 0;
    bool changed = true;
    for (bool back = false; changed; back = !back) {
        changed = false;
        for (int32_t i = 0; i < inner; i++) {
            const int32_t column = 1 + i % (MOBA_SIZE - 2), row = 1 + i / (MOBA_SIZE - 2);
            const int32_t x = back ? last - column : column, y = back ? last - row : row;
            if (cost[y][x] > 0) changed |= moba_relax(cost, distance, x, y);
        }
    }
}

static inline void moba_make_flow_field(int32_t lane) {
    uint8_t cost[MOBA_SIZE][MOBA_SIZE];
    uint16_t distance[MOBA_SIZE][MOBA_SIZE];
    moba_set_costs(lane, cost);
    moba_find_distances((const uint8_t (*)[MOBA_SIZE])cost, distance);
    for (int32_t y = 1; y < MOBA_SIZE - 1; y++) {
        for (int32_t x = 1; x < MOBA_SIZE - 1; x++) {
            int32_t best = 0;
            for (int32_t d = 1; d < 8; d++) {
                const uint16_t to = distance[y + moba_dy[d]][x + moba_dx[d]];
                if (to < distance[y + moba_dy[best]][x + moba_dx[best]]) best = d;
            }
            moba_flow[lane][y][x] = (uint8_t)best;
        }
    }
}

/* ---- Preparation --------------------------------------------------------------------------------- */

enum { MOBA_SEES_GROUND, MOBA_SEES_WALL = 15 };

/* Implementation of `prepare`. Runs once per process. */
static void moba_prepare(void) {
    moba_carve_map();
    for (int32_t lane = 0; lane < MOBA_LANES; lane++) moba_make_flow_field(lane);
    for (int32_t y = 0; y < MOBA_PADDED; y++) {
        for (int32_t x = 0; x < MOBA_PADDED; x++) {
            const int32_t u = x - MOBA_PAD, v = y - MOBA_PAD;
            const bool inside = u >= 0 && v >= 0 && u < MOBA_SIZE && v < MOBA_SIZE;
            const bool wall = !inside || moba_terrain[v][u] == MOBA_FOREST;
            moba_view[y][x][0] = wall ? MOBA_SEES_WALL : MOBA_SEES_GROUND;
        }
    }
    for (int32_t down = 0; down < 7; down++) {
        for (int32_t right = 0; right < 7; right++) {
            const float x = (float)(right - 3) / 3, y = (float)(down - 3) / 3, length = sqrtf(x * x + y * y);
            moba_velocity[down][right][0] = length > 1 ? x / length : x;
            moba_velocity[down][right][1] = length > 1 ? y / length : y;
        }
    }
}

#endif
