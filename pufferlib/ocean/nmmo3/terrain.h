/* Neural MMO 3: terrain from gradient noise, seasons by region, and resources. */
#ifndef NMMO3_TERRAIN_H
#define NMMO3_TERRAIN_H

#include "map.h"

enum { NMMO3_REGION_TILES = 4000, NMMO3_NO_SEASON = 255, NMMO3_NEW_SEASON = 128 };

/* ---- Noise ------------------------------------------------------------------------------------- */

/* Gradient noise (Perlin, "Improving Noise", 2002) with eight directions and a table shuffled per game. */
typedef struct {
    uint8_t table[256];
} Nmmo3Noise;

static inline void nmmo3_shuffle_noise(Nmmo3Noise *noise, PufferRng *rng) {
    for (int32_t i = 0; i < 256; i++) noise->table[i] = (uint8_t)i;
    for (int32_t i = 255; i > 0; i--) {
        const int32_t other = puffer_random_below(rng, i + 1);
        const uint8_t swapped = noise->table[i];
        noise->table[i] = noise->table[other];
        noise->table[other] = swapped;
    }
}

/* Contribution of the lattice point (column, row) at the offset (dx, dy) from it. */
static inline float nmmo3_slope(const Nmmo3Noise *noise, int32_t column, int32_t row, float dx, float dy) {
    static const float directions[8][2] = {{1, 0},
                                           {-1, 0},
                                           {0, 1},
                                           {0, -1},
                                           {0.7071f, 0.7071f},
                                           {-0.7071f, 0.7071f},
                                           {0.7071f, -0.7071f},
                                           {-0.7071f, -0.7071f}};
    const uint8_t hash = noise->table[(noise->table[column & 255] + row) & 255];
    const float *direction = directions[hash & 7];
    return direction[0] * dx + direction[1] * dy;
}

static inline float nmmo3_fade(float t) {
    return t * t * t * (t * (t * 6 - 15) + 10);
}

/* In [-1, 1], for x and y of at least 0. */
static inline float nmmo3_noise_at(const Nmmo3Noise *noise, float x, float y) {
    const int32_t column = (int32_t)x, row = (int32_t)y;
    const float dx = x - (float)column, dy = y - (float)row;
    const float across = nmmo3_fade(dx), down = nmmo3_fade(dy);
    const float a = nmmo3_slope(noise, column, row, dx, dy);
    const float b = nmmo3_slope(noise, column + 1, row, dx - 1, dy);
    const float c = nmmo3_slope(noise, column, row + 1, dx, dy - 1);
    const float d = nmmo3_slope(noise, column + 1, row + 1, dx - 1, dy - 1);
    const float upper = a + across * (b - a), lower = c + across * (d - c);
    return upper + down * (lower - upper);
}

/* Fills `occupants`, which is unused until the map is populated, with noise from 0 to 65,535: waves of 64
 * tiles, shorter on maps narrower than 128, and two more octaves. */
static inline void nmmo3_fill_with_noise(Nmmo3 *env) {
    const int32_t narrow = nmmo3_lesser(env->width, env->height), area = env->width * env->height;
    const float frequency = 1 / (float)nmmo3_lesser(64, narrow / 2);
    Nmmo3Noise noise;
    uint16_t low = UINT16_MAX, high = 0;
    nmmo3_shuffle_noise(&noise, &env->game.rng);
    for (int32_t tile = 0, y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++, tile++) {
            const float column = (float)x * frequency, row = (float)y * frequency;
            const float sum = nmmo3_noise_at(&noise, column, row) +
                              0.5f * nmmo3_noise_at(&noise, 2 * column + 64, 2 * row + 64) +
                              0.25f * nmmo3_noise_at(&noise, 4 * column + 128, 4 * row + 128);
            const uint16_t value = (uint16_t)(int32_t)((sum + 2) * 16000);
            low = value < low ? value : low;
            high = value > high ? value : high;
            env->occupants[tile] = value;
        }
    }
    const uint32_t range = high > low ? (uint32_t)(high - low) : 1;
    for (int32_t tile = 0; tile < area; tile++) {
        env->occupants[tile] = (uint16_t)((uint32_t)(env->occupants[tile] - low) * 65535u / range);
    }
}

/* ---- Land and seasons ---------------------------------------------------------------------------- */

static inline bool nmmo3_is_inside(const Nmmo3 *env, int32_t x, int32_t y) {
    return x >= NMMO3_BORDER_X && x < env->width - NMMO3_BORDER_X && y >= NMMO3_BORDER_Y &&
           y < env->height - NMMO3_BORDER_Y;
}

/* Heights above 3/4 are stone, below 1/4 water, and a path runs along the middle. If less than a quarter of
 * the land is grass, it becomes a meadow. */
static inline void nmmo3_make_land(Nmmo3 *env) {
    int32_t grass = 0, inner = 0;
    nmmo3_fill_with_noise(env);
    for (int32_t tile = 0, y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++, tile++) {
            const int32_t height = env->occupants[tile];
            const bool is_path = height >= 31700 && height < 33800;
            uint8_t terrain = height > 49151 ? NMMO3_STONE : height < 16384 ? NMMO3_WATER : NMMO3_GRASS;
            if (is_path) terrain = NMMO3_DIRT;
            if (!nmmo3_is_inside(env, x, y)) terrain = NMMO3_WATER;
            nmmo3_codes(env, tile)[NMMO3_TERRAIN] = terrain;
            grass += terrain == NMMO3_GRASS;
            inner += nmmo3_is_inside(env, x, y);
        }
    }
    if (grass * 4 >= inner) return;
    for (int32_t tile = 0, y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++, tile++) {
            if (nmmo3_is_inside(env, x, y)) nmmo3_codes(env, tile)[NMMO3_TERRAIN] = NMMO3_GRASS;
        }
    }
}

/* True on a ridge between two regions of seasons. */
static inline bool nmmo3_is_ridge(const Nmmo3 *env, int32_t tile) {
    return env->occupants[tile] >= 22937 && env->occupants[tile] <= 42598; /* 0.35 to 0.65 */
}

/* Sets `season` for the tiles around `start`, up to NMMO3_REGION_TILES of them and up to the ridges. */
static inline void nmmo3_fill_region(Nmmo3 *env, int32_t start, uint8_t season) {
    int32_t tiles[NMMO3_REGION_TILES], count = 1;
    tiles[0] = start;
    nmmo3_codes(env, start)[NMMO3_SEASON] = season;
    for (int32_t done = 0; done < count; done++) {
        const int32_t x = tiles[done] % env->width, y = tiles[done] / env->width;
        for (int32_t direction = 0; direction < 4 && count < NMMO3_REGION_TILES; direction++) {
            const int32_t next_x = x + nmmo3_dx[direction], next_y = y + nmmo3_dy[direction];
            if (next_x < 0 || next_x >= env->width || next_y < 0 || next_y >= env->height) continue;
            const int32_t next = nmmo3_tile(env, next_x, next_y);
            if (nmmo3_is_ridge(env, next) || nmmo3_codes(env, next)[NMMO3_SEASON] != NMMO3_NO_SEASON)
                continue;
            nmmo3_codes(env, next)[NMMO3_SEASON] = season;
            tiles[count++] = next;
        }
    }
}

/* One generation: every tile without a season takes the season of a neighbour. Returns the number of new
 * tiles. Tiles of the last generation are marked until this one, so that seasons grow by one tile per
 * generation. */
static inline int32_t nmmo3_grow_seasons(Nmmo3 *env) {
    const int32_t area = env->width * env->height;
    int32_t grown = 0;
    for (int32_t tile = 0; tile < area; tile++) {
        uint8_t *season = &nmmo3_codes(env, tile)[NMMO3_SEASON];
        if (*season != NMMO3_NO_SEASON) continue;
        const int32_t x = tile % env->width, first = puffer_random_below(&env->game.rng, 4);
        for (int32_t i = 0; i < 4; i++) {
            const int32_t direction = (first + i) & 3, dx = nmmo3_dx[direction];
            const int32_t next = tile + dx + nmmo3_dy[direction] * env->width;
            if (x + dx < 0 || x + dx >= env->width || next < 0 || next >= area) continue;
            const uint8_t found = nmmo3_codes(env, next)[NMMO3_SEASON];
            if (found >= NMMO3_NEW_SEASON) continue; /* new, or none */
            *season = NMMO3_NEW_SEASON | found;
            grown++;
            break;
        }
    }
    for (int32_t tile = 0; tile < area; tile++) {
        uint8_t *season = &nmmo3_codes(env, tile)[NMMO3_SEASON];
        if (*season != NMMO3_NO_SEASON) *season &= NMMO3_SEASONS - 1;
    }
    return grown;
}

/* Hills and valleys of another noise are the regions. The slopes between them go to their neighbours. */
static inline void nmmo3_make_seasons(Nmmo3 *env) {
    const int32_t area = env->width * env->height;
    nmmo3_fill_with_noise(env);
    for (int32_t tile = 0; tile < area; tile++) nmmo3_codes(env, tile)[NMMO3_SEASON] = NMMO3_NO_SEASON;
    for (int32_t tile = 0; tile < area; tile++) {
        if (nmmo3_is_ridge(env, tile) || nmmo3_codes(env, tile)[NMMO3_SEASON] != NMMO3_NO_SEASON) continue;
        nmmo3_fill_region(env, tile, (uint8_t)puffer_random_below(&env->game.rng, NMMO3_SEASONS));
    }
    while (nmmo3_grow_seasons(env) > 0) {
    }
}

/* ---- Resources ------------------------------------------------------------------------------------ */

/* Kinds of ground for resources: grass beside stone, grass beside water, and other grass of each season. */
enum {
    NMMO3_BY_STONE,
    NMMO3_BY_WATER,
    NMMO3_MEADOW,
    NMMO3_GROUNDS = NMMO3_MEADOW + NMMO3_SEASONS,
    NMMO3_BARREN
};

static inline int32_t nmmo3_ground(const Nmmo3 *env, int32_t tile) {
    const uint8_t *codes = nmmo3_codes(env, tile);
    bool is_by_water = false;
    if (codes[NMMO3_TERRAIN] != NMMO3_GRASS) return NMMO3_BARREN;
    for (int32_t direction = 0; direction < 4; direction++) {
        const int32_t next = tile + nmmo3_dx[direction] + nmmo3_dy[direction] * env->width;
        const uint8_t terrain = nmmo3_codes(env, next)[NMMO3_TERRAIN];
        if (terrain == NMMO3_STONE) return NMMO3_BY_STONE;
        is_by_water |= terrain == NMMO3_WATER;
    }
    return is_by_water ? NMMO3_BY_WATER : NMMO3_MEADOW + codes[NMMO3_SEASON];
}

/* Two types of items to spread evenly over the tiles of a ground, and the remaining number of each. */
typedef struct {
    int32_t tiles, types[2], left[2];
} Nmmo3ResourcePlan;

/* Half of the tiles stay free. */
static inline void nmmo3_plan_resources(Nmmo3ResourcePlan *plan, int32_t type, int32_t wanted, int32_t other,
                                        int32_t others) {
    const int32_t room = plan->tiles / 2, sum = wanted + others;
    plan->types[0] = type;
    plan->types[1] = other;
    plan->left[0] = sum <= room ? wanted : (int32_t)((int64_t)room * wanted / sum);
    plan->left[1] = sum <= room ? others : room - plan->left[0];
}

/* Returns the resource of the next tile of a ground, or 0 for none. Each tier is half as likely as the one
 * below it. Every choice of tiles is equally likely (Knuth, The Art of Computer Programming 2, 3.4.2 S). */
static inline int32_t nmmo3_next_resource(Nmmo3ResourcePlan *plan, int32_t tiers, PufferRng *rng) {
    const int32_t left = plan->left[0] + plan->left[1];
    if (puffer_random_below(rng, plan->tiles--) >= left) return 0;
    const int32_t which = puffer_random_below(rng, left) >= plan->left[0];
    plan->left[which]--;
    int32_t tier = 1;
    while (tier < tiers && puffer_random(rng) & 1) tier++;
    return nmmo3_item(plan->types[which], tier);
}

static inline void nmmo3_place_resources(Nmmo3 *env) {
    const int32_t area = env->width * env->height;
    Nmmo3ResourcePlan plans[NMMO3_GROUNDS] = {0};
    for (int32_t tile = 0; tile < area; tile++) {
        const int32_t ground = nmmo3_ground(env, tile);
        if (ground != NMMO3_BARREN) plans[ground].tiles++;
    }
    nmmo3_plan_resources(&plans[NMMO3_BY_STONE], NMMO3_ORE, nmmo3_resources(env), NMMO3_HILT,
                         nmmo3_weapons(env));
    nmmo3_plan_resources(&plans[NMMO3_BY_WATER], NMMO3_HERB, nmmo3_resources(env), NMMO3_WOOD,
                         nmmo3_weapons(env));
    for (int32_t season = 0; season < NMMO3_SEASONS; season++) {
        nmmo3_plan_resources(&plans[NMMO3_MEADOW + season], NMMO3_GEM + season, nmmo3_gems(env), NMMO3_NONE,
                             0);
    }
    for (int32_t tile = 0; tile < area; tile++) {
        const int32_t ground = nmmo3_ground(env, tile);
        const int32_t item =
            ground != NMMO3_BARREN ? nmmo3_next_resource(&plans[ground], env->tiers, &env->game.rng) : 0;
        nmmo3_codes(env, tile)[NMMO3_ITEM_TYPE] = (uint8_t)nmmo3_type_of(item);
        nmmo3_codes(env, tile)[NMMO3_ITEM_TIER] = (uint8_t)nmmo3_tier_of(item);
    }
}

/* Generates a new map without occupants. */
static inline void nmmo3_make_terrain(Nmmo3 *env) {
    const size_t area = (size_t)env->width * (size_t)env->height;
    memset(env->codes, 0, area * NMMO3_CODES);
    nmmo3_make_land(env);
    nmmo3_make_seasons(env);
    nmmo3_place_resources(env);
    memset(env->occupants, 0, area * sizeof(uint16_t));
    memset(env->clocks, 0, area);
    for (int32_t kind = NMMO3_PLAYER; kind <= NMMO3_ENEMY; kind++) {
        memset(env->bits[kind], 0, (size_t)env->pitch * (size_t)env->height);
    }
}

#endif
