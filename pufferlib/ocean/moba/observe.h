/* Moba, observations. Heroes of dire see the mirrored map, so every agent's own base is in the lower left
 * corner. */
#ifndef MOBA_OBSERVE_H
#define MOBA_OBSERVE_H

#include "heroes.h"

enum { MOBA_PICTURE_WIDTH = 976, MOBA_PICTURE_HEIGHT = 768 }; /* px */
enum { MOBA_SELF = 26, MOBA_OBSERVATION = MOBA_VIEW * MOBA_VIEW * MOBA_LAYERS + MOBA_SELF };

static inline uint8_t moba_byte(int32_t value) {
    return (uint8_t)(value < 255 ? value : 255);
}

/* Writes the code, hp, mana (for a tower: 255 if shielded) and level of a unit. */
static inline void moba_show_unit(const Moba *env, int32_t id, int32_t viewer, uint8_t *cell) {
    const MobaUnit *unit = &env->units[id];
    cell[0] = unit->codes[viewer];
    cell[1] = (uint8_t)((float)unit->hp * unit->hp_scale);
    if (moba_is_hero(id)) {
        const MobaHero *hero = &env->heroes[id - MOBA_FIRST_HERO];
        cell[2] = (uint8_t)(255 * hero->mana / hero->max_mana);
        cell[3] = (uint8_t)(8 * hero->level);
    } else if (unit->kind == MOBA_TOWER) {
        cell[2] = moba_row(env->boards[MOBA_SHIELDED], unit->x, unit->y) & 1 ? 255 : 0;
        cell[3] = (uint8_t)(8 * moba_tower_tier[unit->place]);
    }
}

/* Writes the cells around a hero: the empty map, and then the units. */
static inline void moba_observe_cells(const Moba *env, const MobaUnit *hero, uint8_t *cells) {
    const int32_t viewer = hero->team, x = hero->x, y = hero->y, row = MOBA_VIEW * MOBA_LAYERS;
    const int32_t left = (viewer == MOBA_RADIANT ? x : y) - MOBA_SIGHT + MOBA_PAD;
    const int32_t top = (viewer == MOBA_RADIANT ? y : x) - MOBA_SIGHT + MOBA_PAD;
    for (int32_t i = 0; i < MOBA_VIEW; i++) memcpy(cells + i * row, moba_view[top + i][left], (size_t)row);
    const int32_t across = viewer == MOBA_RADIANT ? MOBA_LAYERS : row;
    const int32_t down = viewer == MOBA_RADIANT ? row : MOBA_LAYERS;
    for (int32_t i = 0; i < MOBA_VIEW; i++) {
        const int32_t v = y - MOBA_SIGHT + i, u = x - MOBA_SIGHT;
        uint32_t bits = 0;
        for (int32_t board = 0; board < MOBA_BOARDS; board++) bits |= moba_row(env->boards[board], u, v);
        for (bits &= (1u << MOBA_VIEW) - 1; bits != 0; bits &= bits - 1) {
            const int32_t j = __builtin_ctz(bits);
            moba_show_unit(env, env->grid[moba_cell(u + j, v)], viewer, cells + i * down + j * across);
        }
    }
}

static inline void moba_observe_self(const Moba *env, int32_t id, uint8_t *self) {
    const MobaUnit *unit = &env->units[id];
    const MobaHero *hero = &env->heroes[id - MOBA_FIRST_HERO];
    const bool mirrored = unit->team == MOBA_DIRE;
    self[0] = (uint8_t)(2 * (mirrored ? hero->y : hero->x));
    self[1] = (uint8_t)(2 * (mirrored ? hero->x : hero->y));
    self[2] = (uint8_t)(8 * hero->level);
    self[3] = (uint8_t)((float)unit->hp * unit->hp_scale);
    self[4] = (uint8_t)(255 * hero->mana / hero->max_mana);
    self[5] = (uint8_t)(hero->damage / 4);
    self[6] = moba_byte((int32_t)(64 * moba_speed(env, id)));
    self[7] = unit->slow > 0 ? 127 : 255;
    self[8] = moba_byte(4 * unit->stun);
    self[9] = moba_byte(4 * unit->slow);
    for (int32_t i = 0; i < 3; i++) self[10 + i] = (uint8_t)(2 * hero->cooldown[i]);
    self[13] = (uint8_t)(16 * unit->attack_timer);
    self[14] = 16 * MOBA_HERO_ATTACK_TICKS;
    self[15] = hero->was_hit ? 255 : 0;
    self[16] = mirrored ? 255 : 0;
    memset(self + 17, 0, MOBA_ROLES);
    self[17 + unit->place] = 255;
    self[22] = hero->rewarded_death ? 255 : 0;
    self[23] = hero->rewarded_xp ? 255 : 0;
    self[24] = hero->rewarded_distance ? 255 : 0;
    self[25] = hero->rewarded_tower ? 255 : 0;
}

static inline void moba_observe(Moba *env) {
    uint8_t *row = env->game.observations;
    for (int32_t i = 0; i < env->agents; i++, row += MOBA_OBSERVATION) {
        const int32_t id = MOBA_FIRST_HERO + i;
        moba_observe_cells(env, &env->units[id], row);
        moba_observe_self(env, id, row + MOBA_OBSERVATION - MOBA_SELF);
    }
}

#endif
