/* Neural MMO 3: observations. */
#ifndef NMMO3_OBSERVE_H
#define NMMO3_OBSERVE_H

#include "items.h"

/* Makes the combat levels in a view relative to the viewer's: half of the difference, from 0 to 4. Only tiles
 * with an occupant have a level. */
static inline void nmmo3_compare_levels(const Nmmo3 *env, const Nmmo3Body *body, uint8_t *view) {
    const int32_t left = body->x - NMMO3_COLUMNS / 2, top = body->y - NMMO3_ROWS / 2;
    for (int32_t row = 0; row < NMMO3_ROWS; row++) {
        uint32_t bits = nmmo3_bits(env, NMMO3_PLAYER, left, top + row, NMMO3_COLUMNS) |
                        nmmo3_bits(env, NMMO3_ENEMY, left, top + row, NMMO3_COLUMNS);
        for (; bits != 0; bits &= bits - 1) {
            uint8_t *level = view + (row * NMMO3_COLUMNS + __builtin_ctz(bits)) * NMMO3_CODES + NMMO3_LEVEL;
            const int32_t above = nmmo3_greater(0, *level - body->combat) / 2;
            *level = (uint8_t)nmmo3_lesser(4, above);
        }
    }
}

static inline void nmmo3_observe_map(const Nmmo3 *env, const Nmmo3Body *body, uint8_t *view) {
    enum { BYTES = NMMO3_COLUMNS * NMMO3_CODES };
    const int32_t corner = nmmo3_tile(env, body->x - NMMO3_COLUMNS / 2, body->y - NMMO3_ROWS / 2);
    const uint8_t *codes = nmmo3_codes(env, corner);
    const size_t pitch = (size_t)env->width * NMMO3_CODES;
    for (int32_t row = 0; row < NMMO3_ROWS; row++)
        memcpy(view + row * BYTES, codes + (size_t)row * pitch, BYTES);
    nmmo3_compare_levels(env, body, view);
}

/* The maximum profession level that the held tool allows. */
static inline int32_t nmmo3_profession_limit(const Nmmo3 *env, const Nmmo3Player *player) {
    const int32_t held = player->worn[NMMO3_HAND];
    if (nmmo3_type_of(held) != NMMO3_TOOL) return 0;
    return nmmo3_lesser(env->levels, nmmo3_level_of_tier(nmmo3_tier_of(held)));
}

static inline void nmmo3_observe_self(const Nmmo3 *env, const Nmmo3Player *player, uint8_t *row) {
    const Nmmo3Body *body = &player->body;
    const uint8_t first[13] = {
        body->kind,        body->combat, body->element,      body->facing, body->animation,
        body->hp,          NMMO3_MAX_HP, player->profession, player->mode, player->market_tier,
        player->sell_slot, player->gold, body->in_combat,
    };
    const uint8_t last[5] = {
        (uint8_t)((float)player->stale * env->stale_scale),
        nmmo3_type_of(player->worn[NMMO3_HAND]) == NMMO3_BOW,
        (uint8_t)nmmo3_profession_limit(env, player),
        (uint8_t)(body->attack / 2),
        (uint8_t)(body->defence / 2),
    };
    memcpy(row, first, sizeof first);
    row += sizeof first;
    memcpy(row, player->worn, NMMO3_PLACES + 2 * NMMO3_SLOTS);
    row += NMMO3_PLACES + 2 * NMMO3_SLOTS;
    memcpy(row, last, sizeof last);
    memcpy(row + sizeof last, player->flags, NMMO3_FLAGS);
}

static inline void nmmo3_observe(Nmmo3 *env, int32_t agent) {
    const Nmmo3Player *player = &env->players[agent];
    uint8_t *row =
        (uint8_t *)env->game.observations + (size_t)agent * (NMMO3_VIEW + NMMO3_SELF + NMMO3_FLAGS);
    nmmo3_observe_map(env, &player->body, row);
    nmmo3_observe_self(env, player, row + NMMO3_VIEW);
}

#endif
