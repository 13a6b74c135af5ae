/* Moba, scripted units: creeps, towers and neutrals. */
#ifndef MOBA_AI_H
#define MOBA_AI_H

#include "abilities.h"

enum { MOBA_WAVE_TICKS = 150, MOBA_CAMP_TICKS = 600 };
enum { MOBA_CREEP_HP = 450, MOBA_NEUTRAL_HP = 500, MOBA_MINION_DAMAGE = 22, MOBA_MINION_ATTACK_TICKS = 5 };
enum { MOBA_MINION_REACH = 2, MOBA_CREEP_SIGHT = 7, MOBA_NEUTRAL_SIGHT = 3, MOBA_LEASH = 7 };
enum { MOBA_TOWER_REACH = 5, MOBA_TOWER_ATTACK_TICKS = 5, MOBA_BLOCKED_TICKS = 8 };

/* By tier. */
static const int16_t moba_tower_hp[6] = {0, 1800, 2000, 2000, 2100, 4500};
static const int16_t moba_tower_damage[6] = {0, 110, 175, 175, 175, 0};

/* ---- Creeps and neutrals ------------------------------------------------------------------------------ */

/* Counts down timers by one tick. Returns false if the unit is stunned. */
static inline bool moba_update_minion(MobaUnit *unit) {
    if (unit->attack_timer > 0) unit->attack_timer--;
    if (unit->slow > 0) unit->slow--;
    if (unit->stun == 0) return true;
    unit->stun--;
    return false;
}

/* Returns true unless the unit is slowed and cannot move in this tick. */
static inline bool moba_minion_can_walk(const MobaUnit *unit) {
    return (unit->slow & 1) == 0;
}

static inline void moba_minion_attack(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    if (unit->attack_timer > 0) return;
    unit->attack_timer = MOBA_MINION_ATTACK_TICKS;
    moba_hit(env, id, unit->target, MOBA_MINION_DAMAGE);
}

/* ---- Creeps -------------------------------------------------------------------------------------------- */

/* Walks in `direction` or beside it. Returns false if every direction is blocked. */
MOBA_NOINLINE bool moba_walk_creep(Moba *env, int32_t id, int32_t direction) {
    const MobaUnit *unit = &env->units[id];
    if (!moba_minion_can_walk(unit)) return true;
    const int32_t d = moba_free_direction(env, unit->team, unit->x, unit->y, direction);
    if (d < 0) return false;
    moba_move(env, id, unit->x + moba_dx[d], unit->y + moba_dy[d]);
    return true;
}

/* Keeps the target until it is dead or out of view, then chooses the nearest enemy. */
static inline void moba_choose_creep_target(const Moba *env, MobaUnit *unit) {
    if (unit->target != 0) {
        const MobaUnit *target = &env->units[unit->target];
        if (target->hp > 0 && moba_distance(unit, target) <= MOBA_CREEP_SIGHT) return;
    }
    const MobaBoard enemies = env->boards[1 - unit->team];
    const int32_t reach = unit->blocked_timer > 0 ? MOBA_MINION_REACH : MOBA_CREEP_SIGHT;
    if (unit->blocked_timer > 0) unit->blocked_timer--;
    unit->target = (uint8_t)moba_nearest(env, enemies, enemies, unit->x, unit->y, reach, NULL);
}

static inline void moba_step_creep(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    if (!moba_update_minion(unit)) return;
    moba_choose_creep_target(env, unit);
    if (unit->target != 0) {
        const MobaUnit *target = &env->units[unit->target];
        if (moba_distance(unit, target) <= MOBA_MINION_REACH) {
            moba_minion_attack(env, id);
            return;
        }
        const int32_t towards = moba_direction(target->x - unit->x, target->y - unit->y);
        if (moba_walk_creep(env, id, towards)) return;
        unit->target = 0; /* behind trees or other units */
        unit->blocked_timer = MOBA_BLOCKED_TICKS;
    }
    moba_walk_creep(env, id, moba_lane_direction(unit->team, unit->place, unit->x, unit->y));
}

static inline void moba_step_creeps(Moba *env) {
    for (int32_t lane = 0; lane < MOBA_LANES; lane++) {
        for (int32_t turn = 0; turn < 2; turn++) {
            const int32_t team = env->first ^ turn, first = moba_creep_id(team, lane, 0);
            for (uint32_t left = env->creeps[team][lane]; left != 0; left &= left - 1) {
                moba_step_creep(env, first + __builtin_ctz(left));
            }
        }
    }
}

static inline void moba_spawn_minion(Moba *env, int32_t id, MobaKind kind, int32_t team, int32_t place,
                                     MobaCell cell) {
    MobaUnit *unit = &env->units[id];
    *unit = (MobaUnit){.kind = (uint8_t)kind, .team = (uint8_t)team, .place = (uint8_t)place};
    moba_set_max_hp(unit, kind == MOBA_CREEP ? MOBA_CREEP_HP : MOBA_NEUTRAL_HP);
    unit->hp = unit->max_hp;
    unit->codes[0] = moba_code(kind, team, 0, MOBA_RADIANT);
    unit->codes[1] = moba_code(kind, team, 0, MOBA_DIRE);
    moba_place_unit(env, id, team, cell.x, cell.y);
}

/* Spawns five creeps in each lane of each side, as far as there is room. */
static inline void moba_spawn_wave(Moba *env) {
    for (int32_t i = 0; i < 2 * MOBA_LANES * MOBA_WAVE; i++) {
        const int32_t team = (i & 1) ^ env->first, lane = i / 2 % MOBA_LANES;
        const uint32_t dead = ~env->creeps[team][lane] & ((1u << MOBA_LANE_CREEPS) - 1);
        const MobaCell site = moba_mirror(moba_wave_sites[lane], team);
        MobaCell cell;
        if (dead == 0 || !moba_find_free(env, team, site.x, site.y, &cell)) continue;
        const int32_t number = __builtin_ctz(dead);
        env->creeps[team][lane] |= (uint32_t)1 << number;
        moba_spawn_minion(env, moba_creep_id(team, lane, number), MOBA_CREEP, team, lane, cell);
    }
}

/* ---- Towers -------------------------------------------------------------------------------------------- */

/* Every 5 ticks, each tower attacks the nearest enemy. */
static inline void moba_step_towers(Moba *env) {
    if (env->tick % MOBA_TOWER_ATTACK_TICKS != 0) return;
    for (int32_t i = 0; i < MOBA_TOWERS; i++) {
        const int32_t team = (i & 1) ^ env->first, id = moba_tower_id(team, i / 2);
        MobaUnit *tower = &env->units[id];
        const int32_t damage = moba_tower_damage[moba_tower_tier[tower->place]];
        if (tower->hp == 0 || damage == 0) continue;
        const MobaBoard enemies = env->boards[1 - team];
        tower->target =
            (uint8_t)moba_nearest(env, enemies, enemies, tower->x, tower->y, MOBA_TOWER_REACH, NULL);
        if (tower->target != 0) moba_hit(env, id, tower->target, damage);
    }
}

/* ---- Neutrals ------------------------------------------------------------------------------------------ */

static inline int32_t moba_camp_distance(const MobaUnit *unit, int32_t camp) {
    const MobaCell site = moba_camp_site(camp);
    return moba_distance(unit, &(MobaUnit){.x = site.x, .y = site.y});
}

/* Keeps the hero that hit it while that hero is within 7 of the middle of the camp, else chooses the nearest
 * within 3. */
static inline void moba_choose_neutral_target(const Moba *env, MobaUnit *unit) {
    if (unit->target != 0 && moba_camp_distance(&env->units[unit->target], unit->place) <= MOBA_LEASH) return;
    int32_t best = MOBA_NEUTRAL_SIGHT + 1;
    unit->target = 0;
    for (int32_t i = 0; i < MOBA_HEROES; i++) {
        const int32_t id = moba_hero_id(env->first ^ (i & 1), i / 2);
        const int32_t away = moba_distance(unit, &env->units[id]);
        if (away >= best) continue;
        best = away;
        unit->target = (uint8_t)id;
    }
}

static inline MobaCell moba_neutral_home(int32_t id) {
    const int32_t number = (id - MOBA_FIRST_NEUTRAL) % MOBA_CAMP_SIZE;
    const MobaCell site = moba_camp_site((id - MOBA_FIRST_NEUTRAL) / MOBA_CAMP_SIZE);
    return (MobaCell){(uint8_t)(site.x + (number & 1 ? 1 : -1)), (uint8_t)(site.y + (number & 2 ? 1 : -1))};
}

/* Walks inside the clearing, which is round, so that a straight line connects any two cells. A unit that was dragged
 * out of it walks anywhere, so that it finds the way back. */
static inline void moba_walk_neutral(Moba *env, int32_t id, int32_t direction) {
    const MobaUnit *unit = &env->units[id];
    const int32_t d = moba_free_direction(env, MOBA_RADIANT, unit->x, unit->y, direction);
    if (d < 0 || !moba_minion_can_walk(unit)) return;
    const int32_t x = unit->x + moba_dx[d], y = unit->y + moba_dy[d];
    const uint8_t camp = (uint8_t)(1 + unit->place);
    if (moba_camp_at[y][x] == camp || moba_camp_at[unit->y][unit->x] != camp) moba_move(env, id, x, y);
}

/* Steps a neutral. Returns false once it is at home without a target. */
static inline bool moba_step_neutral(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    if (!moba_update_minion(unit)) return true;
    moba_choose_neutral_target(env, unit);
    const MobaCell home = moba_neutral_home(id);
    const MobaUnit *target = &env->units[unit->target];
    if (unit->target != 0 && moba_distance(unit, target) <= MOBA_MINION_REACH) {
        moba_minion_attack(env, id);
    } else if (unit->target != 0) {
        moba_walk_neutral(env, id, moba_direction(target->x - unit->x, target->y - unit->y));
    } else if (unit->x != home.x || unit->y != home.y) {
        moba_walk_neutral(env, id, moba_direction(home.x - unit->x, home.y - unit->y));
    } else {
        return unit->attack_timer > 0 || unit->slow > 0;
    }
    return true;
}

/* Steps the camps that a hero has activated by entering the clearing or by a hit. */
static inline void moba_step_camps(Moba *env) {
    for (int32_t i = 0; i < MOBA_HEROES; i++) {
        const MobaUnit *hero = &env->units[MOBA_FIRST_HERO + i];
        const int32_t camp = moba_camp_at[hero->y][hero->x];
        if (camp > 0) env->awake |= (uint32_t)1 << (camp - 1);
    }
    for (uint32_t left = env->awake; left != 0; left &= left - 1) {
        const int32_t camp = __builtin_ctz(left);
        bool busy = false;
        for (int32_t number = 0; number < MOBA_CAMP_SIZE; number++) {
            const int32_t id = moba_neutral_id(camp, number);
            if (env->units[id].hp > 0) busy |= moba_step_neutral(env, id);
        }
        if (!busy) env->awake &= ~((uint32_t)1 << camp);
    }
}

static inline void moba_respawn_camps(Moba *env) {
    for (int32_t id = MOBA_FIRST_NEUTRAL; id < MOBA_FIRST_CREEP; id++) {
        const MobaCell home = moba_neutral_home(id);
        const int32_t camp = (id - MOBA_FIRST_NEUTRAL) / MOBA_CAMP_SIZE;
        MobaCell cell;
        if (env->units[id].hp > 0 || !moba_find_free(env, MOBA_RADIANT, home.x, home.y, &cell)) continue;
        moba_spawn_minion(env, id, MOBA_NEUTRAL_CREEP, MOBA_NEUTRAL, camp, cell);
    }
}

#endif
