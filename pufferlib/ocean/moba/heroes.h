/* Moba, heroes: intents of agents and of the script, acting, and walking. */
#ifndef MOBA_HEROES_H
#define MOBA_HEROES_H

#include "ai.h"

enum { MOBA_HERO_ATTACK_TICKS = 8, MOBA_ACTIONS = 6 };

/* Intent of a hero for a tick. */
typedef struct {
    float x, y; /* velocity, at most 1 */
    bool only_heroes_and_towers;
    bool abilities[3];
} MobaIntent;

/* ---- Agents -------------------------------------------------------------------------------------------- */

/* Reads the intent from an agent's action, mirrored for dire. An invalid velocity is zero. */
static inline MobaIntent moba_read_action(const Moba *env, int32_t id) {
    const int32_t *action = (const int32_t *)env->game.actions + (id - MOBA_FIRST_HERO) * MOBA_ACTIONS;
    const uint32_t down = (uint32_t)action[0] < 7 ? (uint32_t)action[0] : 3;
    const uint32_t right = (uint32_t)action[1] < 7 ? (uint32_t)action[1] : 3;
    const bool mirrored = env->units[id].team == MOBA_DIRE;
    const float *velocity = moba_velocity[down][right];
    return (MobaIntent){
        .x = velocity[mirrored],
        .y = velocity[!mirrored],
        .only_heroes_and_towers = action[2] == 2,
        .abilities = {action[3] == 1, action[4] == 1, action[5] == 1},
    };
}

/* ---- The script ---------------------------------------------------------------------------------------- */

/* Intent of a scripted hero: follow its lane, and stand still while an enemy is in reach. */
static inline MobaIntent moba_script(const Moba *env, int32_t id) {
    static const uint8_t lanes[MOBA_ROLES] = {
        [MOBA_SUPPORT] = 2, [MOBA_ASSASSIN] = 0, [MOBA_BURST] = 1, [MOBA_TANK] = 0, [MOBA_CARRY] = 2};
    const MobaUnit *unit = &env->units[id];
    const MobaBoard enemies = moba_enemies(env, id);
    if (moba_nearest(env, enemies, enemies, unit->x, unit->y, MOBA_SIGHT, NULL) != 0) return (MobaIntent){0};
    const int32_t along = moba_lane_direction(unit->team, lanes[unit->place], unit->x, unit->y);
    const int32_t d = moba_free_direction(env, unit->team, unit->x, unit->y, along);
    if (d < 0) return (MobaIntent){0};
    const float *velocity = moba_velocity[3 + 3 * moba_dy[d]][3 + 3 * moba_dx[d]];
    return (MobaIntent){.x = velocity[0], .y = velocity[1]};
}

/* ---- Acting -------------------------------------------------------------------------------------------- */

static inline int32_t moba_hero_target(const Moba *env, int32_t id, bool only_heroes_and_towers) {
    const MobaUnit *unit = &env->units[id];
    const MobaBoard enemies = moba_enemies(env, id), wild = env->boards[MOBA_NEUTRAL];
    if (only_heroes_and_towers) {
        return moba_nearest(env, enemies, enemies, unit->x, unit->y, MOBA_SIGHT, moba_is_hero_or_tower);
    }
    return moba_nearest(env, enemies, wild, unit->x, unit->y, MOBA_SIGHT, NULL);
}

/* Casts the first of Q, W, E that is intended and possible, or else attacks. */
static inline void moba_act(Moba *env, int32_t id, const MobaIntent *intent) {
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    const bool wants = intent->abilities[0] || intent->abilities[1] || intent->abilities[2];
    if (!wants && unit->attack_timer > 0) return;
    const int32_t target = moba_hero_target(env, id, intent->only_heroes_and_towers);
    for (int32_t i = 0; i < 3; i++) {
        if (intent->abilities[i] && moba_cast(env, id, i, target)) return;
    }
    if (target == 0 || unit->attack_timer > 0) return;
    unit->attack_timer = MOBA_HERO_ATTACK_TICKS;
    hero->attacked = (uint8_t)target;
    moba_hit(env, id, target, hero->damage);
}

/* Cells per tick. */
static inline float moba_speed(const Moba *env, int32_t id) {
    const float haste = env->heroes[id - MOBA_FIRST_HERO].haste > 0 ? 2 : 1;
    return env->agent_speed * haste * (env->units[id].slow > 0 ? 0.5f : 1);
}

/* Moves to a position at most a cell away, if its cell is free. */
MOBA_NOINLINE bool moba_try_step(Moba *env, int32_t id, float x, float y) {
    const MobaUnit *unit = &env->units[id];
    const int32_t u = (int32_t)x, v = (int32_t)y;
    if (u != unit->x || v != unit->y) {
        if (!moba_is_free(env, u, v)) return false;
        moba_move(env, id, u, v);
    }
    moba_hero(env, id)->x = x;
    moba_hero(env, id)->y = y;
    return true;
}

/* Walks in steps of at most a cell. If blocked, walks along the obstacle: first to the side, dire first down
 * or up. */
static inline void moba_walk_hero(Moba *env, int32_t id, float x, float y) {
    if (x == 0 && y == 0) return;
    MobaHero *hero = moba_hero(env, id);
    const float across = env->units[id].team == MOBA_RADIANT ? 1 : 0, down = 1 - across;
    for (float left = moba_speed(env, id); left > 0; left -= 1) {
        const float step = puffer_min(left, 1), dx = step * x, dy = step * y;
        if (moba_try_step(env, id, hero->x + dx, hero->y + dy)) continue;
        if (moba_try_step(env, id, hero->x + across * dx, hero->y + down * dy)) continue;
        if (!moba_try_step(env, id, hero->x + down * dx, hero->y + across * dy)) return;
    }
}

static inline void moba_update_hero(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    const int32_t mana = hero->mana + MOBA_REGENERATION;
    moba_heal(unit, MOBA_REGENERATION);
    hero->mana = (int16_t)(mana < hero->max_mana ? mana : hero->max_mana);
    for (int32_t i = 0; i < 3; i++) hero->cooldown[i] -= hero->cooldown[i] > 0;
    unit->attack_timer -= unit->attack_timer > 0;
    hero->cast_age += hero->cast_age < UINT8_MAX;
    hero->attacked = 0;
}

static inline void moba_step_hero(Moba *env, int32_t id) {
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    moba_update_hero(env, id);
    if (unit->stun > 0) {
        unit->stun--;
    } else {
        const MobaIntent intent =
            env->scripted[unit->team] ? moba_script(env, id) : moba_read_action(env, id);
        moba_act(env, id, &intent);
        moba_walk_hero(env, id, intent.x, intent.y);
    }
    unit->slow -= unit->slow > 0;
    hero->haste -= hero->haste > 0;
}

#endif
