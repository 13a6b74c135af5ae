/* Rendering of moba: the map with its forest, lanes and river, and creeps, neutrals and towers with their hp.
 * Heroes are letters, radiant's light blue, dire's red, with hp and mana. Shots are lines, and rings mark
 * used abilities. A panel shows the score, the heroes and a legend. */
#ifndef MOBA_RENDER_H
#define MOBA_RENDER_H

#include "moba.h"
#include "puffer_draw.h"

enum { MOBA_CELL_PX = MOBA_PICTURE_HEIGHT / MOBA_SIZE, MOBA_MAP_PX = MOBA_CELL_PX * MOBA_SIZE };
enum { MOBA_PANEL_PX = MOBA_MAP_PX + 14, MOBA_FLASH_TICKS = 5 };

static const uint32_t moba_team_colours[3] = {DRAW_CYAN, DRAW_RED, 0xB07A3Cu};
static const uint32_t moba_cast_colours[3] = {DRAW_YELLOW, 0x9BE36Au, 0xE07BE0u}; /* Q, W, E */
static const char *const moba_role_names[MOBA_ROLES] = {"SUPPORT", "ASSASSIN", "BURST", "TANK", "CARRY"};

/* Q and R have other meanings in interactive play, so the abilities are on 1, 2, 3. */
static const PufferKey moba_keys[] = {
    {"", 0, 3, "stand"},         {"", 1, 3, "stand"},
    {"up", 0, 0, "walk up"},     {"down", 0, 6, "walk down"},
    {"left", 1, 0, "walk left"}, {"right", 1, 6, "walk right"},
    {"1", 3, 1, "ability Q"},    {"2", 4, 1, "ability W"},
    {"3", 5, 1, "ability E"},    {"space", 2, 2, "aim at heroes and towers only"},
};

/* ---- Small shapes ----------------------------------------------------------------------------------------
 */

static inline int32_t moba_px(int32_t cell) {
    return cell * MOBA_CELL_PX + MOBA_CELL_PX / 2;
}

/* A circle with a line width of two px. */
static inline void moba_draw_ring(PufferCanvas *canvas, int32_t x, int32_t y, int32_t radius,
                                  uint32_t colour) {
    int32_t across = radius, down = 0;
    while (across >= down) {
        for (int32_t octant = 0; octant < 8; octant++) {
            const int32_t u = octant & 1 ? down : across, v = octant & 1 ? across : down;
            draw_rectangle(canvas, x + (octant & 2 ? -u : u), y + (octant & 4 ? -v : v), 2, 2, colour);
        }
        down++;
        if (across * across + down * down > radius * radius) across--;
    }
}

/* A unit's hp bar above it, hidden at full hp. */
static inline void moba_draw_life(PufferCanvas *canvas, const MobaUnit *unit, int32_t width, int32_t above) {
    if (unit->hp == unit->max_hp) return;
    const uint32_t colour = 3 * unit->hp > unit->max_hp ? DRAW_GREEN : DRAW_RED;
    draw_bar(canvas, moba_px(unit->x) - width / 2, moba_px(unit->y) - above, width, 2, unit->hp, unit->max_hp,
             colour);
}

static inline void moba_draw_letter(PufferCanvas *canvas, int32_t x, int32_t y, int32_t role,
                                    uint32_t colour) {
    const char letter[2] = {moba_role_names[role][0], '\0'};
    draw_disc(canvas, x, y, 8, DRAW_NIGHT);
    draw_disc(canvas, x, y, 7, colour);
    draw_text(canvas, x - 2, y - 3, 1, DRAW_NIGHT, letter);
}

static inline void moba_draw_fort(PufferCanvas *canvas, int32_t x, int32_t y, bool is_ancient,
                                  uint32_t colour) {
    const int32_t half = is_ancient ? 11 : 6;
    draw_rectangle(canvas, x - half - 1, y - half - 1, 2 * half + 2, 2 * half + 2, DRAW_NIGHT);
    draw_rectangle(canvas, x - half, y - half, 2 * half, 2 * half, colour);
    if (is_ancient) {
        draw_disc(canvas, x, y, 7, DRAW_NIGHT);
        draw_disc(canvas, x, y, 5, DRAW_WHITE);
    } else {
        draw_rectangle(canvas, x - half + 3, y - half + 3, 2 * half - 6, 2 * half - 6, DRAW_NIGHT);
    }
}

/* ---- The map ---------------------------------------------------------------------------------------------
 */

static inline uint32_t moba_ground_colour(int32_t x, int32_t y) {
    static const uint32_t colours[] = {
        [MOBA_FOREST] = 0x12291Cu, [MOBA_GROUND] = 0x3A4F33u, [MOBA_CLEARING] = 0x46583Au,
        [MOBA_RIVER] = 0x24506Bu,  [MOBA_LANE] = 0x6B6250u,   [MOBA_BASE] = 0x4A5660u,
    };
    const MobaTerrain terrain = (MobaTerrain)moba_terrain[y][x];
    if (terrain == MOBA_BASE && x > y) return 0x5E4A50u;
    /* A slight variation between cells, the same in every image. */
    const uint32_t grain = ((uint32_t)x * 73856093u ^ (uint32_t)y * 19349663u) >> 7 & 1;
    return colours[terrain] + grain * 0x030303u;
}

static inline void moba_draw_map(PufferCanvas *canvas) {
    const int32_t size = MOBA_CELL_PX;
    for (int32_t y = 0; y < MOBA_SIZE; y++) {
        for (int32_t x = 0; x < MOBA_SIZE; x++) {
            draw_rectangle(canvas, x * size, y * size, size, size, moba_ground_colour(x, y));
        }
    }
    for (int32_t y = 0; y < MOBA_SIZE; y++) {
        for (int32_t x = 0; x < MOBA_SIZE; x++) {
            const uint32_t hash = ((uint32_t)x * 2654435761u ^ (uint32_t)y * 2246822519u) >> 9;
            if (moba_terrain[y][x] != MOBA_FOREST || hash % 3 != 0) continue;
            const int32_t u = moba_px(x) + (int32_t)(hash >> 4 & 3),
                          v = moba_px(y) + (int32_t)(hash >> 6 & 3);
            draw_disc(canvas, u, v, 3, 0x1B4228u);
            draw_disc(canvas, u - 1, v - 1, 1, 0x2B6038u);
        }
    }
}

/* ---- Units -----------------------------------------------------------------------------------------------
 */

static inline void moba_draw_towers(const Moba *env, PufferCanvas *canvas) {
    for (int32_t id = MOBA_FIRST_TOWER; id < MOBA_FIRST_NEUTRAL; id++) {
        const MobaUnit *tower = &env->units[id];
        const int32_t x = moba_px(tower->x), y = moba_px(tower->y);
        const bool is_ancient = tower->place == MOBA_ANCIENT;
        if (tower->hp == 0) {
            draw_disc(canvas, x, y, 4, DRAW_SLATE);
            continue;
        }
        moba_draw_fort(canvas, x, y, is_ancient, moba_team_colours[tower->team]);
        moba_draw_life(canvas, tower, is_ancient ? 26 : 16, is_ancient ? 17 : 11);
        const MobaUnit *target = &env->units[tower->target];
        if (tower->target == 0 || env->tick % MOBA_TOWER_ATTACK_TICKS > 1) continue;
        draw_line(canvas, x, y, moba_px(target->x), moba_px(target->y), 2, DRAW_YELLOW);
    }
}

static inline void moba_draw_minions(const Moba *env, PufferCanvas *canvas) {
    for (int32_t id = MOBA_FIRST_NEUTRAL; id < MOBA_UNITS; id++) {
        const MobaUnit *unit = &env->units[id];
        if (unit->hp == 0) continue;
        const int32_t x = moba_px(unit->x), y = moba_px(unit->y);
        draw_disc(canvas, x, y, 4, DRAW_NIGHT);
        draw_disc(canvas, x, y, 3, unit->stun > 0 ? DRAW_WHITE : moba_team_colours[unit->team]);
        moba_draw_life(canvas, unit, 8, 8);
    }
}

static inline void moba_draw_hero(const Moba *env, PufferCanvas *canvas, int32_t id) {
    const MobaUnit *unit = &env->units[id];
    const MobaHero *hero = &env->heroes[id - MOBA_FIRST_HERO];
    const int32_t x = (int32_t)(hero->x * MOBA_CELL_PX), y = (int32_t)(hero->y * MOBA_CELL_PX);
    if (id == MOBA_FIRST_HERO + canvas->agent) draw_disc(canvas, x, y, 12, DRAW_YELLOW);
    moba_draw_letter(canvas, x, y, unit->place, moba_team_colours[unit->team]);
    if (unit->stun > 0) moba_draw_ring(canvas, x, y, 10, DRAW_WHITE);
    draw_rectangle(canvas, x - 10, y - 16, 20, 6, DRAW_NIGHT);
    draw_bar(canvas, x - 9, y - 15, 18, 2, unit->hp, unit->max_hp,
             3 * unit->hp > unit->max_hp ? DRAW_GREEN : DRAW_RED);
    draw_bar(canvas, x - 9, y - 13, 18, 2, hero->mana, hero->max_mana, DRAW_BLUE);
}

/* Above the hero for which the image is drawn. */
static inline void moba_draw_arrow(const Moba *env, PufferCanvas *canvas) {
    const MobaHero *hero = &env->heroes[canvas->agent];
    draw_arrow(canvas, (int32_t)(hero->x * MOBA_CELL_PX), (int32_t)(hero->y * MOBA_CELL_PX) - 18);
}

static inline void moba_draw_flashes(const Moba *env, PufferCanvas *canvas) {
    for (int32_t i = 0; i < MOBA_HEROES; i++) {
        const MobaHero *hero = &env->heroes[i];
        const int32_t x = (int32_t)(hero->x * MOBA_CELL_PX), y = (int32_t)(hero->y * MOBA_CELL_PX);
        if (hero->attacked != 0) {
            const MobaUnit *target = &env->units[hero->attacked];
            draw_line(canvas, x, y, moba_px(target->x), moba_px(target->y), 1, DRAW_WHITE);
        }
        if (hero->cast == 0 || hero->cast_age >= MOBA_FLASH_TICKS) continue;
        const uint32_t colour = moba_cast_colours[hero->cast - 1];
        const int32_t u = moba_px(hero->cast_x), v = moba_px(hero->cast_y);
        if (hero->cast_age == 0) draw_line(canvas, x, y, u, v, 2, colour);
        for (int32_t ring = 0; ring < 3; ring++) {
            moba_draw_ring(canvas, u, v, 9 + 4 * hero->cast_age + 4 * ring, colour);
        }
    }
}

/* ---- The panel -------------------------------------------------------------------------------------------
 */

static inline void moba_draw_team(const Moba *env, PufferCanvas *canvas, int32_t team, int32_t y) {
    const int32_t left = MOBA_PANEL_PX, right = canvas->width - 12;
    const uint32_t colour = moba_team_colours[team];
    draw_text(canvas, left, y, 2, colour, team == MOBA_RADIANT ? "RADIANT" : "DIRE");
    draw_text(canvas, left, y + 24, 1, DRAW_WHITE, "TOWERS LEFT");
    draw_number(canvas, right, y + 21, 2, DRAW_WHITE, MOBA_SIDE_TOWERS - env->fallen[team]);
    draw_text(canvas, left, y + 44, 1, DRAW_WHITE, "HEROES KILLED");
    draw_number(canvas, right, y + 41, 2, DRAW_WHITE, env->hero_kills[team]);
    for (int32_t role = 0; role < MOBA_ROLES; role++) {
        const int32_t id = moba_hero_id(team, role), v = y + 74 + 24 * role;
        const MobaUnit *unit = &env->units[id];
        const MobaHero *hero = &env->heroes[id - MOBA_FIRST_HERO];
        moba_draw_letter(canvas, left + 8, v, role, colour);
        draw_bar(canvas, left + 24, v - 7, 104, 8, unit->hp, unit->max_hp, DRAW_GREEN);
        draw_bar(canvas, left + 24, v + 2, 104, 4, hero->mana, hero->max_mana, DRAW_BLUE);
        draw_number(canvas, right, v - 7, 2, DRAW_WHITE, hero->level);
        if (id == MOBA_FIRST_HERO + canvas->agent)
            draw_rectangle(canvas, left - 12, v - 7, 10, 14, DRAW_YELLOW);
    }
}

static inline void moba_draw_legend(PufferCanvas *canvas, int32_t y) {
    static const char *const rings[3] = {"ABILITY Q", "ABILITY W", "ABILITY E"};
    static const char *const others[4] = {"CREEP", "NEUTRAL", "TOWER", "ANCIENT"};
    const int32_t left = MOBA_PANEL_PX, text = left + 30;
    for (int32_t role = 0; role < MOBA_ROLES; role++) {
        moba_draw_letter(canvas, left + 10, y + 20 * role, role, DRAW_WHITE);
        draw_text(canvas, text, y + 20 * role - 3, 1, DRAW_WHITE, moba_role_names[role]);
    }
    const int32_t middle = y + 20 * MOBA_ROLES + 8;
    draw_disc(canvas, left + 10, middle, 3, DRAW_WHITE);
    draw_disc(canvas, left + 10, middle + 22, 3, moba_team_colours[MOBA_NEUTRAL]);
    moba_draw_fort(canvas, left + 10, middle + 44, false, DRAW_WHITE);
    moba_draw_fort(canvas, left + 10, middle + 72, true, DRAW_WHITE);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t v = middle + 22 * i + (i == 3 ? 6 : 0);
        draw_text(canvas, text, v - 3, 1, DRAW_WHITE, others[i]);
    }
    for (int32_t i = 0; i < 3; i++) {
        moba_draw_ring(canvas, left + 10, middle + 102 + 22 * i, 7, moba_cast_colours[i]);
        draw_text(canvas, text, middle + 99 + 22 * i, 1, DRAW_WHITE, rings[i]);
    }
}

static inline void moba_draw(const Moba *env, PufferCanvas *canvas) {
    const int32_t right = canvas->width - 12;
    draw_clear(canvas, DRAW_NIGHT);
    moba_draw_map(canvas);
    moba_draw_towers(env, canvas);
    moba_draw_minions(env, canvas);
    for (int32_t i = 0; i < MOBA_HEROES; i++) moba_draw_hero(env, canvas, MOBA_FIRST_HERO + i);
    moba_draw_flashes(env, canvas);
    if (canvas->agent >= 0) moba_draw_arrow(env, canvas);
    draw_rectangle(canvas, MOBA_MAP_PX, 0, canvas->width - MOBA_MAP_PX, canvas->height, DRAW_NIGHT);
    draw_text(canvas, MOBA_PANEL_PX, 17, 1, DRAW_WHITE, "TICK");
    draw_number(canvas, right, 14, 2, DRAW_WHITE, env->tick);
    moba_draw_team(env, canvas, MOBA_RADIANT, 46);
    moba_draw_team(env, canvas, MOBA_DIRE, 262);
    moba_draw_legend(canvas, 486);
}

#endif
