/* Neural MMO 3: enemies chase the nearest visible player, or wander around their home. */
#ifndef NMMO3_NPC_H
#define NMMO3_NPC_H

#include "combat.h"

/* Returns the nearest living player, in steps, within NMMO3_REACH tiles in x and y, or NULL. */
static inline Nmmo3Body *nmmo3_nearest_player(const Nmmo3 *env, const Nmmo3Body *enemy) {
    const int32_t left = enemy->x - NMMO3_REACH, side = 2 * NMMO3_REACH + 1;
    Nmmo3Body *target = NULL;
    int32_t nearest = 2 * side;
    for (int32_t y = enemy->y - NMMO3_REACH; y <= enemy->y + NMMO3_REACH; y++) {
        uint32_t bits = nmmo3_bits(env, NMMO3_PLAYER, left, y, side);
        for (; bits != 0; bits &= bits - 1) {
            const int32_t x = left + __builtin_ctz(bits);
            const int32_t distance = nmmo3_distance(x, enemy->x) + nmmo3_distance(y, enemy->y);
            Nmmo3Body *player = nmmo3_body(env, env->occupants[nmmo3_tile(env, x, y)]);
            if (distance >= nearest || player->hp == 0) continue;
            nearest = distance;
            target = player;
        }
    }
    return target;
}

static inline void nmmo3_walk_enemy(Nmmo3 *env, Nmmo3Body *body, int32_t direction) {
    const int32_t x = body->x + nmmo3_dx[direction], y = body->y + nmmo3_dy[direction];
    body->facing = (uint8_t)direction;
    if (!nmmo3_is_open(env, nmmo3_tile(env, x, y))) return;
    body->animation = NMMO3_MOVES;
    nmmo3_move_to(env, body, x, y);
}

/* The direction to a player along one axis. */
static inline int32_t nmmo3_heading(const Nmmo3Body *from, const Nmmo3Body *to, bool along_x) {
    if (along_x) return to->x > from->x ? NMMO3_RIGHT : NMMO3_LEFT;
    return to->y > from->y ? NMMO3_DOWN : NMMO3_UP;
}

/* Strikes a player next to the enemy, else approaches along the longer axis. Ranged enemies shoot along rows
 * and columns, and approach along the shorter axis to reach one. */
static inline void nmmo3_chase(Nmmo3 *env, Nmmo3Enemy *enemy, Nmmo3Body *target) {
    Nmmo3Body *body = &enemy->body;
    const int32_t wide = nmmo3_distance(target->x, body->x), high = nmmo3_distance(target->y, body->y);
    const bool is_wide = wide > high;
    if (enemy->is_ranged ? wide == 0 || high == 0 : wide + high == 1) {
        body->facing = (uint8_t)nmmo3_heading(body, target, is_wide);
        body->animation = enemy->is_ranged ? NMMO3_SHOOTS : NMMO3_SLASHES;
        nmmo3_strike(body, target);
    } else {
        nmmo3_walk_enemy(env, body, nmmo3_heading(body, target, is_wide != enemy->is_ranged));
    }
}

/* Walks in `direction` if that stays within NMMO3_WANDER of its home, or at least does not increase the
 * distance. */
static inline void nmmo3_wander(Nmmo3 *env, Nmmo3Enemy *enemy, int32_t direction) {
    Nmmo3Body *body = &enemy->body;
    const int32_t wide = nmmo3_distance(body->x, enemy->home_x),
                  high = nmmo3_distance(body->y, enemy->home_y);
    const int32_t x = body->x + nmmo3_dx[direction], y = body->y + nmmo3_dy[direction];
    if (nmmo3_distance(x, enemy->home_x) > nmmo3_greater(NMMO3_WANDER, wide)) return;
    if (nmmo3_distance(y, enemy->home_y) > nmmo3_greater(NMMO3_WANDER, high)) return;
    nmmo3_walk_enemy(env, body, direction);
}

/* Puts an enemy at its home with full hp. */
static inline void nmmo3_spawn_enemy(Nmmo3 *env, int32_t index) {
    Nmmo3Enemy *enemy = &env->enemies[index];
    enemy->is_gone = false;
    enemy->body.hp = NMMO3_MAX_HP;
    enemy->body.in_combat = 0;
    enemy->body.facing = NMMO3_DOWN;
    enemy->body.animation = NMMO3_IDLE;
    nmmo3_place_body(env, &enemy->body, env->num_players + 1 + index, enemy->home_x, enemy->home_y);
}

/* Creates an enemy. Level n + 8 is half as likely to be exceeded as n. One in eight enemies has level 1. */
static inline void nmmo3_create_enemy(Nmmo3 *env, int32_t index) {
    const uint32_t one_more = 3938502376u; /* 2^(-1/8), scaled by 2^32 */
    Nmmo3Enemy *enemy = &env->enemies[index];
    const int32_t tile = nmmo3_open_grass(env);
    int32_t level = 1;
    while (level < env->levels && puffer_random(&env->game.rng) < one_more) level++;
    if (puffer_random_below(&env->game.rng, 8) == 0) level = 1;
    const bool is_ranged = level >= NMMO3_RANGED_LEVEL;
    const uint8_t element = is_ranged ? NMMO3_EARTH + nmmo3_codes(env, tile)[NMMO3_SEASON] : NMMO3_NEUTRAL;
    *enemy = (Nmmo3Enemy){
        .body = {.kind = NMMO3_ENEMY, .combat = (uint8_t)level, .element = element},
        .home_x = (uint16_t)(tile % env->width),
        .home_y = (uint16_t)(tile / env->width),
        .is_ranged = is_ranged,
    };
    nmmo3_spawn_enemy(env, index);
}

/* A dead enemy stays for a tick, is absent for enemy_respawn_ticks, and respawns once its home is free. */
static inline void nmmo3_update_dead_enemy(Nmmo3 *env, int32_t index) {
    Nmmo3Enemy *enemy = &env->enemies[index];
    if (enemy->is_gone) {
        if (enemy->back_in > 0) enemy->back_in--;
        const bool is_free = nmmo3_is_open(env, nmmo3_tile(env, enemy->home_x, enemy->home_y));
        if (enemy->back_in == 0 && is_free) nmmo3_spawn_enemy(env, index);
    } else if (enemy->body.animation != NMMO3_DIES) {
        enemy->body.animation = NMMO3_DIES;
    } else {
        nmmo3_remove_body(env, &enemy->body);
        enemy->is_gone = true;
        enemy->back_in = env->enemy_respawn_ticks;
    }
}

/* Moves an enemy and its home to a random tile. */
static inline void nmmo3_teleport_enemy(Nmmo3 *env, Nmmo3Enemy *enemy) {
    const int32_t tile = nmmo3_open_grass(env);
    enemy->home_x = (uint16_t)(tile % env->width);
    enemy->home_y = (uint16_t)(tile / env->width);
    nmmo3_move_to(env, &enemy->body, enemy->home_x, enemy->home_y);
}

static inline void nmmo3_step_enemy(Nmmo3 *env, int32_t index) {
    Nmmo3Enemy *enemy = &env->enemies[index];
    Nmmo3Body *body = &enemy->body;
    if (body->hp == 0) {
        nmmo3_update_dead_enemy(env, index);
        return;
    }
    const uint32_t chance = puffer_random(&env->game.rng);
    body->animation = NMMO3_IDLE;
    body->hp += body->hp < NMMO3_MAX_HP;
    body->in_combat -= body->in_combat > 0;
    if (chance < env->teleport_limit) nmmo3_teleport_enemy(env, enemy);
    Nmmo3Body *target = nmmo3_nearest_player(env, body);
    if (target != NULL) {
        nmmo3_chase(env, enemy, target);
    } else {
        nmmo3_wander(env, enemy, (int32_t)(chance & 3));
    }
}

#endif
