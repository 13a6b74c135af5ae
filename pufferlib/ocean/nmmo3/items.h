/* Neural MMO 3: items on the ground, in the inventory, and worn. */
#ifndef NMMO3_ITEMS_H
#define NMMO3_ITEMS_H

#include "map.h"

/* ---- Queues ------------------------------------------------------------------------------------- */

static inline void nmmo3_push(Nmmo3Queue *queue, uint32_t due, int32_t tile, int32_t item) {
    int32_t last = queue->first + queue->count++;
    if (last >= queue->capacity) last -= queue->capacity;
    queue->events[last] = (Nmmo3Event){.due = due, .tile = tile, .item = (uint8_t)item};
}

/* Returns the first event if its tick has come, else NULL. */
static inline const Nmmo3Event *nmmo3_pop_due(Nmmo3Queue *queue, uint32_t tick) {
    if (queue->count == 0 || queue->events[queue->first].due != tick) return NULL;
    const Nmmo3Event *event = &queue->events[queue->first];
    queue->first = queue->first + 1 < queue->capacity ? queue->first + 1 : 0;
    queue->count--;
    return event;
}

/* ---- On the ground -------------------------------------------------------------------------------- */

static inline int32_t nmmo3_item_at(const Nmmo3 *env, int32_t tile) {
    const uint8_t *codes = nmmo3_codes(env, tile);
    return codes[NMMO3_ITEM_TYPE] > 0 ? nmmo3_item(codes[NMMO3_ITEM_TYPE], codes[NMMO3_ITEM_TIER]) : 0;
}

static inline void nmmo3_put_item(Nmmo3 *env, int32_t tile, int32_t item) {
    uint8_t *codes = nmmo3_codes(env, tile);
    codes[NMMO3_ITEM_TYPE] = (uint8_t)nmmo3_type_of(item);
    codes[NMMO3_ITEM_TIER] = (uint8_t)nmmo3_tier_of(item);
}

/* Restores the resources that are due, replacing any tool there. Then removes the tools that are due, unless
 * another one has been dropped there since. */
static inline void nmmo3_update_items(Nmmo3 *env) {
    const Nmmo3Event *event;
    while ((event = nmmo3_pop_due(&env->growth, env->tick)) != NULL) {
        env->totals.tools_gone += nmmo3_item_at(env, event->tile) != 0;
        nmmo3_put_item(env, event->tile, event->item);
    }
    while ((event = nmmo3_pop_due(&env->drops, env->tick)) != NULL) {
        if (nmmo3_codes(env, event->tile)[NMMO3_ITEM_TYPE] != NMMO3_TOOL) continue;
        if (env->clocks[event->tile] != (uint8_t)env->tick) continue;
        env->totals.tools_gone++;
        nmmo3_put_item(env, event->tile, 0);
    }
}

/* Drops a tool at (x, y), or beside it if there is already an item. Without room, no tool is dropped. */
static inline void nmmo3_drop_tool(Nmmo3 *env, int32_t x, int32_t y, int32_t tier) {
    static const int8_t around[9][2] = {{0, 0}, {-1, -1}, {0, -1}, {1, -1}, {-1, 0},
                                        {1, 0}, {-1, 1},  {0, 1},  {1, 1}};
    for (int32_t i = 0; i < 9; i++) {
        const int32_t tile = nmmo3_tile(env, x + around[i][0], y + around[i][1]);
        if (!nmmo3_is_walkable(env, tile) || nmmo3_item_at(env, tile) != 0) continue;
        const uint32_t due = env->tick + NMMO3_DROP_TICKS;
        const int32_t tool = nmmo3_item(NMMO3_TOOL, tier);
        nmmo3_put_item(env, tile, tool);
        env->clocks[tile] = (uint8_t)due;
        nmmo3_push(&env->drops, due, tile, tool);
        env->totals.tools_dropped++;
        return;
    }
}

/* ---- In the inventory ----------------------------------------------------------------------------- */

/* Returns the first empty slot, or -1. */
static inline int32_t nmmo3_empty_slot(const Nmmo3Player *player) {
    for (int32_t slot = 0; slot < NMMO3_SLOTS; slot++) {
        if (player->bag[slot] == 0) return slot;
    }
    return -1;
}

/* Returns the item that harvesting `item` yields. */
static inline int32_t nmmo3_product(Nmmo3 *env, int32_t item) {
    const int32_t type = nmmo3_type_of(item), tier = nmmo3_tier_of(item);
    if (type == NMMO3_ORE) return nmmo3_item(NMMO3_HELM + puffer_random_below(&env->game.rng, 3), tier);
    if (type == NMMO3_HILT) return nmmo3_item(NMMO3_SWORD, tier);
    if (type == NMMO3_WOOD) return nmmo3_item(NMMO3_BOW, tier);
    return item;
}

static inline void nmmo3_learn_profession(Nmmo3 *env, int32_t agent, int32_t tier) {
    Nmmo3Player *player = &env->players[agent];
    if (player->profession >= nmmo3_lesser(env->levels, nmmo3_level_of_tier(tier))) return;
    player->profession++;
    player->flags[NMMO3_PROFESSION_ROSE] = 1;
    env->game.rewards[agent] += env->reward_profession_level;
}

/* Picks up the item under a player. All items except tools require a held tool of their tier or higher. */
static inline void nmmo3_pick_up(Nmmo3 *env, int32_t agent) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t tile = nmmo3_tile(env, player->body.x, player->body.y), item = nmmo3_item_at(env, tile);
    if (item == 0) return;
    const int32_t slot = nmmo3_empty_slot(player), tier = nmmo3_tier_of(item);
    if (slot < 0) return;
    if (nmmo3_type_of(item) == NMMO3_TOOL) {
        player->bag[slot] = (uint8_t)item;
        env->totals.tools_taken++;
    } else {
        const int32_t held = player->worn[NMMO3_HAND];
        if (nmmo3_type_of(held) != NMMO3_TOOL || nmmo3_tier_of(held) < tier) return;
        player->bag[slot] = (uint8_t)nmmo3_product(env, item);
        nmmo3_push(&env->growth, env->tick + (uint32_t)env->item_respawn_ticks, tile, item);
        nmmo3_learn_profession(env, agent, tier);
    }
    env->totals.items_taken++;
    nmmo3_put_item(env, tile, 0);
}

/* ---- Worn ----------------------------------------------------------------------------------------- */

static inline int32_t nmmo3_place_of(int32_t type) {
    if (type <= NMMO3_LEGS) return NMMO3_HEAD + type - NMMO3_HELM;
    return type <= NMMO3_TOOL ? NMMO3_HAND : NMMO3_NECK;
}

/* Attack of an item: 24 for a sword of the first tier, twice as much for each further tier. A bow is half a
 * tier behind. */
static inline int32_t nmmo3_attack_of(int32_t item) {
    static const int16_t bows[NMMO3_MAX_TIERS + 1] = {0, 17, 34, 68, 136, 272};
    const int32_t type = nmmo3_type_of(item), tier = nmmo3_tier_of(item);
    if (type == NMMO3_SWORD) return 3 * nmmo3_level_of_tier(tier);
    return type == NMMO3_BOW ? bows[tier] : 0;
}

static inline int32_t nmmo3_defence_of(int32_t item) {
    const int32_t type = nmmo3_type_of(item);
    return type >= NMMO3_HELM && type <= NMMO3_LEGS ? nmmo3_level_of_tier(nmmo3_tier_of(item)) : 0;
}

/* Equips (sign 1) or unequips (sign -1) the item of a slot. */
static inline void nmmo3_wear(Nmmo3 *env, int32_t agent, int32_t slot, int32_t sign) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t item = player->bag[slot], type = nmmo3_type_of(item), place = nmmo3_place_of(type);
    const int32_t attack = nmmo3_attack_of(item), defence = nmmo3_defence_of(item);
    const float reward = env->reward_item_level * (float)nmmo3_tier_of(item) / (float)env->tiers;
    player->is_worn[slot] = sign > 0;
    player->worn[place] = sign > 0 ? (uint8_t)item : 0;
    player->body.attack += (int16_t)(sign * attack);
    player->body.defence += (int16_t)(sign * defence);
    if (place == NMMO3_NECK) {
        player->body.element = sign > 0 ? (uint8_t)(NMMO3_EARTH + type - NMMO3_GEM) : NMMO3_NEUTRAL;
    }
    if (attack > 0) player->flags[sign > 0 ? NMMO3_ARMED : NMMO3_DISARMED] = 1;
    if (defence > 0) player->flags[sign > 0 ? NMMO3_ARMOURED : NMMO3_UNARMOURED] = 1;
    if (attack > 0 || defence > 0) env->game.rewards[agent] += (float)sign * reward;
    if (type == NMMO3_TOOL) env->game.rewards[agent] += (float)sign * env->reward_tool;
}

/* Eats a herb, equips gear if the place is free, or unequips it. Gear can only be changed out of combat. */
static inline void nmmo3_use(Nmmo3 *env, int32_t agent, int32_t slot) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t item = player->bag[slot], type = nmmo3_type_of(item);
    if (item == 0) return;
    if (type == NMMO3_HERB) {
        const int32_t hp = player->body.hp + 50 + 10 * nmmo3_tier_of(item);
        player->body.hp = (uint8_t)nmmo3_lesser(hp, NMMO3_MAX_HP);
        player->bag[slot] = 0;
        env->totals.items_used++;
    } else if (player->body.in_combat == 0) {
        if (player->is_worn[slot]) {
            nmmo3_wear(env, agent, slot, -1);
        } else if (player->worn[nmmo3_place_of(type)] == 0) {
            nmmo3_wear(env, agent, slot, 1);
        }
    }
}

#endif
