/* Moba, combat: damage, death, experience, levels, towers, respawns. */
#ifndef MOBA_COMBAT_H
#define MOBA_COMBAT_H

#include "units.h"

enum { MOBA_MAX_LEVEL = 30, MOBA_XP_PARTS = 60 };
enum { MOBA_CREEP_XP = 60, MOBA_NEUTRAL_XP = 35, MOBA_HERO_XP = 100, MOBA_XP_REACH = 7 };
enum { MOBA_REGENERATION = 2, MOBA_BASE_DAMAGE = 50 }; /* of a hero: per tick; at level 0 */

/* Attributes of a hero at level 0, and gains per level. */
typedef struct {
    int16_t hp, mana, hp_gain, mana_gain, damage_gain;
} MobaClass;

static const MobaClass moba_classes[MOBA_ROLES] = {
    [MOBA_SUPPORT] = {500, 250, 100, 50, 10}, [MOBA_ASSASSIN] = {400, 300, 100, 65, 10},
    [MOBA_BURST] = {400, 300, 75, 90, 10},    [MOBA_TANK] = {700, 200, 150, 50, 15},
    [MOBA_CARRY] = {300, 250, 50, 50, 25},
};

/* Experience required for each level. The first row is level 1. */
static const int32_t moba_level_xp[MOBA_MAX_LEVEL] = {
    0,     240,   640,   1160,  1760,  2440,  3200,  4000,  4900,  5900,  7000,  8200,  9500,  10900, 12400,
    14000, 15700, 17500, 19400, 21400, 23600, 26000, 28600, 31400, 34400, 38400, 43400, 49400, 56400, 63900,
};

/* ---- Hp and levels -------------------------------------------------------------------------------- */

static inline void moba_set_max_hp(MobaUnit *unit, int32_t max_hp) {
    unit->max_hp = (int16_t)max_hp;
    unit->hp_scale = 255.0f / (float)max_hp;
}

static inline void moba_heal(MobaUnit *unit, int32_t amount) {
    const int32_t hp = unit->hp + amount;
    unit->hp = (int16_t)(hp < unit->max_hp ? hp : unit->max_hp);
}

/* Agents are radiant's heroes, then dire's if they are not scripted. */
static inline void moba_reward(Moba *env, int32_t id, float amount) {
    const int32_t agent = id - MOBA_FIRST_HERO;
    if (agent < env->agents) env->game.rewards[agent] += amount;
}

/* Sets the attributes of a hero's level. Lost hp and mana are not restored. */
static inline void moba_apply_level(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    const MobaClass *class = &moba_classes[unit->place];
    const int32_t max_hp = class->hp + class->hp_gain * hero->level;
    const int32_t max_mana = class->mana + class->mana_gain * hero->level;
    unit->hp = (int16_t)(unit->hp + max_hp - unit->max_hp);
    hero->mana = (int16_t)(hero->mana + max_mana - hero->max_mana);
    hero->max_mana = (int16_t)max_mana;
    hero->damage = (int16_t)(MOBA_BASE_DAMAGE + class->damage_gain * hero->level);
    moba_set_max_hp(unit, max_hp);
}

/* Gives a hero experience, up to the maximum level. */
static inline void moba_gain_xp(Moba *env, int32_t id, int32_t parts) {
    MobaHero *hero = moba_hero(env, id);
    const int32_t room = MOBA_XP_PARTS * moba_level_xp[MOBA_MAX_LEVEL - 1] - hero->xp;
    if (parts > room) parts = room;
    if (parts == 0) return;
    hero->xp += parts;
    hero->rewarded_xp = true;
    moba_reward(env, id, env->reward_xp * (float)parts / MOBA_XP_PARTS);
    while (hero->level < MOBA_MAX_LEVEL && hero->xp >= MOBA_XP_PARTS * moba_level_xp[hero->level]) {
        hero->level++;
        moba_apply_level(env, id);
    }
}

/* Divides the experience for a death equally among the side's heroes up to 7 columns plus rows from the dead
 * unit, and the killer at any distance. */
static inline void moba_share_xp(Moba *env, int32_t team, int32_t killer, const MobaUnit *dead,
                                 int32_t points) {
    int32_t ids[MOBA_ROLES], count = 0;
    for (int32_t role = 0; role < MOBA_ROLES; role++) {
        const int32_t id = moba_hero_id(team, role);
        const MobaUnit *hero = &env->units[id];
        const int32_t dx = hero->x - dead->x, dy = hero->y - dead->y;
        const int32_t away = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
        if (id == killer || away <= MOBA_XP_REACH) ids[count++] = id;
    }
    for (int32_t i = 0; i < count; i++) moba_gain_xp(env, ids[i], points * MOBA_XP_PARTS / count);
}

/* ---- Towers ---------------------------------------------------------------------------------------- */

static inline bool moba_tower_stands(const Moba *env, int32_t team, int32_t number) {
    return env->units[moba_tower_id(team, number)].hp > 0;
}

/* Towers fall in the order of tiers. Tiers 2 and 3 are shielded while the previous tower in their lane
 * exists, tier 4 while all of tier 3 exist, and the ancient while a tower of tier 4 exists. */
static inline bool moba_is_shielded(const Moba *env, int32_t team, int32_t number) {
    const int32_t tier = moba_tower_tier[number];
    if (tier == 1) return false;
    if (tier < 4) return moba_tower_stands(env, team, number - 3);
    const int32_t begin = tier == 4 ? 6 : 9, end = tier == 4 ? 9 : 11;
    bool all = true, any = false;
    for (int32_t i = begin; i < end; i++) {
        all &= moba_tower_stands(env, team, i);
        any |= moba_tower_stands(env, team, i);
    }
    return tier == 4 ? all : any;
}

static inline void moba_destroy_tower(Moba *env, int32_t killer, const MobaUnit *tower) {
    const int32_t team = tower->team;
    env->fallen[team]++;
    if (moba_is_hero(killer)) {
        moba_hero(env, killer)->rewarded_tower = true;
        moba_reward(env, killer, env->reward_tower);
    }
    if (tower->place == MOBA_ANCIENT) env->winner = 1 - team;
    for (int32_t i = 3; i < MOBA_SIDE_TOWERS; i++) {
        const MobaUnit *other = &env->units[moba_tower_id(team, i)];
        const uint32_t bit = moba_row(env->boards[MOBA_SHIELDED], other->x, other->y) & 1;
        if (bit == 0 || moba_is_shielded(env, team, i)) continue;
        moba_flip(env, MOBA_SHIELDED, other->x, other->y);
        moba_flip(env, team, other->x, other->y);
    }
}

/* ---- Death ------------------------------------------------------------------------------------------ */

/* Respawns at home immediately, with full hp and mana. Level, experience and cooldowns are kept. */
static inline void moba_respawn(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    const MobaCell site = moba_mirror(moba_hero_sites[hero->site], unit->team);
    MobaCell cell;
    unit->hp = unit->max_hp;
    unit->stun = unit->slow = 0;
    hero->mana = hero->max_mana;
    hero->haste = 0;
    if (moba_find_free(env, unit->team, site.x, site.y, &cell)) moba_move_hero(env, id, cell.x, cell.y);
}

static inline void moba_kill_hero(Moba *env, int32_t killer, int32_t id) {
    const MobaUnit dead = env->units[id];
    MobaHero *hero = moba_hero(env, id);
    const int32_t bounty = MOBA_HERO_XP + (int32_t)((int64_t)(hero->xp / MOBA_XP_PARTS) * 100 / 769);
    env->hero_kills[1 - dead.team]++;
    hero->rewarded_death = true;
    moba_reward(env, id, env->reward_death);
    moba_respawn(env, id);
    moba_share_xp(env, 1 - dead.team, killer, &dead, bounty);
}

MOBA_NOINLINE void moba_kill(Moba *env, int32_t killer, int32_t id) {
    MobaUnit *unit = &env->units[id];
    if (moba_is_hero(id)) {
        moba_kill_hero(env, killer, id);
        return;
    }
    unit->hp = 0;
    moba_remove_unit(env, id, unit->team);
    if (unit->kind == MOBA_TOWER) {
        moba_destroy_tower(env, killer, unit);
    } else if (unit->kind == MOBA_CREEP) {
        const int32_t number = (id - MOBA_FIRST_CREEP) % MOBA_LANE_CREEPS;
        env->creeps[unit->team][unit->place] &= ~((uint32_t)1 << number);
        moba_share_xp(env, 1 - unit->team, killer, unit, MOBA_CREEP_XP);
    } else if (moba_is_hero(killer)) {
        moba_share_xp(env, env->units[killer].team, killer, unit, MOBA_NEUTRAL_XP);
    }
}

/* Damages a unit. A neutral that is hit chases the hero, and its camp is activated. A hero is rewarded for
 * the fraction of a tower's hp that it removes. */
static inline void moba_hit(Moba *env, int32_t attacker, int32_t id, int32_t damage) {
    MobaUnit *unit = &env->units[id];
    if (moba_is_hero(id)) moba_hero(env, id)->was_hit = true;
    if (unit->kind == MOBA_TOWER && moba_is_hero(attacker)) {
        const int32_t taken = damage < unit->hp ? damage : unit->hp;
        moba_reward(env, attacker, env->reward_siege * (float)taken / (float)unit->max_hp);
    }
    if (unit->kind == MOBA_NEUTRAL_CREEP) {
        env->awake |= (uint32_t)1 << unit->place;
        unit->target = (uint8_t)attacker;
    }
    if (damage < unit->hp) {
        unit->hp = (int16_t)(unit->hp - damage);
    } else {
        moba_kill(env, attacker, id);
    }
}

/* Stuns a unit. The longer of two stuns counts, as for slows. */
static inline void moba_stun(Moba *env, int32_t id, int32_t ticks) {
    MobaUnit *unit = &env->units[id];
    if (unit->hp > 0 && unit->stun < ticks) unit->stun = (uint8_t)ticks;
}

static inline void moba_slow(Moba *env, int32_t id, int32_t ticks) {
    MobaUnit *unit = &env->units[id];
    if (unit->hp > 0 && unit->slow < ticks) unit->slow = (uint8_t)ticks;
}

#endif
