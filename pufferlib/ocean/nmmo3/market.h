/* Neural MMO 3: the market, where players sell items to each other for gold. */
#ifndef NMMO3_MARKET_H
#define NMMO3_MARKET_H

#include "items.h"

static inline Nmmo3Offers *nmmo3_offers_of(Nmmo3 *env, int32_t type, int32_t tier) {
    return &env->market[(tier - 1) * NMMO3_BAG_TYPES + type - 1];
}

/* Gives a player gold, up to NMMO3_MAX_GOLD. */
static inline void nmmo3_earn(Nmmo3 *env, Nmmo3Player *player, int32_t gold) {
    const int32_t kept = nmmo3_lesser(gold, NMMO3_MAX_GOLD - player->gold);
    player->gold += (uint8_t)kept;
    env->totals.gold_lost += gold - kept;
}

/* Pays the seller of an offer, unless it has died since. */
static inline void nmmo3_pay(Nmmo3 *env, const Nmmo3Offer *offer) {
    Nmmo3Player *seller = &env->players[offer->seller];
    if (seller->life != offer->life) {
        env->totals.gold_lost += offer->price;
        return;
    }
    nmmo3_earn(env, seller, offer->price);
    seller->flags[NMMO3_SOLD] = 1;
    seller->trades++;
    env->game.rewards[offer->seller] += env->reward_market;
}

/* Buys the newest offer of an item, if there is one, and the player has the gold and room for it. */
static inline void nmmo3_buy(Nmmo3 *env, int32_t agent, int32_t type, int32_t tier) {
    Nmmo3Player *player = &env->players[agent];
    Nmmo3Offers *shelf = nmmo3_offers_of(env, type, tier);
    const int32_t slot = nmmo3_empty_slot(player);
    if (shelf->count == 0 || slot < 0) return;
    const Nmmo3Offer offer = shelf->offers[shelf->count - 1];
    if (offer.price > player->gold) return;
    if (offer.seller == agent && offer.life == player->life) return; /* nobody trades with themselves */
    shelf->count--;
    player->gold -= offer.price;
    player->bag[slot] = (uint8_t)nmmo3_item(type, tier);
    player->flags[NMMO3_BOUGHT] = 1;
    player->trades++;
    env->game.rewards[agent] += env->reward_market;
    nmmo3_pay(env, &offer);
}

/* Offers the item of a slot, unless it is worn or there are already NMMO3_OFFERS. */
static inline void nmmo3_offer(Nmmo3 *env, int32_t agent, int32_t slot, int32_t price) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t item = player->bag[slot];
    if (item == 0 || player->is_worn[slot]) return;
    Nmmo3Offers *shelf = nmmo3_offers_of(env, nmmo3_type_of(item), nmmo3_tier_of(item));
    if (shelf->count == NMMO3_OFFERS) return;
    shelf->offers[shelf->count++] =
        (Nmmo3Offer){.seller = (uint16_t)agent, .life = player->life, .price = (uint8_t)price};
    player->bag[slot] = 0;
}

/* Handles a key, 1 to 12, of a player at the market: two keys buy (tier, type), two sell (slot, price). */
static inline void nmmo3_trade(Nmmo3 *env, int32_t agent, int32_t key) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t mode = player->mode;
    player->mode = NMMO3_PLAYING;
    if (player->body.in_combat > 0) return;
    if (mode == NMMO3_BUY_TIER && key <= env->tiers) {
        player->market_tier = (uint8_t)key;
        player->mode = NMMO3_BUY_TYPE;
    } else if (mode == NMMO3_BUY_TYPE && key <= NMMO3_BAG_TYPES) {
        nmmo3_buy(env, agent, key, player->market_tier);
    } else if (mode == NMMO3_SELL_SLOT && player->bag[key - 1] != 0) {
        player->sell_slot = (uint8_t)(key - 1);
        player->mode = NMMO3_SELL_PRICE;
    } else if (mode == NMMO3_SELL_PRICE) {
        nmmo3_offer(env, agent, player->sell_slot, key);
    }
}

#endif
