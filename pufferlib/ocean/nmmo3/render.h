/* Rendering of Neural MMO 3: the view of a player (by default the first), its levels and inventory, a map of
 * the world, and a legend. */
#ifndef NMMO3_RENDER_H
#define NMMO3_RENDER_H

#include "icons.h"
#include "nmmo3.h"

enum {
    NMMO3_VIEW_WIDTH = NMMO3_COLUMNS * NMMO3_SIDE,
    NMMO3_VIEW_HEIGHT = NMMO3_ROWS * NMMO3_SIDE,
    NMMO3_MARGIN = 8,
    NMMO3_MAP = 240, /* longer side of the small map, px */
};

static const PufferKey nmmo3_keys[] = {
    {"", 0, NMMO3_STAY, "stay"},
    {"up", 0, NMMO3_UP, "walk up"},
    {"down", 0, NMMO3_DOWN, "walk down"},
    {"left", 0, NMMO3_LEFT, "walk left"},
    {"right", 0, NMMO3_RIGHT, "walk right"},
    {"w", 0, NMMO3_RUN + NMMO3_UP, "run up"},
    {"s", 0, NMMO3_RUN + NMMO3_DOWN, "run down"},
    {"a", 0, NMMO3_RUN + NMMO3_LEFT, "run left"},
    {"d", 0, NMMO3_RUN + NMMO3_RIGHT, "run right"},
    {"space", 0, NMMO3_ATTACK, "attack"},
    {"1", 0, NMMO3_KEY_1, "use slot 1"},
    {"2", 0, NMMO3_KEY_1 + 1, "use slot 2"},
    {"3", 0, NMMO3_KEY_1 + 2, "use slot 3"},
    {"4", 0, NMMO3_KEY_1 + 3, "use slot 4"},
    {"5", 0, NMMO3_KEY_1 + 4, "use slot 5"},
    {"6", 0, NMMO3_KEY_1 + 5, "use slot 6"},
    {"7", 0, NMMO3_KEY_1 + 6, "use slot 7"},
    {"8", 0, NMMO3_KEY_1 + 7, "use slot 8"},
    {"9", 0, NMMO3_KEY_1 + 8, "use slot 9"},
    {"0", 0, NMMO3_KEY_1 + 9, "use slot 10"},
    {"o", 0, NMMO3_KEY_1 + 10, "use slot 11"},
    {"p", 0, NMMO3_KEY_1 + 11, "use slot 12"},
    {"b", 0, NMMO3_BUY, "buy: tier, then type"},
    {"v", 0, NMMO3_SELL, "sell: slot, then price"},
};

/* ---- The view ----------------------------------------------------------------------------------- */

/* Draws a dark line where land meets water or stone, on the side of the land. */
static inline void nmmo3_draw_edges(const Nmmo3 *env, PufferCanvas *canvas, int32_t left, int32_t top,
                                    int32_t tile) {
    if (!nmmo3_is_walkable(env, tile)) return;
    for (int32_t side = 0; side < 4; side++) {
        const int32_t dx = nmmo3_dx[side], dy = nmmo3_dy[side], next = tile + dx + dy * env->width;
        if (nmmo3_is_walkable(env, next)) continue;
        const bool is_water = nmmo3_codes(env, next)[NMMO3_TERRAIN] == NMMO3_WATER;
        const int32_t x = left + (dx > 0 ? NMMO3_SIDE - 3 : 0), y = top + (dy > 0 ? NMMO3_SIDE - 3 : 0);
        draw_rectangle(canvas, x, y, dx != 0 ? 3 : NMMO3_SIDE, dy != 0 ? 3 : NMMO3_SIDE,
                       is_water ? 0xE3D3A0u : 0x4B4E50u);
    }
}

static inline void nmmo3_draw_view(const Nmmo3 *env, PufferCanvas *canvas, const Nmmo3Body *viewer) {
    const int32_t first_x = viewer->x - NMMO3_COLUMNS / 2, first_y = viewer->y - NMMO3_ROWS / 2;
    for (int32_t i = 0; i < NMMO3_ROWS * NMMO3_COLUMNS; i++) {
        const int32_t column = i % NMMO3_COLUMNS, row = i / NMMO3_COLUMNS;
        const int32_t x = first_x + column, y = first_y + row, tile = nmmo3_tile(env, x, y);
        const int32_t left = column * NMMO3_SIDE, top = row * NMMO3_SIDE;
        const uint8_t *codes = nmmo3_codes(env, tile);
        nmmo3_draw_land(canvas, left, top, codes, nmmo3_hash(x, y));
        nmmo3_draw_edges(env, canvas, left, top, tile);
        nmmo3_draw_item(canvas, left, top, codes[NMMO3_ITEM_TYPE], codes[NMMO3_ITEM_TIER]);
    }
    for (int32_t i = 0; i < NMMO3_ROWS * NMMO3_COLUMNS; i++) {
        const int32_t column = i % NMMO3_COLUMNS, row = i / NMMO3_COLUMNS;
        const int32_t occupant = env->occupants[nmmo3_tile(env, first_x + column, first_y + row)];
        if (occupant == 0) continue;
        const Nmmo3Body *body = nmmo3_body(env, occupant);
        nmmo3_draw_body(canvas, column * NMMO3_SIDE, row * NMMO3_SIDE, body, body == viewer);
    }
}

/* ---- The player ------------------------------------------------------------------------------------- */

/* Draws a name, a number, and a bar that is full at `full`. */
static inline void nmmo3_draw_level(PufferCanvas *canvas, int32_t y, const char *name, int32_t value,
                                    int32_t full, uint32_t colour) {
    draw_text(canvas, 12, y, 2, DRAW_WHITE, name);
    draw_number(canvas, 180, y, 2, colour, value);
    draw_bar(canvas, 192, y, 120, 14, value, full, colour);
}

static inline void nmmo3_draw_slot(PufferCanvas *canvas, int32_t left, int32_t top, int32_t item,
                                   bool is_worn) {
    draw_rectangle(canvas, left - 2, top - 2, NMMO3_SIDE + 4, NMMO3_SIDE + 4,
                   is_worn ? NMMO3_GOLD : DRAW_SLATE);
    draw_rectangle(canvas, left, top, NMMO3_SIDE, NMMO3_SIDE, 0x274553u);
    nmmo3_draw_item(canvas, left, top, nmmo3_type_of(item), nmmo3_tier_of(item));
}

static inline void nmmo3_draw_player(const Nmmo3 *env, PufferCanvas *canvas, const Nmmo3Player *player) {
    static const char *const modes[] = {"", "BUY  WHICH TIER", "BUY  WHICH TYPE", "SELL  WHICH SLOT",
                                        "SELL  PRICE"};
    const int32_t top = NMMO3_VIEW_HEIGHT + 10;
    nmmo3_draw_level(canvas, top, "HEALTH", player->body.hp, NMMO3_MAX_HP, DRAW_GREEN);
    nmmo3_draw_level(canvas, top + 22, "COMBAT", player->body.combat, env->levels, DRAW_RED);
    nmmo3_draw_level(canvas, top + 44, "HARVEST", player->profession, env->levels, DRAW_CYAN);
    draw_text(canvas, 328, top, 2, DRAW_WHITE, "GOLD");
    draw_number(canvas, 468, top, 2, NMMO3_GOLD, player->gold);
    draw_text(canvas, 328, top + 22, 2, DRAW_WHITE, "ATTACK");
    draw_number(canvas, 468, top + 22, 2, DRAW_WHITE, player->body.attack);
    draw_text(canvas, 328, top + 44, 2, DRAW_WHITE, "ARMOUR");
    draw_number(canvas, 468, top + 44, 2, DRAW_WHITE, player->body.defence);
    draw_text(canvas, 12, top + 74, 1, DRAW_WHITE, "BAG  WORN IN GOLD");
    draw_text(canvas, 250, top + 74, 1, DRAW_YELLOW, modes[player->mode]);
    for (int32_t slot = 0; slot < NMMO3_SLOTS; slot++) {
        nmmo3_draw_slot(canvas, 12 + slot * 39, top + 88, player->bag[slot], player->is_worn[slot]);
        draw_number(canvas, 32 + slot * 39, top + 128, 1, NMMO3_STEEL, slot + 1);
    }
}

/* ---- The small map ---------------------------------------------------------------------------------- */

static inline uint32_t nmmo3_map_colour(const uint8_t *codes) {
    if (codes[NMMO3_TERRAIN] == NMMO3_STONE) return 0x6E7275u;
    if (codes[NMMO3_TERRAIN] == NMMO3_DIRT) return 0xA98A5Cu;
    return (codes[NMMO3_TERRAIN] == NMMO3_WATER ? nmmo3_water_colours
                                                : nmmo3_grass_colours)[codes[NMMO3_SEASON]];
}

static inline void nmmo3_draw_dot(const Nmmo3 *env, PufferCanvas *canvas, const Nmmo3Body *body, int32_t left,
                                  int32_t top, int32_t size, uint32_t colour) {
    const int32_t longer = nmmo3_greater(env->width, env->height);
    draw_rectangle(canvas, left + body->x * NMMO3_MAP / longer - size / 3,
                   top + body->y * NMMO3_MAP / longer - size / 3, size, size, colour);
}

static inline void nmmo3_draw_map(const Nmmo3 *env, PufferCanvas *canvas, const Nmmo3Body *viewer,
                                  int32_t left, int32_t top) {
    const int32_t longer = nmmo3_greater(env->width, env->height), dot = longer > 256 ? 2 : 4;
    for (int32_t y = 0; y < NMMO3_MAP * env->height / longer; y++) {
        for (int32_t x = 0; x < NMMO3_MAP * env->width / longer; x++) {
            const int32_t tile = nmmo3_tile(env, x * longer / NMMO3_MAP, y * longer / NMMO3_MAP);
            draw_rectangle(canvas, left + x, top + y, 1, 1, nmmo3_map_colour(nmmo3_codes(env, tile)));
        }
    }
    for (int32_t i = 0; i < env->enemy_count; i++) {
        if (!env->enemies[i].is_gone)
            nmmo3_draw_dot(env, canvas, &env->enemies[i].body, left, top, dot, DRAW_RED);
    }
    for (int32_t i = 0; i < env->num_players; i++) {
        nmmo3_draw_dot(env, canvas, &env->players[i].body, left, top, dot, 0x005E6Eu);
    }
    nmmo3_draw_dot(env, canvas, viewer, left, top, 8, DRAW_NIGHT);
    nmmo3_draw_dot(env, canvas, viewer, left, top, 6, DRAW_WHITE);
}

/* ---- Legend ----------------------------------------------------------------------------------------- */

static inline void nmmo3_draw_key(PufferCanvas *canvas, int32_t place, int32_t top, int32_t type,
                                  const char *name) {
    const int32_t left = NMMO3_VIEW_WIDTH + NMMO3_MARGIN + place % 2 * 122, y = top + place / 2 * 31;
    draw_rectangle(canvas, left, y, NMMO3_SIDE - 2, NMMO3_SIDE - 2, 0x274553u);
    nmmo3_draw_item(canvas, left, y, type, 0);
    draw_text(canvas, left + 38, y + 12, 1, DRAW_WHITE, name);
}

static inline void nmmo3_draw_legend(const Nmmo3 *env, PufferCanvas *canvas, int32_t top) {
    static const struct {
        int32_t type;
        const char *name;
    } keys[] = {
        {NMMO3_TOOL, "TOOL"},        {NMMO3_HERB, "HERB HEALS"}, {NMMO3_ORE, "ORE ARMOUR"},
        {NMMO3_HILT, "HILT SWORD"},  {NMMO3_WOOD, "WOOD BOW"},   {NMMO3_GEM, "EARTH GEM"},
        {NMMO3_GEM + 1, "FIRE GEM"}, {NMMO3_GEM + 2, "AIR GEM"}, {NMMO3_GEM + 3, "WATER GEM"},
    };
    const int32_t left = NMMO3_VIEW_WIDTH + NMMO3_MARGIN, count = sizeof keys / sizeof *keys;
    draw_disc(canvas, left + 4, top + 3, 4, DRAW_CYAN);
    draw_text(canvas, left + 14, top, 1, DRAW_WHITE, "PLAYERS");
    draw_number(canvas, left + 90, top, 1, DRAW_WHITE, env->num_players);
    draw_rectangle(canvas, left + 122, top, 8, 8, DRAW_RED);
    draw_text(canvas, left + 136, top, 1, DRAW_WHITE, "ENEMIES");
    draw_number(canvas, left + 212, top, 1, DRAW_WHITE, env->enemy_count);
    for (int32_t i = 0; i < count; i++) nmmo3_draw_key(canvas, i, top + 16, keys[i].type, keys[i].name);
    draw_text(canvas, left + 124, top + 146, 1, DRAW_WHITE, "DOTS  TIER");
    draw_text(canvas, left + 124, top + 158, 1, DRAW_WHITE, "NUMBERS  LEVEL");
}

static inline void nmmo3_draw(const Nmmo3 *env, PufferCanvas *canvas) {
    const int32_t left = NMMO3_VIEW_WIDTH + NMMO3_MARGIN;
    const Nmmo3Player *viewer = &env->players[canvas->agent >= 0 ? canvas->agent : 0];
    draw_clear(canvas, DRAW_NIGHT);
    nmmo3_draw_view(env, canvas, &viewer->body);
    draw_rectangle(canvas, 0, NMMO3_VIEW_HEIGHT, canvas->width, canvas->height, DRAW_NIGHT);
    draw_rectangle(canvas, NMMO3_VIEW_WIDTH, 0, canvas->width, canvas->height, DRAW_NIGHT);
    nmmo3_draw_player(env, canvas, viewer);
    nmmo3_draw_map(env, canvas, &viewer->body, left, NMMO3_MARGIN);
    nmmo3_draw_legend(env, canvas, NMMO3_MAP + 2 * NMMO3_MARGIN + 4);
}

#endif
