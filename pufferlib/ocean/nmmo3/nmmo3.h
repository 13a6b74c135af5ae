/* Neural MMO 3: many players on one map with terrain and seasons fight enemies, harvest and trade.
 *
 * A player has two professions. To fight, it attacks enemies, who attack it. Defeating one of at least its
 * own level raises its combat level, yields gold, and leaves a tool. To harvest, it walks over herbs, ore,
 * wood, hilts and gems while it holds a tool of their tier or better. Ore becomes armour, hilts swords, and
 * wood bows, and its profession level rises, up to the limit of the item's tier (8, 16, 32, ...). Worn items
 * make it fight better, and gems add an element that beats another. Lives end, but the world continues: a
 * player that dies or makes no progress for `patience` steps restarts at level 1, away from enemies.
 *
 * The map has hills of stone and lakes of water. Between them are meadows and paths of dirt, the only
 * walkable tiles. Water surrounds the map. Each region has a season and its element: spring earth, summer
 * fire, autumn air, winter water. Fire beats air, air earth, earth water, water fire: twice the damage, and
 * none the other way round. Enemies of level 15 and above shoot and have the element of their home's season.
 *
 * Observation  uint8[1707].
 *              - 11 rows of 15 tiles around the player, with 10 codes per tile (number of values): season
 *                (4), ground (4: grass, dirt, stone, water), item type (15: none, helm, chest, legs, sword,
 *                bow, tool, gems of earth, fire, air, water, herb, ore, wood, hilt), item tier (6), occupant
 *                (3: none, player, enemy), its element (5: none, earth, fire, air, water), half of the number
 *                of combat levels by which it exceeds the player (5), its hp / 20 (5), its last action (7:
 *                nothing, walk, hit, slash, shoot, die, run), its direction (4: down, up, right, left).
 *              - 47 numbers of the player: 1, combat level, element, direction, last action, hp, 99,
 *                profession level, meaning of its keys (items, buy: tier, buy: type, sell: slot, sell:
 *                price), tier to buy, slot to sell, gold, steps in combat. Then the items worn on head, body,
 *                legs, hand, neck, 12 items of the inventory ((tier - 1) * 17 + type, 0 none), and whether
 *                each of these is worn. Then used patience (0 to 255), whether a bow is held, maximum
 *                profession level for the held tool, half of attack, half of defence.
 *              - 10 flags of the last step: died, combat level rose, profession level rose, armed, disarmed,
 *                armoured, took armour off, bought, sold, and an unused one.
 * Actions      Discrete(26): 0-3 walk down, up, right, left, 4 nothing, 5 attack, 8-19 keys 1 to 12, 20 buy,
 *              21 sell, 22-25 run two tiles. Any other number does nothing. A key uses the item in that
 *              inventory slot: it eats a herb, and equips or unequips gear, which is only possible out of
 *              combat. After "buy", two keys choose tier and type, and the newest offer is bought. After
 *              "sell", two keys choose slot and price. Any other action leaves the market, and so does a key
 *              in combat.
 * Rewards      reward_combat_level and reward_profession_level for each level. reward_item_level * tier /
 *              tiers for equipping a weapon or armour and reward_tool for a tool, minus that for unequipping
 *              them. reward_market for both sides of a sale. reward_death.
 * Ends         The world never ends. A life ends with a terminal when the player dies, and with a truncation
 *              when the lower of both levels has not risen for `patience` steps, because this limit is not
 *              part of the world.
 * Memory       of a game: 11 KB, 13.3 bytes per tile, 92 per player, 32 per enemy, 12 for each tool that
 *              enemies may have dropped (11 each by default) and for each resource: 73 KB by default, 4.0 MB
 *              for 1,024 players and 2,048 enemies on 512 x 512 tiles.
 * Source       Neural MMO (Suarez et al., 2019 and 2021), and PufferLib's nmmo3 for the numbers. There the
 *              codes of a body stay in the tile that it leaves, item tiers overflow their code, keys 10 to 12
 *              do nothing, enemies wander without limit, sellers are paid in their next lives, offers are
 *              rewarded without a sale, and no life ever ends for the learner. */
#ifndef NMMO3_H
#define NMMO3_H

#include "npc.h"
#include "observe.h"
#include "terrain.h"

static const char nmmo3_about[] =
    "Neural MMO 3: fight, harvest, wear and trade on a big map with many others.";

/* clang-format off */
static const PufferParameter nmmo3_parameters[] = {
    PUFFER_PARAMETER(Nmmo3, width, 64, 32, 512, "columns of tiles of the map, 7 of water at each end"),
    PUFFER_PARAMETER(Nmmo3, height, 64, 32, 512, "rows of tiles of the map, 5 of water at each end"),
    PUFFER_PARAMETER(Nmmo3, num_players, 8, 1, 2048, "agents of a game"),
    PUFFER_PARAMETER(Nmmo3, num_enemies, -1, -1, 4096, "enemies, -1 for one for every 128 tiles"),
    PUFFER_PARAMETER(Nmmo3, num_resources, -1, -1, 4096, "ores, and as many herbs, -1 for one for every 128 tiles"),
    PUFFER_PARAMETER(Nmmo3, num_weapons, -1, -1, 4096, "hilts, and as much wood, -1 for one for every 256 tiles"),
    PUFFER_PARAMETER(Nmmo3, num_gems, -1, -1, 4096, "gems of each element, -1 for one for every 512 tiles"),
    PUFFER_PARAMETER(Nmmo3, tiers, 5, 1, NMMO3_MAX_TIERS, "tiers of items"),
    PUFFER_PARAMETER(Nmmo3, levels, 40, 1, 99, "highest level of players and enemies"),
    PUFFER_PARAMETER(Nmmo3, patience, 500, 1, 1000000, "steps without a rise of the lower level that end a life"),
    PUFFER_PARAMETER(Nmmo3, enemy_respawn_ticks, 2, 1, 10000, "steps that a beaten enemy is gone"),
    PUFFER_PARAMETER(Nmmo3, item_respawn_ticks, 100, 1, 10000, "steps until what was harvested has grown again"),
    PUFFER_PARAMETER(Nmmo3, teleport_chance, 0.001, 0, 1, "chance of everyone in each step to be moved anywhere"),
    PUFFER_PARAMETER(Nmmo3, reward_combat_level, 1, -10, 10, "for each combat level"),
    PUFFER_PARAMETER(Nmmo3, reward_profession_level, 1, -10, 10, "for each profession level"),
    PUFFER_PARAMETER(Nmmo3, reward_item_level, 0.5, -10, 10, "for putting on a weapon or armour of the highest tier"),
    PUFFER_PARAMETER(Nmmo3, reward_tool, 0, -10, 10, "for taking a tool into the hand"),
    PUFFER_PARAMETER(Nmmo3, reward_market, 0.01, -10, 10, "for buying, and for selling"),
    PUFFER_PARAMETER(Nmmo3, reward_death, -1, -10, 10, "for dying"),
};

static const size_t nmmo3_pointers[] = {
    offsetof(Nmmo3, players),
    offsetof(Nmmo3, enemies),
    offsetof(Nmmo3, growth.events),
    offsetof(Nmmo3, drops.events),
    offsetof(Nmmo3, occupants),
    offsetof(Nmmo3, codes),
    offsetof(Nmmo3, clocks),
    offsetof(Nmmo3, bits[NMMO3_PLAYER]),
    offsetof(Nmmo3, bits[NMMO3_ENEMY]),
};

static const PufferMetric nmmo3_metrics[] = {
    PUFFER_METRIC(Nmmo3, score, "the lower of combat and profession level at the end of a life"),
    PUFFER_METRIC(Nmmo3, perf, "the same as a share of the highest level"),
    PUFFER_METRIC(Nmmo3, combat_level, "combat level at the end of a life"),
    PUFFER_METRIC(Nmmo3, profession_level, "profession level at the end of a life"),
    PUFFER_METRIC(Nmmo3, attack, "of the weapon at the end of a life"),
    PUFFER_METRIC(Nmmo3, defence, "of the armour at the end of a life"),
    PUFFER_METRIC(Nmmo3, kills, "enemies beaten in a life"),
    PUFFER_METRIC(Nmmo3, trades, "bought and sold in a life"),
};
/* clang-format on */

static inline const char *nmmo3_spec(const Nmmo3 *env, PufferSpec *spec) {
    const int32_t inner = (env->width - 2 * NMMO3_BORDER_X) * (env->height - 2 * NMMO3_BORDER_Y);
    if ((env->num_players + nmmo3_enemies(env)) * 8 > inner) {
        return "num_players and num_enemies must leave 8 tiles to each, water around the map aside, on width "
               "times height";
    }
    *spec = (PufferSpec){
        .observation_type = PUFFER_UINT8,
        .observation_shape = {NMMO3_VIEW + NMMO3_SELF + NMMO3_FLAGS},
        .observation_low = 0,
        .observation_high = 255,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {NMMO3_ACTIONS},
        .agents = env->num_players,
        .agents_end = true,
        .picture_width = 736,
        .picture_height = 512,
        .frames_per_second = 5,
    };
    return NULL;
}

/* ---- Lives ------------------------------------------------------------------------------------------ */

/* Starts a life of a player that is not on the map, in a safe place. */
static inline void nmmo3_spawn_player(Nmmo3 *env, int32_t agent) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t tile = nmmo3_safe_grass(env);
    *player = (Nmmo3Player){
        .body = {.kind = NMMO3_PLAYER, .combat = 1, .hp = NMMO3_MAX_HP},
        .profession = 1,
        .best = 1,
        .life = (uint16_t)(player->life + 1),
    };
    nmmo3_place_body(env, &player->body, agent + 1, tile % env->width, tile / env->width);
    nmmo3_write_body(env, &player->body);
}

/* Removes a player from the map. Its gold and items are lost. */
static inline void nmmo3_despawn_player(Nmmo3 *env, int32_t agent) {
    const Nmmo3Player *player = &env->players[agent];
    env->totals.gold_lost += player->gold;
    for (int32_t slot = 0; slot < NMMO3_SLOTS; slot++) env->totals.items_lost += player->bag[slot] != 0;
    nmmo3_remove_body(env, &player->body);
}

static inline void nmmo3_report(Nmmo3 *env, const Nmmo3Player *player) {
    env->combat_level = player->body.combat;
    env->profession_level = player->profession;
    env->score = puffer_min(env->combat_level, env->profession_level);
    env->perf = env->score / (float)env->levels;
    env->attack = player->body.attack;
    env->defence = player->body.defence;
    env->kills = (float)player->kills;
    env->trades = (float)player->trades;
}

/* Counts the step of a life, rewards death, and returns the outcome of the life. */
static inline PufferOutcome nmmo3_update_life(Nmmo3 *env, int32_t agent) {
    Nmmo3Player *player = &env->players[agent];
    const uint8_t lower = player->body.combat < player->profession ? player->body.combat : player->profession;
    player->steps++;
    player->stale = lower > player->best ? 0 : player->stale + 1;
    player->best = lower;
    const bool is_dead = player->body.hp == 0;
    if (is_dead) {
        player->flags[NMMO3_DIED] = 1;
        env->game.rewards[agent] += env->reward_death;
    }
    player->episode_return += env->game.rewards[agent];
    if (is_dead) return PUFFER_TERMINATED;
    return player->stale >= env->patience ? PUFFER_TRUNCATED : PUFFER_RUNNING;
}

/* Ends the lives that are over, each with its last observation, and starts the next ones. */
static inline void nmmo3_end_lives(Nmmo3 *env) {
    for (int32_t agent = 0; agent < env->num_players; agent++) {
        Nmmo3Player *player = &env->players[agent];
        const PufferOutcome outcome = nmmo3_update_life(env, agent);
        if (outcome == PUFFER_RUNNING) continue;
        nmmo3_report(env, player);
        nmmo3_observe(env, agent);
        PUFFER_END_AGENT(env, nmmo3_metrics, agent, outcome, player->episode_return, (float)player->steps);
        nmmo3_despawn_player(env, agent);
        nmmo3_spawn_player(env, agent);
        player->flags[NMMO3_DIED] = outcome == PUFFER_TERMINATED;
    }
}

/* ---- A step --------------------------------------------------------------------------------------- */

/* Walks up to `tiles` open tiles, and picks up the item on each. */
static inline void nmmo3_walk(Nmmo3 *env, int32_t agent, int32_t direction, int32_t tiles) {
    Nmmo3Body *body = &env->players[agent].body;
    body->facing = (uint8_t)direction;
    for (int32_t i = 0; i < tiles; i++) {
        const int32_t x = body->x + nmmo3_dx[direction], y = body->y + nmmo3_dy[direction];
        if (!nmmo3_is_open(env, nmmo3_tile(env, x, y))) return;
        body->animation = tiles > 1 ? NMMO3_RUNS : NMMO3_MOVES;
        nmmo3_move_to(env, body, x, y);
        nmmo3_pick_up(env, agent);
    }
}

static inline void nmmo3_act(Nmmo3 *env, int32_t agent, int32_t action) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t key = action >= NMMO3_KEY_1 && action < NMMO3_BUY ? action - NMMO3_KEY_1 + 1 : 0;
    if (key > 0 && player->mode != NMMO3_PLAYING) {
        nmmo3_trade(env, agent, key);
        return;
    }
    player->mode = NMMO3_PLAYING;
    if (key > 0) {
        nmmo3_use(env, agent, key - 1);
    } else if (action >= 0 && action < NMMO3_STAY) {
        nmmo3_walk(env, agent, action, 1);
    } else if (action >= NMMO3_RUN && action < NMMO3_ACTIONS) {
        nmmo3_walk(env, agent, action - NMMO3_RUN, 2);
    } else if (action == NMMO3_ATTACK) {
        nmmo3_attack(env, agent);
    } else if (action == NMMO3_BUY || action == NMMO3_SELL) {
        player->mode = action == NMMO3_BUY ? NMMO3_BUY_TIER : NMMO3_SELL_SLOT;
    }
}

static inline void nmmo3_step_player(Nmmo3 *env, int32_t agent) {
    Nmmo3Body *body = &env->players[agent].body;
    body->animation = NMMO3_IDLE;
    body->hp += body->hp < NMMO3_MAX_HP;
    body->in_combat -= body->in_combat > 0;
    if (puffer_random(&env->game.rng) < env->teleport_limit) {
        const int32_t tile = nmmo3_safe_grass(env);
        nmmo3_move_to(env, body, tile % env->width, tile / env->width);
    }
    nmmo3_act(env, agent, ((const int32_t *)env->game.actions)[agent]);
}

static inline void nmmo3_write_bodies(Nmmo3 *env) {
    for (int32_t i = 0; i < env->enemy_count; i++) {
        if (!env->enemies[i].is_gone) nmmo3_write_body(env, &env->enemies[i].body);
    }
    for (int32_t agent = 0; agent < env->num_players; agent++)
        nmmo3_write_body(env, &env->players[agent].body);
}

static inline void nmmo3_observe_all(Nmmo3 *env) {
    for (int32_t agent = 0; agent < env->num_players; agent++) {
        nmmo3_observe(env, agent);
        memset(env->players[agent].flags, 0, NMMO3_FLAGS);
    }
}

static inline void nmmo3_reset(Nmmo3 *env) {
    nmmo3_lay_out(env);
    env->tick = 0;
    env->teleport_limit =
        env->teleport_chance < 1 ? (uint32_t)(env->teleport_chance * 4294967296.0) : UINT32_MAX;
    env->stale_scale = 255 / (float)env->patience;
    env->growth.first = env->growth.count = env->drops.first = env->drops.count = 0;
    env->totals = (Nmmo3Totals){0};
    memset(env->market, 0, sizeof env->market);
    memset(env->players, 0, (size_t)env->num_players * sizeof(Nmmo3Player));
    nmmo3_make_terrain(env);
    for (int32_t i = 0; i < env->enemy_count; i++) nmmo3_create_enemy(env, i);
    for (int32_t agent = 0; agent < env->num_players; agent++) nmmo3_spawn_player(env, agent);
    nmmo3_write_bodies(env);
    nmmo3_observe_all(env);
}

static inline PufferOutcome nmmo3_step(Nmmo3 *env) {
    env->tick++;
    nmmo3_update_items(env);
    for (int32_t agent = 0; agent < env->num_players; agent++) nmmo3_step_player(env, agent);
    for (int32_t i = 0; i < env->enemy_count; i++) nmmo3_step_enemy(env, i);
    nmmo3_write_bodies(env);
    nmmo3_end_lives(env);
    nmmo3_observe_all(env);
    return PUFFER_RUNNING;
}

#endif
