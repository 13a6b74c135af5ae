/* Neural MMO 3: constants and state. */
#ifndef NMMO3_TYPES_H
#define NMMO3_TYPES_H

#include "puffer_env.h"

enum {
    NMMO3_ROWS = 11, /* rows of tiles in view of a player, which is in the middle */
    NMMO3_COLUMNS = 15,
    NMMO3_CODES = 10, /* bytes of a tile */
    NMMO3_VIEW = NMMO3_ROWS * NMMO3_COLUMNS * NMMO3_CODES,
    NMMO3_SELF = 47,
    NMMO3_FLAGS = 10,
    NMMO3_BORDER_X = NMMO3_COLUMNS / 2, /* water around the map, so that no view leaves it */
    NMMO3_BORDER_Y = NMMO3_ROWS / 2,
    NMMO3_MAX_HP = 99,
    NMMO3_MAX_GOLD = 99,
    NMMO3_MAX_TIERS = 5,
    NMMO3_COMBAT_TICKS = 5, /* for which a hit keeps both sides in combat */
    NMMO3_REACH = 4,        /* of bows, and of the view of enemies */
    NMMO3_WANDER = 3,       /* maximum distance of an enemy from its home, tiles */
    NMMO3_RANGED_LEVEL = 15,
    NMMO3_DROP_TICKS = 20, /* lifetime of a dropped tool; fits a byte */
    NMMO3_SLOTS = 12,
    NMMO3_OFFERS = 32, /* of one item on the market */
    NMMO3_ACTIONS = 26,
};

/* Codes of a tile, in their order. */
enum {
    NMMO3_SEASON,
    NMMO3_TERRAIN,
    NMMO3_ITEM_TYPE,
    NMMO3_ITEM_TIER,
    NMMO3_KIND, /* of the occupant; without one, this and all following codes are 0 */
    NMMO3_ELEMENT,
    NMMO3_LEVEL, /* in the map its combat level, in a view relative to the viewer's */
    NMMO3_HP,
    NMMO3_ANIMATION,
    NMMO3_FACING,
    NMMO3_BODY_CODES = NMMO3_CODES - NMMO3_KIND,
};

enum { NMMO3_SPRING, NMMO3_SUMMER, NMMO3_AUTUMN, NMMO3_WINTER, NMMO3_SEASONS };
enum { NMMO3_GRASS, NMMO3_DIRT, NMMO3_STONE, NMMO3_WATER };
enum { NMMO3_NOBODY, NMMO3_PLAYER, NMMO3_ENEMY };
enum { NMMO3_DOWN, NMMO3_UP, NMMO3_RIGHT, NMMO3_LEFT };
enum { NMMO3_IDLE, NMMO3_MOVES, NMMO3_HITS, NMMO3_SLASHES, NMMO3_SHOOTS, NMMO3_DIES, NMMO3_RUNS };
/* The element of a season is the season + 1. */
enum { NMMO3_NEUTRAL, NMMO3_EARTH, NMMO3_FIRE, NMMO3_AIR, NMMO3_AQUA };

/* Types of items. An item is (tier - 1) * NMMO3_TYPES + type, or 0 for none. The first NMMO3_BAG_TYPES can be
 * in an inventory. The others are converted to another item when they are harvested. */
enum {
    NMMO3_NONE,
    NMMO3_HELM,
    NMMO3_CHEST,
    NMMO3_LEGS,
    NMMO3_SWORD,
    NMMO3_BOW,
    NMMO3_TOOL,
    NMMO3_GEM, /* and three more: of earth, fire, air, water */
    NMMO3_HERB = NMMO3_GEM + 4,
    NMMO3_ORE,
    NMMO3_WOOD,
    NMMO3_HILT,
    NMMO3_TYPES = 17,
    NMMO3_BAG_TYPES = NMMO3_HERB,
};

/* Places where items are worn. */
enum { NMMO3_HEAD, NMMO3_BODY, NMMO3_FEET, NMMO3_HAND, NMMO3_NECK, NMMO3_PLACES };

enum { NMMO3_STAY = 4, NMMO3_ATTACK, NMMO3_KEY_1 = 8, NMMO3_BUY = 20, NMMO3_SELL, NMMO3_RUN };

/* Meanings of a player's keys. */
enum { NMMO3_PLAYING, NMMO3_BUY_TIER, NMMO3_BUY_TYPE, NMMO3_SELL_SLOT, NMMO3_SELL_PRICE };

/* Events of the last step, a byte each at the end of the observation. The tenth is unused. */
enum {
    NMMO3_DIED,
    NMMO3_COMBAT_ROSE,
    NMMO3_PROFESSION_ROSE,
    NMMO3_ARMED,
    NMMO3_DISARMED,
    NMMO3_ARMOURED,
    NMMO3_UNARMOURED,
    NMMO3_BOUGHT,
    NMMO3_SOLD,
};

/* Common part of players and enemies. `shown` are its codes in the map. */
typedef struct {
    uint16_t x, y;
    int16_t attack, defence; /* from worn items */
    uint8_t kind, combat, element, facing, animation, hp, in_combat;
    uint8_t shown[NMMO3_BODY_CODES];
} Nmmo3Body;

typedef struct {
    Nmmo3Body body;
    uint8_t profession, gold, mode, market_tier, sell_slot;
    uint8_t worn[NMMO3_PLACES]; /* items; the next two fields follow it in memory as in the observation */
    uint8_t bag[NMMO3_SLOTS];
    uint8_t is_worn[NMMO3_SLOTS];
    uint8_t flags[NMMO3_FLAGS];
    uint8_t best; /* best lower level of both in this life */
    uint16_t life;
    int32_t stale; /* steps since it rose */
    int32_t steps, kills, trades;
    float episode_return;
} Nmmo3Player;

typedef struct {
    Nmmo3Body body;
    uint16_t home_x, home_y;
    bool is_ranged, is_gone;
    int32_t back_in; /* ticks until an absent enemy returns */
} Nmmo3Enemy;

/* An event of a tile at a tick. Each queue has a constant delay, so that it is sorted. */
typedef struct {
    uint32_t due;
    int32_t tile;
    uint8_t item;
} Nmmo3Event;

typedef struct {
    Nmmo3Event *events;
    int32_t capacity, first, count;
} Nmmo3Queue;

typedef struct {
    uint16_t seller, life; /* a player in another life receives nothing */
    uint8_t price;
} Nmmo3Offer;

/* Offers of one item, the newest last. */
typedef struct {
    Nmmo3Offer offers[NMMO3_OFFERS];
    uint8_t count;
} Nmmo3Offers;

/* Totals of gold and items since the reset. Players have the difference in gold. Carried and offered items
 * are the difference in items. */
typedef struct {
    int64_t gold_won, gold_lost;
    int64_t items_taken, items_used, items_lost;
    int64_t tools_dropped, tools_taken, tools_gone;
} Nmmo3Totals;

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t width, height, num_players, num_enemies, num_resources, num_weapons, num_gems;
    int32_t tiers, levels, patience, enemy_respawn_ticks, item_respawn_ticks;
    float teleport_chance;
    float reward_combat_level, reward_profession_level, reward_item_level, reward_tool, reward_market,
        reward_death;
    /* metrics, of the life that ends */
    float score, perf, combat_level, profession_level, attack, defence, kills, trades;
    /* state: arrays behind the struct */
    Nmmo3Player *players;
    Nmmo3Enemy *enemies;
    uint16_t *occupants; /* per tile: 0, a player's index + 1, or an enemy's + 1 after them */
    uint8_t *codes;      /* NMMO3_CODES per tile */
    uint8_t *clocks;     /* per tile: last byte of the tick at which a tool there disappears */
    uint8_t *bits[3];    /* per kind: a bit for each tile, rows of `pitch` bytes */
    int32_t pitch, enemy_count;
    uint32_t tick, teleport_limit;
    float stale_scale;
    Nmmo3Queue growth, drops; /* items that grow again; tools that disappear */
    Nmmo3Offers market[NMMO3_MAX_TIERS * NMMO3_BAG_TYPES];
    Nmmo3Totals totals;
} Nmmo3;

static inline int32_t nmmo3_tile(const Nmmo3 *env, int32_t x, int32_t y) {
    return y * env->width + x;
}

static inline uint8_t *nmmo3_codes(const Nmmo3 *env, int32_t tile) {
    return env->codes + (size_t)tile * NMMO3_CODES;
}

static inline int32_t nmmo3_item(int32_t type, int32_t tier) {
    return (tier - 1) * NMMO3_TYPES + type;
}

static inline int32_t nmmo3_type_of(int32_t item) {
    return item > 0 ? (item - 1) % NMMO3_TYPES + 1 : NMMO3_NONE;
}

static inline int32_t nmmo3_tier_of(int32_t item) {
    return item > 0 ? (item - 1) / NMMO3_TYPES + 1 : 0;
}

/* The level of a tier: 8, 16, 32, 64, 128. */
static inline int32_t nmmo3_level_of_tier(int32_t tier) {
    return 4 << tier;
}

static inline int32_t nmmo3_lesser(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static inline int32_t nmmo3_greater(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static inline int32_t nmmo3_distance(int32_t a, int32_t b) {
    return a > b ? a - b : b - a;
}

/* Steps down, up, right and left. */
static const int8_t nmmo3_dx[4] = {0, 0, 1, -1};
static const int8_t nmmo3_dy[4] = {1, -1, 0, 0};

#endif
