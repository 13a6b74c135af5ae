/* Neural MMO 3: combat between players and enemies. */
#ifndef NMMO3_COMBAT_H
#define NMMO3_COMBAT_H

#include "market.h"

/* Returns 2 if the first element beats the second, 0 if it is the other way round, else 1. */
static inline int32_t nmmo3_element_factor(int32_t attacker, int32_t defender) {
    static const uint8_t beaten[] = {[NMMO3_EARTH] = NMMO3_AQUA,
                                     [NMMO3_FIRE] = NMMO3_AIR,
                                     [NMMO3_AIR] = NMMO3_EARTH,
                                     [NMMO3_AQUA] = NMMO3_FIRE};
    if (attacker == NMMO3_NEUTRAL || defender == NMMO3_NEUTRAL) return 1;
    if (beaten[attacker] == defender) return 2;
    return beaten[defender] == attacker ? 0 : 1;
}

static inline int32_t nmmo3_damage(const Nmmo3Body *attacker, const Nmmo3Body *defender) {
    int32_t force = 40 + 2 * attacker->combat + attacker->attack;
    int32_t guard = 2 * defender->combat + defender->defence;
    if (attacker->kind == NMMO3_ENEMY) force += 3 * attacker->combat - 25;
    if (defender->kind == NMMO3_ENEMY) guard += 3 * defender->combat;
    return nmmo3_greater(0, force - guard) * nmmo3_element_factor(attacker->element, defender->element);
}

/* Damages the defender. Returns true if it dies. */
static inline bool nmmo3_strike(Nmmo3Body *attacker, Nmmo3Body *defender) {
    attacker->in_combat = defender->in_combat = NMMO3_COMBAT_TICKS;
    defender->hp = (uint8_t)nmmo3_greater(0, defender->hp - nmmo3_damage(attacker, defender));
    return defender->hp == 0;
}

/* The tier of the tool that an enemy of this level drops: 1 up to level 8, 2 up to 16, and so on. */
static inline int32_t nmmo3_loot_tier(const Nmmo3 *env, int32_t level) {
    int32_t tier = 1;
    while (tier < env->tiers && level > nmmo3_level_of_tier(tier)) tier++;
    return tier;
}

/* Rewards the player for a killed enemy: gold, a tool on the ground, and experience. */
static inline void nmmo3_loot_enemy(Nmmo3 *env, int32_t agent, const Nmmo3Body *enemy) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t gold = 1 + enemy->combat / 10;
    env->totals.gold_won += gold;
    nmmo3_earn(env, player, gold);
    player->kills++;
    nmmo3_drop_tool(env, enemy->x, enemy->y, nmmo3_loot_tier(env, enemy->combat));
    if (enemy->combat < player->body.combat || player->body.combat >= env->levels) return;
    player->body.combat++;
    player->flags[NMMO3_COMBAT_ROSE] = 1;
    env->game.rewards[agent] += env->reward_combat_level;
}

/* Returns the cells in reach of a weapon that is aimed down, nearest first, and their number. Other
 * directions rotate them. */
static inline int32_t nmmo3_reach(int32_t held_type, const int8_t (**cells)[2]) {
    static const int8_t bow[NMMO3_REACH][2] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}};
    static const int8_t sword[3][2] = {{0, 1}, {-1, 1}, {1, 1}};
    *cells = held_type == NMMO3_SWORD ? sword : bow;
    return held_type == NMMO3_SWORD ? 3 : held_type == NMMO3_BOW ? NMMO3_REACH : 1;
}

/* Returns the first living enemy in reach, checking the directions in the order down, up, right, left, or
 * NULL. The player turns to it. */
static inline Nmmo3Body *nmmo3_target(Nmmo3 *env, Nmmo3Player *player) {
    const int8_t (*cells)[2];
    const int32_t count = nmmo3_reach(nmmo3_type_of(player->worn[NMMO3_HAND]), &cells);
    Nmmo3Body *body = &player->body;
    for (int32_t side = 0; side < 4; side++) {
        for (int32_t i = 0; i < count; i++) {
            const int32_t ahead = cells[i][1], aside = cells[i][0];
            const int32_t x = body->x + nmmo3_dx[side] * ahead + (nmmo3_dy[side] != 0) * aside;
            const int32_t y = body->y + nmmo3_dy[side] * ahead + (nmmo3_dx[side] != 0) * aside;
            if (nmmo3_bits(env, NMMO3_ENEMY, x, y, 1) == 0) continue;
            Nmmo3Body *enemy = nmmo3_body(env, env->occupants[nmmo3_tile(env, x, y)]);
            if (enemy->hp == 0) continue;
            body->facing = (uint8_t)side;
            return enemy;
        }
    }
    return NULL;
}

static inline void nmmo3_attack(Nmmo3 *env, int32_t agent) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t held = nmmo3_type_of(player->worn[NMMO3_HAND]);
    Nmmo3Body *enemy = nmmo3_target(env, player);
    player->body.animation = held == NMMO3_SWORD ? NMMO3_SLASHES
                             : held == NMMO3_BOW ? NMMO3_SHOOTS
                                                 : NMMO3_HITS;
    if (enemy != NULL && nmmo3_strike(&player->body, enemy)) nmmo3_loot_enemy(env, agent, enemy);
}

#endif
