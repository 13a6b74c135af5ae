/* Moba: two teams of five heroes, supported by creeps in three lanes, try to destroy each other's ancient.
 *
 * Radiant's base is in the lower left corner of 128 x 128 cells, dire's in the upper right one (map.h). A
 * cell holds one unit. Every 150 ticks each side sends five creeps down each lane, with at most 24 of them
 * alive per lane. 18 camps of four neutrals are in the forest and refill every 600 ticks. Each side has 12
 * towers that fall in the order of their tiers, the ancient last. Heroes gain experience and levels, and have
 * three abilities each (abilities.h). A hero that dies respawns at home immediately.
 *
 * Agents       radiant's five heroes (support, assassin, burst, tank, carry) against a script that walks down
 *              the lanes and attacks. Without script_opponents, all ten heroes, radiant's first.
 * Observation  uint8[11 * 11 * 4 + 26].
 *              - For each cell around the hero, row by row: its content (0 ground, 15 wall, 30 own creep, 45
 *                own tower, 60 to 120 own heroes by role, 135 neutral, 150 to 240 the other side's units in
 *                the same order), hp and mana scaled to 255 (for a tower, mana 255 means shielded), 8 x its
 *                level or tier.
 *              - The hero: 2 x, 2 y, 8 x level, hp, mana, damage / 4, 64 x speed, 255 or 127 when slowed, 4 x
 *                ticks of stun, 4 x ticks of slow, 2 x ticks of the three cooldowns, 16 x ticks to the next
 *                attack, 16 x ticks between attacks.
 *              - As 0 or 255: was hit, is dire, five for its role, and whether the last reward included
 *                death, experience, distance, a tower.
 *              Dire sees the map mirrored, as if it were radiant.
 * Actions      MultiDiscrete(7, 7, 3, 2, 2, 2): velocity down and to the right, (a - 3) / 3, with norm at
 *              most 1. 2 to aim at heroes and towers only. Use Q, W, E. In a tick, a hero does the first
 *              possible of Q, W, E and an attack on the nearest target within 5, and then walks. Invalid
 *              numbers mean no velocity, any target, no ability.
 * Rewards      reward_xp per point of experience. reward_siege for a tower's hp, to each hero for the
 *              fraction that it removes. reward_tower to the hero that destroys it. reward_death to a hero
 *              that dies. reward_distance per cell closer to the enemy's ancient. At the end, reward_win to
 *              all of the winner, and minus that to the others.
 * Ends         terminal when an ancient falls, truncation after max_ticks.
 * Source       PufferLib's MOBA for the numbers. The map is new. There one channel of the view overwrites the
 *              next, the end of a game is not signalled, no limit ends a stalled game, the reward for
 *              distance is never paid, and a table of 256 MiB stores the paths.
 * Memory       36 KB per game, 0.2 MB of tables per process. */
#ifndef MOBA_H
#define MOBA_H

#include "observe.h"

static const char moba_about[] = "Five heroes with abilities, creeps, towers: fell the other side's ancient.";

/* clang-format off */
static const PufferParameter moba_parameters[] = {
    PUFFER_PARAMETER(Moba, script_opponents, true, false, true, "dire's heroes play by a script"),
    PUFFER_PARAMETER(Moba, max_ticks, 4000, 1, 1000000, "ticks until the game is cut off"),
    PUFFER_PARAMETER(Moba, agent_speed, 1, 0.1, 2, "cells that a hero walks in a tick"),
    PUFFER_PARAMETER(Moba, reward_death, -1, -100, 100, "reward for dying"),
    PUFFER_PARAMETER(Moba, reward_xp, 0.006, -1, 1, "reward per point of experience"),
    PUFFER_PARAMETER(Moba, reward_distance, 0, -1, 1, "reward per cell nearer to the other side's ancient"),
    PUFFER_PARAMETER(Moba, reward_siege, 0, -100, 100, "reward for all of a tower's life, in parts to the heroes that hit it"),
    PUFFER_PARAMETER(Moba, reward_tower, 3, -100, 100, "reward for felling a tower"),
    PUFFER_PARAMETER(Moba, reward_win, 5, -1000, 1000, "reward of the winners, taken from the losers"),
};

static const PufferMetric moba_metrics[] = {
    PUFFER_METRIC(Moba, score, "1 if radiant won, 0 if dire won, about 0.5 by the towers that fell if the game was cut off"),
    PUFFER_METRIC(Moba, perf, "1 if radiant won, 0 otherwise"),
    PUFFER_METRIC(Moba, level, "mean level of radiant's heroes"),
    PUFFER_METRIC(Moba, towers, "dire's towers that fell"),
    PUFFER_METRIC(Moba, towers_lost, "radiant's towers that fell"),
    PUFFER_METRIC(Moba, kills, "deaths of dire's heroes"),
    PUFFER_METRIC(Moba, deaths, "deaths of radiant's heroes"),
};
/* clang-format on */

static inline const char *moba_spec(const Moba *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {MOBA_OBSERVATION},
        .observation_low = 0,
        .observation_high = 255,
        .action_kind = PUFFER_MULTI_DISCRETE,
        .action_sizes = {7, 7, 3, 2, 2, 2},
        .agents = env->script_opponents ? MOBA_ROLES : MOBA_HEROES,
        .picture_width = MOBA_PICTURE_WIDTH,
        .picture_height = MOBA_PICTURE_HEIGHT,
        .frames_per_second = 15,
    };
    return NULL;
}

/* ---- Start -------------------------------------------------------------------------------------------- */

static inline void moba_place_tower(Moba *env, int32_t team, int32_t number) {
    const MobaCell site = moba_mirror(moba_tower_sites[number], team);
    const int32_t id = moba_tower_id(team, number), tier = moba_tower_tier[number];
    MobaUnit *unit = &env->units[id];
    *unit = (MobaUnit){.kind = MOBA_TOWER, .team = (uint8_t)team, .place = (uint8_t)number};
    moba_set_max_hp(unit, moba_tower_hp[tier]);
    unit->hp = unit->max_hp;
    unit->codes[0] = moba_code(MOBA_TOWER, team, 0, MOBA_RADIANT);
    unit->codes[1] = moba_code(MOBA_TOWER, team, 0, MOBA_DIRE);
    moba_place_unit(env, id, tier == 1 ? team : MOBA_SHIELDED, site.x, site.y);
}

static inline int32_t moba_goal_distance(const Moba *env, int32_t id) {
    const MobaUnit *hero = &env->units[id];
    const MobaUnit *goal = &env->units[moba_tower_id(1 - hero->team, MOBA_ANCIENT)];
    const int32_t dx = hero->x - goal->x, dy = hero->y - goal->y;
    return (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
}

static inline void moba_place_hero(Moba *env, int32_t team, int32_t role, int32_t number) {
    const int32_t id = moba_hero_id(team, role);
    const MobaCell site = moba_mirror(moba_hero_sites[number], team);
    MobaUnit *unit = &env->units[id];
    MobaHero *hero = moba_hero(env, id);
    *unit = (MobaUnit){.kind = MOBA_HERO, .team = (uint8_t)team, .place = (uint8_t)role};
    unit->codes[0] = moba_code(MOBA_HERO, team, role, MOBA_RADIANT);
    unit->codes[1] = moba_code(MOBA_HERO, team, role, MOBA_DIRE);
    *hero =
        (MobaHero){.level = 1, .site = (uint8_t)number, .x = (float)site.x + 0.5f, .y = (float)site.y + 0.5f};
    moba_apply_level(env, id);
    moba_place_unit(env, id, team, site.x, site.y);
    hero->goal_distance = (int16_t)moba_goal_distance(env, id);
}

/* Places the heroes at random homes, the same for both sides. */
static inline void moba_place_heroes(Moba *env) {
    int32_t numbers[MOBA_ROLES] = {0, 1, 2, 3, 4};
    for (int32_t role = 0; role < MOBA_ROLES; role++) {
        const int32_t other = role + puffer_random_below(&env->game.rng, MOBA_ROLES - role);
        const int32_t number = numbers[other];
        numbers[other] = numbers[role];
        for (int32_t team = 0; team < 2; team++) moba_place_hero(env, team, role, number);
    }
}

static inline void moba_reset(Moba *env) {
    env->agents = env->script_opponents ? MOBA_ROLES : MOBA_HEROES;
    env->scripted[MOBA_RADIANT] = false;
    env->scripted[MOBA_DIRE] = env->script_opponents;
    env->tick = env->first = 0;
    env->winner = -1;
    env->awake = 0;
    memset(env->creeps, 0, sizeof env->creeps);
    memset(env->fallen, 0, sizeof env->fallen);
    memset(env->hero_kills, 0, sizeof env->hero_kills);
    memset(env->units, 0, sizeof env->units);
    memset(env->boards, 0, sizeof env->boards);
    memset(env->grid, 0, sizeof env->grid);
    for (int32_t i = 0; i < MOBA_TOWERS; i++) moba_place_tower(env, i & 1, i / 2);
    moba_place_heroes(env);
    moba_respawn_camps(env);
    moba_observe(env);
}

/* ---- A tick ----------------------------------------------------------------------------------------------
 */

static inline void moba_begin_tick(Moba *env) {
    /* The side that acts first has an advantage, so it is chosen at random in every tick. */
    env->first = puffer_random_below(&env->game.rng, 2);
    if (env->tick % MOBA_WAVE_TICKS == 0) moba_spawn_wave(env);
    if (env->tick % MOBA_CAMP_TICKS == 0) moba_respawn_camps(env);
    env->tick++;
    for (int32_t i = 0; i < MOBA_HEROES; i++) {
        MobaHero *hero = &env->heroes[i];
        hero->was_hit = hero->rewarded_death = hero->rewarded_xp = hero->rewarded_distance =
            hero->rewarded_tower = false;
    }
}

static inline void moba_reward_distance(Moba *env) {
    for (int32_t i = 0; i < env->agents; i++) {
        MobaHero *hero = &env->heroes[i];
        const int32_t distance = moba_goal_distance(env, MOBA_FIRST_HERO + i);
        const int32_t nearer = hero->goal_distance - distance;
        if (nearer == 0) continue;
        hero->rewarded_distance = true;
        hero->goal_distance = (int16_t)distance;
        env->game.rewards[i] += env->reward_distance * (float)nearer;
    }
}

static inline void moba_set_metrics(Moba *env) {
    const int32_t lead = env->fallen[MOBA_DIRE] - env->fallen[MOBA_RADIANT];
    int32_t levels = 0;
    for (int32_t role = 0; role < MOBA_ROLES; role++) levels += env->heroes[role].level;
    env->perf = env->winner == MOBA_RADIANT;
    env->score = env->winner >= 0 ? env->perf : 0.5f + (float)lead / (2 * MOBA_SIDE_TOWERS);
    env->level = (float)levels / MOBA_ROLES;
    env->towers = (float)env->fallen[MOBA_DIRE];
    env->towers_lost = (float)env->fallen[MOBA_RADIANT];
    env->kills = (float)env->hero_kills[MOBA_RADIANT];
    env->deaths = (float)env->hero_kills[MOBA_DIRE];
}

static inline PufferOutcome moba_end(Moba *env) {
    if (env->winner < 0 && env->tick < env->max_ticks) return PUFFER_RUNNING;
    moba_set_metrics(env);
    if (env->winner < 0) return PUFFER_TRUNCATED;
    for (int32_t i = 0; i < env->agents; i++) {
        env->game.rewards[i] += i / MOBA_ROLES == env->winner ? env->reward_win : -env->reward_win;
    }
    return PUFFER_TERMINATED;
}

/* Prefetches the next game of the batch while this one is stepped. A tick reads small parts of 36 KB, so it
 * would mostly wait for memory. After the last game this is useless but harmless. */
static inline void moba_prefetch(const Moba *next) {
    const char *at = (const char *)next;
    for (size_t offset = 0; offset < sizeof *next; offset += 64) __builtin_prefetch(at + offset, 1, 2);
}

static inline PufferOutcome moba_step(Moba *env) {
    moba_prefetch(env + 1);
    moba_begin_tick(env);
    for (int32_t i = 0; i < MOBA_HEROES; i++) moba_step_hero(env, moba_hero_id((i & 1) ^ env->first, i / 2));
    moba_step_creeps(env);
    moba_step_towers(env);
    moba_step_camps(env);
    moba_reward_distance(env);
    moba_observe(env);
    return moba_end(env);
}

#endif
