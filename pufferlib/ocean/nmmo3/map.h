/* Neural MMO 3: memory of the map, and its occupants. */
#ifndef NMMO3_MAP_H
#define NMMO3_MAP_H

#include "types.h"

/* ---- Memory behind the struct ------------------------------------------------------------------- */

/* Returns `count`, or one for every `tiles` tiles if it is -1. */
static inline int32_t nmmo3_count(const Nmmo3 *env, int32_t count, int32_t tiles) {
    return count >= 0 ? count : env->width * env->height / tiles;
}

static inline int32_t nmmo3_enemies(const Nmmo3 *env) {
    return nmmo3_count(env, env->num_enemies, 128);
}

/* Number of ores, and of herbs. */
static inline int32_t nmmo3_resources(const Nmmo3 *env) {
    return nmmo3_count(env, env->num_resources, 128);
}

/* Number of hilts, and of logs. */
static inline int32_t nmmo3_weapons(const Nmmo3 *env) {
    return nmmo3_count(env, env->num_weapons, 256);
}

/* Number of gems of each element. */
static inline int32_t nmmo3_gems(const Nmmo3 *env) {
    return nmmo3_count(env, env->num_gems, 512);
}

/* Capacities of the queues: every tile with a resource has at most one event, and an enemy, which is absent
 * for enemy_respawn_ticks, drops one tool each time. */
static inline int32_t nmmo3_growth_capacity(const Nmmo3 *env) {
    return 2 * nmmo3_resources(env) + 2 * nmmo3_weapons(env) + 4 * nmmo3_gems(env);
}

static inline int32_t nmmo3_drops_capacity(const Nmmo3 *env) {
    return nmmo3_enemies(env) * (NMMO3_DROP_TICKS / env->enemy_respawn_ticks + 1);
}

/* Takes `bytes` from the memory at `*offset`. Every part starts at a multiple of 8. */
static inline void *nmmo3_part(Nmmo3 *env, size_t *offset, size_t bytes) {
    void *part = (char *)env + *offset;
    *offset += (bytes + 7) / 8 * 8;
    return part;
}

/* Sets the pointers into the memory behind the struct. Returns its end. */
static inline size_t nmmo3_lay_out(Nmmo3 *env) {
    const size_t area = (size_t)env->width * (size_t)env->height;
    size_t end = (sizeof *env + 7) / 8 * 8;
    env->pitch = env->width / 8 + 4; /* four bytes are read at once */
    env->enemy_count = nmmo3_enemies(env);
    env->growth.capacity = nmmo3_growth_capacity(env);
    env->drops.capacity = nmmo3_drops_capacity(env);
    env->players = nmmo3_part(env, &end, (size_t)env->num_players * sizeof(Nmmo3Player));
    env->enemies = nmmo3_part(env, &end, (size_t)env->enemy_count * sizeof(Nmmo3Enemy));
    env->growth.events = nmmo3_part(env, &end, (size_t)env->growth.capacity * sizeof(Nmmo3Event));
    env->drops.events = nmmo3_part(env, &end, (size_t)env->drops.capacity * sizeof(Nmmo3Event));
    env->occupants = nmmo3_part(env, &end, area * sizeof(uint16_t));
    env->codes = nmmo3_part(env, &end, area * NMMO3_CODES);
    env->clocks = nmmo3_part(env, &end, area);
    for (int32_t kind = NMMO3_PLAYER; kind <= NMMO3_ENEMY; kind++) {
        env->bits[kind] = nmmo3_part(env, &end, (size_t)env->pitch * (size_t)env->height);
    }
    return end;
}

static inline size_t nmmo3_bytes(const void *game) {
    Nmmo3 copy = *(const Nmmo3 *)game;
    return nmmo3_lay_out(&copy);
}

/* ---- Occupants ------------------------------------------------------------------------------------- */

/* Returns the bits of up to 25 tiles in a row, from (x, y) to the right, the first in the lowest bit. */
static inline uint32_t nmmo3_bits(const Nmmo3 *env, int32_t kind, int32_t x, int32_t y, int32_t count) {
    const uint8_t *at = env->bits[kind] + y * env->pitch + (x >> 3);
    const uint32_t word =
        (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return word >> (x & 7) & ((1u << count) - 1);
}

static inline void nmmo3_flip_bit(const Nmmo3 *env, const Nmmo3Body *body) {
    env->bits[body->kind][body->y * env->pitch + (body->x >> 3)] ^= (uint8_t)(1u << (body->x & 7));
}

static inline bool nmmo3_is_walkable(const Nmmo3 *env, int32_t tile) {
    return nmmo3_codes(env, tile)[NMMO3_TERRAIN] <= NMMO3_DIRT;
}

static inline bool nmmo3_is_open(const Nmmo3 *env, int32_t tile) {
    return env->occupants[tile] == 0 && nmmo3_is_walkable(env, tile);
}

static inline Nmmo3Body *nmmo3_body(const Nmmo3 *env, int32_t occupant) {
    return occupant <= env->num_players ? &env->players[occupant - 1].body
                                        : &env->enemies[occupant - 1 - env->num_players].body;
}

/* Places a body that is not on the map on an open tile. nmmo3_write_body makes it visible. */
static inline void nmmo3_place_body(Nmmo3 *env, Nmmo3Body *body, int32_t occupant, int32_t x, int32_t y) {
    body->x = (uint16_t)x;
    body->y = (uint16_t)y;
    body->shown[0] = NMMO3_NOBODY;
    env->occupants[nmmo3_tile(env, x, y)] = (uint16_t)occupant;
    nmmo3_flip_bit(env, body);
}

/* Removes a body and its codes from the map. Returns its occupant number. */
static inline int32_t nmmo3_remove_body(Nmmo3 *env, const Nmmo3Body *body) {
    const int32_t tile = nmmo3_tile(env, body->x, body->y);
    const int32_t occupant = env->occupants[tile];
    env->occupants[tile] = 0;
    nmmo3_flip_bit(env, body);
    memset(nmmo3_codes(env, tile) + NMMO3_KIND, 0, NMMO3_BODY_CODES);
    return occupant;
}

static inline void nmmo3_move_to(Nmmo3 *env, Nmmo3Body *body, int32_t x, int32_t y) {
    const int32_t occupant = nmmo3_remove_body(env, body);
    nmmo3_place_body(env, body, occupant, x, y);
}

/* Writes the codes of a body to its tile, if they have changed. */
static inline void nmmo3_write_body(Nmmo3 *env, Nmmo3Body *body) {
    const uint8_t codes[NMMO3_BODY_CODES] = {
        body->kind, body->element, body->combat, body->hp / 20, body->animation, body->facing,
    };
    if (memcmp(codes, body->shown, sizeof codes) == 0) return;
    memcpy(body->shown, codes, sizeof codes);
    memcpy(nmmo3_codes(env, nmmo3_tile(env, body->x, body->y)) + NMMO3_KIND, codes, sizeof codes);
}

/* Returns a random tile of open grass. nmmo3_spec and nmmo3_make_terrain ensure that at least every eighth
 * tile of the inner map is one. If random tries fail, returns the next one in order. */
static inline int32_t nmmo3_open_grass(Nmmo3 *env) {
    const int32_t inner_width = env->width - 2 * NMMO3_BORDER_X,
                  inner_height = env->height - 2 * NMMO3_BORDER_Y;
    int32_t tile = 0;
    for (int32_t tries = 0; tries < 256; tries++) {
        const int32_t x = NMMO3_BORDER_X + puffer_random_below(&env->game.rng, inner_width);
        const int32_t y = NMMO3_BORDER_Y + puffer_random_below(&env->game.rng, inner_height);
        tile = nmmo3_tile(env, x, y);
        if (env->occupants[tile] == 0 && nmmo3_codes(env, tile)[NMMO3_TERRAIN] == NMMO3_GRASS) return tile;
    }
    const int32_t area = env->width * env->height;
    do {
        tile = tile + 1 < area ? tile + 1 : 0;
    } while (env->occupants[tile] != 0 || nmmo3_codes(env, tile)[NMMO3_TERRAIN] != NMMO3_GRASS);
    return tile;
}

/* Returns a random tile of open grass out of view of all enemies, if a limited number of tries finds one. */
static inline int32_t nmmo3_safe_grass(Nmmo3 *env) {
    enum { TRIES = 32, FAR = NMMO3_REACH + 1 };
    int32_t tile = 0;
    for (int32_t tries = 0; tries < TRIES; tries++) {
        tile = nmmo3_open_grass(env);
        const int32_t left = tile % env->width - FAR, top = tile / env->width - FAR;
        uint32_t enemies = 0;
        for (int32_t row = 0; row <= 2 * FAR; row++) {
            enemies |= nmmo3_bits(env, NMMO3_ENEMY, left, top + row, 2 * FAR + 1);
        }
        if (enemies == 0) return tile;
    }
    return tile;
}

#endif
