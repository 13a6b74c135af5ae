/* Moba, abilities: three for each of the five heroes. L is the hero's level.
 *
 * Distances are in squares: within r means within r columns and r rows. An aimed ability needs a target.
 * Without a target, without enough mana or during its cooldown, it cannot be cast and costs nothing. */
#ifndef MOBA_ABILITIES_H
#define MOBA_ABILITIES_H

#include "combat.h"

/* Targets that an ability accepts. */
typedef enum { MOBA_ON_SELF, MOBA_ON_ANY, MOBA_ON_MOVABLE } MobaAim;

typedef struct {
    int16_t mana;
    uint8_t cooldown; /* ticks until it can be cast again */
    uint8_t aim;
    void (*cast)(Moba *env, int32_t id, int32_t target, int32_t level);
} MobaAbility;

static inline MobaBoard moba_enemies(const Moba *env, int32_t id) {
    return env->boards[1 - env->units[id].team];
}

/* Damages all hostile units around (x, y) that `wanted` accepts. */
MOBA_NOINLINE void moba_blast(Moba *env, int32_t id, int32_t x, int32_t y, int32_t reach, int32_t damage,
                              bool (*wanted)(const MobaUnit *unit)) {
    uint8_t ids[MOBA_MAX_NEAR];
    const int32_t count =
        moba_collect(env, moba_enemies(env, id), env->boards[MOBA_NEUTRAL], x, y, reach, ids);
    for (int32_t i = 0; i < count; i++) {
        if (wanted == NULL || wanted(&env->units[ids[i]])) moba_hit(env, id, ids[i], damage);
    }
}

static inline bool moba_is_minion(const MobaUnit *unit) {
    return unit->kind == MOBA_CREEP || unit->kind == MOBA_NEUTRAL_CREEP;
}

/* Jumps to the free cell beside the target that is nearest to the hero. */
MOBA_NOINLINE void moba_jump_to(Moba *env, int32_t id, int32_t target) {
    const MobaUnit *hero = &env->units[id], *other = &env->units[target];
    int32_t best = INT32_MAX, best_x = 0, best_y = 0;
    for (int32_t d = 0; d < 8; d++) {
        const int32_t x = other->x + moba_dx[d], y = other->y + moba_dy[d];
        const int32_t dx = x - hero->x, dy = y - hero->y, away = dx * dx + dy * dy;
        if (away >= best || !(moba_is_free(env, x, y) || away == 0)) continue;
        best = away;
        best_x = x;
        best_y = y;
    }
    if (best > 0 && best < INT32_MAX) moba_move_hero(env, id, best_x, best_y);
}

/* ---- Support ------------------------------------------------------------------------------------------- */

/* Hook: pulls the target by 1.5 + 0.1 L cells. */
static void moba_hook(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_drag(env, target, env->units[id].x, env->units[id].y, (15 + level) / 10);
}

/* Aura: heroes and creeps of the own side within 5 gain 350 + 50 L hp. */
static void moba_aura(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)target;
    uint8_t ids[MOBA_MAX_NEAR];
    const MobaUnit *hero = &env->units[id];
    const MobaBoard own = env->boards[hero->team];
    const int32_t count = moba_collect(env, own, own, hero->x, hero->y, MOBA_SIGHT, ids);
    for (int32_t i = 0; i < count; i++) {
        MobaUnit *unit = &env->units[ids[i]];
        if (unit->kind != MOBA_TOWER) moba_heal(unit, 350 + 50 * level);
    }
}

/* Shackle: 50 + 20 L damage, and a stun of 15 + L / 2 ticks. */
static void moba_shackle(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_stun(env, target, 15 + level / 2);
    moba_hit(env, id, target, 50 + 20 * level);
}

/* ---- Assassin ------------------------------------------------------------------------------------------ */

/* Reap: 100 + 20 L damage to creeps and neutrals within 3. */
static void moba_reap(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)target;
    moba_blast(env, id, env->units[id].x, env->units[id].y, 3, 100 + 20 * level, moba_is_minion);
}

/* Ambush: jumps beside the target, and 250 + 50 L damage. */
static void moba_ambush(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_jump_to(env, id, target);
    moba_hit(env, id, target, 250 + 50 * level);
}

/* Sprint: double speed for 25 ticks. */
static void moba_sprint(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)target, (void)level;
    moba_hero(env, id)->haste = 25;
}

/* ---- Burst --------------------------------------------------------------------------------------------- */

/* Nuke: 250 + 40 L damage. */
static void moba_nuke(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_hit(env, id, target, 250 + 40 * level);
}

/* Storm: 100 + 40 L damage within 2 of the target. */
static void moba_storm(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_blast(env, id, env->units[target].x, env->units[target].y, 2, 100 + 40 * level, NULL);
}

/* Freeze: a stun of 10 + L / 2 ticks within 2 of the target, without effect on towers. */
static void moba_freeze(Moba *env, int32_t id, int32_t target, int32_t level) {
    uint8_t ids[MOBA_MAX_NEAR];
    const int32_t x = env->units[target].x, y = env->units[target].y;
    const int32_t count = moba_collect(env, moba_enemies(env, id), env->boards[MOBA_NEUTRAL], x, y, 2, ids);
    for (int32_t i = 0; i < count; i++) moba_stun(env, ids[i], 10 + level / 2);
}

/* ---- Tank ---------------------------------------------------------------------------------------------- */

/* Whirl: 25 + 2 L damage within 2. It has no cooldown. */
static void moba_whirl(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)target;
    moba_blast(env, id, env->units[id].x, env->units[id].y, 2, 25 + 2 * level, NULL);
}

/* Mend: the hero gains 400 + 125 L hp. */
static void moba_mend(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)target;
    moba_heal(&env->units[id], 400 + 125 * level);
}

/* Charge: jumps beside the target, and pulls movable hostile units within 4 by 2 cells. */
static void moba_charge(Moba *env, int32_t id, int32_t target, int32_t level) {
    (void)level;
    uint8_t ids[MOBA_MAX_NEAR];
    moba_jump_to(env, id, target);
    const int32_t x = env->units[id].x, y = env->units[id].y;
    const int32_t count = moba_collect(env, moba_enemies(env, id), env->boards[MOBA_NEUTRAL], x, y, 4, ids);
    for (int32_t i = 0; i < count; i++) {
        if (env->units[ids[i]].kind != MOBA_TOWER) moba_drag(env, ids[i], x, y, 2);
    }
}

/* ---- Carry --------------------------------------------------------------------------------------------- */

/* Leap: 3 + 0.1 L cells away from the target, straight or else 45 degrees to a side, along the first of the
 * three directions that has a free cell. The target is slowed for 20 + L ticks. */
static void moba_leap(Moba *env, int32_t id, int32_t target, int32_t level) {
    static const int8_t turns[3] = {0, 1, -1};
    const MobaUnit *hero = &env->units[id], *other = &env->units[target];
    const int32_t away = moba_direction(hero->x - other->x, hero->y - other->y);
    const int32_t cells = (30 + level) / 10, hand = hero->team == MOBA_RADIANT ? 1 : -1;
    moba_slow(env, target, 20 + level);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t d = (away + hand * turns[i]) & 7;
        int32_t x = hero->x, y = hero->y, gone = 0;
        while (gone < cells && moba_is_free(env, x + moba_dx[d], y + moba_dy[d])) {
            x += moba_dx[d];
            y += moba_dy[d];
            gone++;
        }
        if (gone == 0) continue;
        moba_move_hero(env, id, x, y);
        return;
    }
}

/* Cripple: 50 + 20 L damage, slowed for 20 + L ticks. */
static void moba_cripple(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_slow(env, target, 20 + level);
    moba_hit(env, id, target, 50 + 20 * level);
}

/* Volley: 100 + 20 L damage within 2 of the target. */
static void moba_volley(Moba *env, int32_t id, int32_t target, int32_t level) {
    moba_blast(env, id, env->units[target].x, env->units[target].y, 2, 100 + 20 * level, NULL);
}

/* ---- Casting --------------------------------------------------------------------------------------------
 */

/* Q, W, E of each role. */
static const MobaAbility moba_abilities[MOBA_ROLES][3] = {
    [MOBA_SUPPORT] = {{100, 15, MOBA_ON_MOVABLE, moba_hook},
                      {100, 50, MOBA_ON_SELF, moba_aura},
                      {75, 60, MOBA_ON_MOVABLE, moba_shackle}},
    [MOBA_ASSASSIN] = {{100, 40, MOBA_ON_SELF, moba_reap},
                       {150, 60, MOBA_ON_ANY, moba_ambush},
                       {100, 100, MOBA_ON_SELF, moba_sprint}},
    [MOBA_BURST] = {{200, 70, MOBA_ON_ANY, moba_nuke},
                    {100, 40, MOBA_ON_ANY, moba_storm},
                    {75, 50, MOBA_ON_MOVABLE, moba_freeze}},
    [MOBA_TANK] = {{5, 0, MOBA_ON_SELF, moba_whirl},
                   {100, 70, MOBA_ON_SELF, moba_mend},
                   {50, 40, MOBA_ON_ANY, moba_charge}},
    [MOBA_CARRY] = {{25, 40, MOBA_ON_MOVABLE, moba_leap},
                    {150, 40, MOBA_ON_MOVABLE, moba_cripple},
                    {100, 40, MOBA_ON_ANY, moba_volley}},
};

/* Casts ability 0 to 2, if possible. */
static inline bool moba_cast(Moba *env, int32_t id, int32_t number, int32_t target) {
    MobaHero *hero = moba_hero(env, id);
    const MobaAbility *ability = &moba_abilities[env->units[id].place][number];
    if (hero->mana < ability->mana || hero->cooldown[number] > 0) return false;
    if (ability->aim != MOBA_ON_SELF && target == 0) return false;
    if (ability->aim == MOBA_ON_MOVABLE && env->units[target].kind == MOBA_TOWER) return false;
    const MobaUnit *at = &env->units[target == 0 || ability->aim == MOBA_ON_SELF ? id : target];
    hero->mana = (int16_t)(hero->mana - ability->mana);
    hero->cooldown[number] = ability->cooldown;
    hero->cast = (uint8_t)(1 + number);
    hero->cast_age = 0;
    hero->cast_x = at->x;
    hero->cast_y = at->y;
    ability->cast(env, id, target, hero->level);
    return true;
}

#endif
