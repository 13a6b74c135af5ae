/* Rendering of Neural MMO 3: tiles, items, players and enemies, each in a square of 32 px. */
#ifndef NMMO3_ICONS_H
#define NMMO3_ICONS_H

#include "puffer_draw.h"
#include "types.h"

enum { NMMO3_SIDE = 32 };

#define NMMO3_STEEL 0xB9C4CCu
#define NMMO3_WOODY 0x8A5A2Bu
#define NMMO3_GOLD  0xF2C84Bu

/* By element. The first one is for none. */
static const uint32_t nmmo3_element_colours[] = {0x9AA5ABu, 0x9C6B3Cu, 0xF0603Au, 0xBFE3F2u, 0x3F8CE8u};

/* By season. */
static const uint32_t nmmo3_grass_colours[] = {0x5FA352u, 0x93AE45u, 0xB98242u, 0xD9E4EAu};
static const uint32_t nmmo3_tuft_colours[] = {0x4A8841u, 0x7C9638u, 0x9C6733u, 0xBFCFD8u};
static const uint32_t nmmo3_water_colours[] = {0x2F6FB5u, 0x2E7FC2u, 0x35648Fu, 0x7FB2D2u};

/* A pseudorandom number that is always the same for a position. */
static inline uint32_t nmmo3_hash(int32_t x, int32_t y) {
    uint32_t hash = (uint32_t)x * 374761393u + (uint32_t)y * 668265263u;
    hash = (hash ^ (hash >> 13)) * 1274126177u;
    return hash ^ (hash >> 16);
}

/* ---- Land --------------------------------------------------------------------------------------- */

static inline void nmmo3_draw_grass(PufferCanvas *canvas, int32_t left, int32_t top, int32_t season,
                                    uint32_t grain) {
    draw_rectangle(canvas, left, top, NMMO3_SIDE, NMMO3_SIDE, nmmo3_grass_colours[season]);
    for (int32_t tuft = 0; tuft < 4; tuft++, grain >>= 8) {
        const int32_t x = left + (int32_t)(grain & 15) * 2, y = top + (int32_t)(grain >> 4 & 15) * 2;
        draw_rectangle(canvas, x, y, 2, 3, nmmo3_tuft_colours[season]);
    }
}

static inline void nmmo3_draw_stone(PufferCanvas *canvas, int32_t left, int32_t top, int32_t season,
                                    uint32_t grain) {
    const uint32_t peak = season == NMMO3_WINTER ? 0xEEF3F6u : 0xA3A7A9u;
    const int32_t x = left + 8 + (int32_t)(grain & 15), y = top + 6 + (int32_t)(grain >> 4 & 3);
    draw_rectangle(canvas, left, top, NMMO3_SIDE, NMMO3_SIDE, 0x6E7275u);
    for (int32_t row = 0; row < 20; row++) {
        const int32_t half = row / 2 + 1;
        draw_rectangle(canvas, x - half, y + row, half, 1, row < 6 ? peak : 0x8B9093u);
        draw_rectangle(canvas, x, y + row, half, 1, row < 6 ? 0xC9CED1u : 0x585C5Fu);
    }
}

static inline void nmmo3_draw_water(PufferCanvas *canvas, int32_t left, int32_t top, int32_t season,
                                    uint32_t grain) {
    const uint32_t wave = season == NMMO3_WINTER ? 0xA9CFE3u : 0x5B97CFu;
    draw_rectangle(canvas, left, top, NMMO3_SIDE, NMMO3_SIDE, nmmo3_water_colours[season]);
    draw_rectangle(canvas, left + (int32_t)(grain & 15), top + 8 + (int32_t)(grain >> 4 & 3), 9, 2, wave);
    draw_rectangle(canvas, left + (int32_t)(grain >> 8 & 15), top + 22 + (int32_t)(grain >> 12 & 3), 7, 2,
                   wave);
}

static inline void nmmo3_draw_dirt(PufferCanvas *canvas, int32_t left, int32_t top, int32_t season,
                                   uint32_t grain) {
    draw_rectangle(canvas, left, top, NMMO3_SIDE, NMMO3_SIDE, season == NMMO3_WINTER ? 0xB7A58Eu : 0xA98A5Cu);
    for (int32_t stone = 0; stone < 4; stone++, grain >>= 8) {
        const int32_t x = left + (int32_t)(grain & 15) * 2, y = top + (int32_t)(grain >> 4 & 15) * 2;
        draw_rectangle(canvas, x, y, 3, 2, season == NMMO3_WINTER ? 0xD7CDBFu : 0x8F7148u);
    }
}

static inline void nmmo3_draw_land(PufferCanvas *canvas, int32_t left, int32_t top, const uint8_t *codes,
                                   uint32_t grain) {
    const int32_t season = codes[NMMO3_SEASON];
    if (codes[NMMO3_TERRAIN] == NMMO3_GRASS) nmmo3_draw_grass(canvas, left, top, season, grain);
    if (codes[NMMO3_TERRAIN] == NMMO3_DIRT) nmmo3_draw_dirt(canvas, left, top, season, grain);
    if (codes[NMMO3_TERRAIN] == NMMO3_STONE) nmmo3_draw_stone(canvas, left, top, season, grain);
    if (codes[NMMO3_TERRAIN] == NMMO3_WATER) nmmo3_draw_water(canvas, left, top, season, grain);
}

/* ---- Items ---------------------------------------------------------------------------------------- */

static inline void nmmo3_draw_diamond(PufferCanvas *canvas, int32_t x, int32_t y, int32_t radius,
                                      uint32_t colour) {
    for (int32_t row = -radius; row <= radius; row++) {
        const int32_t half = radius - (row < 0 ? -row : row);
        draw_rectangle(canvas, x - half, y + row, 2 * half + 1, 1, colour);
    }
}

static inline void nmmo3_draw_armour(PufferCanvas *canvas, int32_t x, int32_t y, int32_t type) {
    if (type == NMMO3_HELM) {
        draw_disc(canvas, x, y - 1, 9, NMMO3_STEEL);
        draw_rectangle(canvas, x - 10, y + 2, 21, 9, NMMO3_STEEL);
        draw_rectangle(canvas, x - 6, y + 1, 13, 3, DRAW_NIGHT);
        draw_rectangle(canvas, x - 1, y + 1, 3, 9, DRAW_NIGHT);
    } else if (type == NMMO3_CHEST) {
        draw_rectangle(canvas, x - 10, y - 9, 21, 7, NMMO3_STEEL);
        draw_rectangle(canvas, x - 7, y - 9, 15, 19, NMMO3_STEEL);
        draw_rectangle(canvas, x - 3, y - 9, 7, 4, DRAW_NIGHT);
        draw_rectangle(canvas, x, y - 3, 1, 12, 0x7C878Fu);
    } else {
        draw_rectangle(canvas, x - 8, y - 9, 17, 6, NMMO3_STEEL);
        draw_rectangle(canvas, x - 8, y - 4, 7, 14, NMMO3_STEEL);
        draw_rectangle(canvas, x + 2, y - 4, 7, 14, NMMO3_STEEL);
    }
}

static inline void nmmo3_draw_held(PufferCanvas *canvas, int32_t x, int32_t y, int32_t type) {
    if (type == NMMO3_SWORD || type == NMMO3_HILT) {
        if (type == NMMO3_SWORD) draw_line(canvas, x + 8, y - 10, x - 4, y + 2, 4, NMMO3_STEEL);
        draw_line(canvas, x - 8, y - 1, x - 1, y + 6, 3, NMMO3_GOLD);
        draw_line(canvas, x - 5, y + 3, x - 9, y + 7, 4, NMMO3_WOODY);
    } else if (type == NMMO3_BOW) {
        draw_line(canvas, x - 7, y - 10, x + 5, y - 5, 3, NMMO3_WOODY);
        draw_line(canvas, x + 5, y - 5, x + 5, y + 5, 3, NMMO3_WOODY);
        draw_line(canvas, x + 5, y + 5, x - 7, y + 10, 3, NMMO3_WOODY);
        draw_line(canvas, x - 7, y - 10, x - 7, y + 10, 1, DRAW_WHITE);
    } else {
        draw_line(canvas, x - 8, y + 9, x + 4, y - 4, 3, NMMO3_WOODY);
        draw_line(canvas, x - 5, y - 8, x + 5, y - 6, 4, NMMO3_STEEL);
        draw_line(canvas, x + 5, y - 6, x + 8, y + 4, 4, NMMO3_STEEL);
    }
}

static inline void nmmo3_draw_raw(PufferCanvas *canvas, int32_t x, int32_t y, int32_t type) {
    if (type == NMMO3_HERB) {
        draw_line(canvas, x, y + 9, x, y - 4, 2, 0x2C6B2Fu);
        draw_disc(canvas, x - 5, y + 1, 4, 0x3F8F3Fu);
        draw_disc(canvas, x + 5, y - 1, 4, 0x3F8F3Fu);
        draw_disc(canvas, x, y - 7, 4, 0xE0559Au);
    } else if (type == NMMO3_ORE) {
        draw_disc(canvas, x, y + 2, 9, 0x4A4E52u);
        draw_disc(canvas, x - 3, y - 1, 2, 0xD98E4Au);
        draw_disc(canvas, x + 4, y + 2, 2, 0xD98E4Au);
        draw_disc(canvas, x - 2, y + 6, 2, 0xD98E4Au);
    } else {
        draw_line(canvas, x - 8, y + 5, x + 6, y - 3, 9, NMMO3_WOODY);
        draw_disc(canvas, x + 6, y - 3, 4, 0xD8B07Au);
        draw_disc(canvas, x + 6, y - 3, 2, NMMO3_WOODY);
    }
}

/* Draws an item in the middle of a square, with its tier as dots below. */
static inline void nmmo3_draw_item(PufferCanvas *canvas, int32_t left, int32_t top, int32_t type,
                                   int32_t tier) {
    const int32_t x = left + NMMO3_SIDE / 2, y = top + NMMO3_SIDE / 2 - 2;
    if (type == NMMO3_NONE) return;
    if (type <= NMMO3_LEGS) {
        nmmo3_draw_armour(canvas, x, y, type);
    } else if (type <= NMMO3_TOOL || type == NMMO3_HILT) {
        nmmo3_draw_held(canvas, x, y, type);
    } else if (type < NMMO3_HERB) {
        nmmo3_draw_diamond(canvas, x, y, 9, DRAW_NIGHT);
        nmmo3_draw_diamond(canvas, x, y, 8, nmmo3_element_colours[NMMO3_EARTH + type - NMMO3_GEM]);
        nmmo3_draw_diamond(canvas, x - 2, y - 2, 2, DRAW_WHITE);
    } else {
        nmmo3_draw_raw(canvas, x, y, type);
    }
    for (int32_t dot = 0; dot < tier; dot++) {
        draw_rectangle(canvas, x - 3 * tier + 6 * dot + 1, top + NMMO3_SIDE - 6, 5, 5, DRAW_NIGHT);
        draw_rectangle(canvas, x - 3 * tier + 6 * dot + 2, top + NMMO3_SIDE - 5, 3, 3, NMMO3_GOLD);
    }
}

/* ---- Bodies --------------------------------------------------------------------------------------- */

static inline void nmmo3_draw_weapon(PufferCanvas *canvas, int32_t x, int32_t y, const Nmmo3Body *body) {
    const int32_t dx = nmmo3_dx[body->facing], dy = nmmo3_dy[body->facing];
    if (body->animation == NMMO3_HITS) {
        draw_disc(canvas, x + 14 * dx, y + 14 * dy, 4, DRAW_YELLOW);
    } else if (body->animation == NMMO3_SLASHES) {
        draw_line(canvas, x + 14 * dx - 10 * dy, y + 14 * dy - 10 * dx, x + 16 * dx + 10 * dy,
                  y + 16 * dy + 10 * dx, 3, DRAW_WHITE);
    } else if (body->animation == NMMO3_SHOOTS) {
        draw_line(canvas, x + 12 * dx, y + 12 * dy, x + 60 * dx, y + 60 * dy, 2, DRAW_YELLOW);
        draw_disc(canvas, x + 60 * dx, y + 60 * dy, 3, DRAW_YELLOW);
    }
}

/* Draws the feet, farther apart for walking and farthest for running. */
static inline void nmmo3_draw_feet(PufferCanvas *canvas, int32_t x, int32_t y, const Nmmo3Body *body) {
    const int32_t apart = body->animation == NMMO3_RUNS ? 9 : body->animation == NMMO3_MOVES ? 7 : 5;
    draw_rectangle(canvas, x - apart - 2, y + 8, 5, 5, DRAW_NIGHT);
    draw_rectangle(canvas, x + apart - 2, y + 8, 5, 5, DRAW_NIGHT);
}

/* Draws the eyes at the side that the body faces, none if seen from behind. */
static inline void nmmo3_draw_eyes(PufferCanvas *canvas, int32_t x, int32_t y, const Nmmo3Body *body) {
    const int32_t aside = 4 * nmmo3_dx[body->facing], down = body->facing == NMMO3_DOWN ? 2 : 0;
    if (body->facing == NMMO3_UP) return;
    draw_rectangle(canvas, x + aside - 4, y - 4 + down, 3, 4, DRAW_NIGHT);
    draw_rectangle(canvas, x + aside + 2, y - 4 + down, 3, 4, DRAW_NIGHT);
}

/* A player is round, an enemy square with horns, both in the colour of their element, if they have one. Above
 * them is their hp, below their combat level. Dead bodies are grey. */
static inline void nmmo3_draw_body(PufferCanvas *canvas, int32_t left, int32_t top, const Nmmo3Body *body,
                                   bool is_followed) {
    const int32_t x = left + NMMO3_SIDE / 2, y = top + NMMO3_SIDE / 2;
    const bool is_player = body->kind == NMMO3_PLAYER;
    const uint32_t own = body->hp == 0 ? 0x777777u : is_player ? DRAW_CYAN : DRAW_RED;
    const uint32_t badge = nmmo3_element_colours[body->element];
    nmmo3_draw_feet(canvas, x, y, body);
    if (is_player) {
        draw_disc(canvas, x, y, 12, is_followed ? DRAW_WHITE : DRAW_NIGHT);
        draw_disc(canvas, x, y, 10, own);
    } else {
        draw_line(canvas, x - 9, y - 8, x - 12, y - 14, 4, DRAW_NIGHT);
        draw_line(canvas, x + 9, y - 8, x + 12, y - 14, 4, DRAW_NIGHT);
        draw_rectangle(canvas, x - 11, y - 10, 23, 20, DRAW_NIGHT);
        draw_rectangle(canvas, x - 9, y - 8, 19, 16, own);
    }
    if (body->element != NMMO3_NEUTRAL) nmmo3_draw_diamond(canvas, x, y + 6, 4, badge);
    nmmo3_draw_eyes(canvas, x, y, body);
    nmmo3_draw_weapon(canvas, x, y, body);
    draw_rectangle(canvas, left + 3, top - 1, 26, 5, DRAW_NIGHT);
    draw_bar(canvas, left + 4, top, 24, 3, body->hp, NMMO3_MAX_HP, body->hp > 33 ? DRAW_GREEN : DRAW_RED);
    draw_rectangle(canvas, x + 5, top + 22, body->combat > 9 ? 13 : 7, 9, DRAW_NIGHT);
    draw_number(canvas, x + (body->combat > 9 ? 17 : 11), top + 23, 1, DRAW_WHITE, body->combat);
}

#endif
