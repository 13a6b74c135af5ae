/* Rendering of tactical, from above at an angle. The first unit's side of the board is below on the left, or
 * the side of the unit that the image is drawn for, to which an arrow points. Ground in reach is blue, and
 * targets for the explosive arrow have a dot. Events of the last step are drawn and listed. Both units'
 * points are in the corners. */
#ifndef TACTICAL_RENDER_H
#define TACTICAL_RENDER_H

#include "puffer_draw.h"
#include "tactical.h"

/* Directions are relative to the image. */
static const PufferKey tactical_keys[] = {
    {"up", 0, TACTICAL_STEP, "step up right"},
    {"right", 0, TACTICAL_STEP + 1, "step down right"},
    {"down", 0, TACTICAL_STEP + 2, "step down left"},
    {"left", 0, TACTICAL_STEP + 3, "step up left"},
    {"w", 0, TACTICAL_WIND, "wind arrow"},
    {"e", 0, TACTICAL_AIM, "explosive arrow"},
    {"f", 0, TACTICAL_FLY, "flying arrow"},
    {"g", 0, TACTICAL_ROOT, "rooting arrow"},
    {"s", 0, TACTICAL_RABBIT, "swift rabbit"},
    {"space", 0, TACTICAL_END, "end the turn, or wait"},
};

enum {
    TACTICAL_TILE_WIDTH = 30, /* from the center of a tile to its side, px */
    TACTICAL_TILE_HEIGHT = 15,
    TACTICAL_BOARD_TOP = 128,
    TACTICAL_WALL_HEIGHT = 24,
    TACTICAL_STONE_LIGHT = 0x8A97A6,
    TACTICAL_STONE = 0x66727F,
    TACTICAL_STONE_DARK = 0x4A545F,
};

static const uint32_t tactical_colours[] = {DRAW_CYAN, DRAW_ORANGE};
static const char *const tactical_names[] = {"CYAN", "ORANGE"};

/* ---- The board ------------------------------------------------------------------------------------ */

/* Converts between places of the board and of the image. The second unit sees the board turned, as in its
 * observations and actions. */
static inline int32_t tactical_seen(const PufferCanvas *canvas, int32_t place) {
    return canvas->agent == 1 ? tactical_turned(place) : place;
}

static inline int32_t tactical_pixel_x(const PufferCanvas *canvas, int32_t place) {
    const int32_t seen = tactical_seen(canvas, place);
    return canvas->width / 2 + (tactical_x(seen) - tactical_y(seen)) * TACTICAL_TILE_WIDTH;
}

static inline int32_t tactical_pixel_y(const PufferCanvas *canvas, int32_t place) {
    const int32_t seen = tactical_seen(canvas, place);
    return TACTICAL_BOARD_TOP + (tactical_x(seen) + tactical_y(seen)) * TACTICAL_TILE_HEIGHT;
}

/* A click on a place walks there, or shoots the explosive arrow there if it is out of reach. */
static inline bool tactical_area(const void *game, int32_t agent, int32_t action, PufferArea *area) {
    const Tactical *env = game;
    const PufferCanvas canvas = {.width = TACTICAL_PICTURE_WIDTH, .agent = agent};
    if (action < TACTICAL_MOVE || action >= TACTICAL_FLY || agent != env->actor) return false;
    if (!tactical_is_legal(&env->options, action)) return false;
    const int32_t own = tactical_place_of_cell((action - TACTICAL_MOVE) % TACTICAL_CELLS);
    if (action >= TACTICAL_EXPLODE && tactical_has(&env->options.moves, own)) return false;
    const int32_t place = agent == 0 ? own : tactical_turned(own);
    *area = (PufferArea){
        .x = tactical_pixel_x(&canvas, place) - TACTICAL_TILE_WIDTH / 2,
        .y = tactical_pixel_y(&canvas, place) - TACTICAL_TILE_HEIGHT / 2,
        .width = TACTICAL_TILE_WIDTH,
        .height = TACTICAL_TILE_HEIGHT,
    };
    return true;
}

static inline void tactical_draw_lozenge(PufferCanvas *canvas, int32_t x, int32_t y, int32_t width,
                                         int32_t height, uint32_t colour) {
    for (int32_t down = -height; down <= height; down++) {
        const int32_t half = width * (height - (down < 0 ? -down : down)) / height;
        draw_rectangle(canvas, x - half, y + down, 2 * half, 1, colour);
    }
}

static inline void tactical_draw_tile(PufferCanvas *canvas, int32_t place, uint32_t colour) {
    tactical_draw_lozenge(canvas, tactical_pixel_x(canvas, place), tactical_pixel_y(canvas, place),
                          TACTICAL_TILE_WIDTH, TACTICAL_TILE_HEIGHT, colour);
}

static inline void tactical_draw_hole(PufferCanvas *canvas, int32_t x, int32_t y, int32_t width,
                                      int32_t height) {
    tactical_draw_lozenge(canvas, x, y, width, height, 0x1B3A4B);
    tactical_draw_lozenge(canvas, x, y + height / 5, width * 3 / 4, height * 3 / 4, 0x030B10);
}

static inline void tactical_draw_block(PufferCanvas *canvas, int32_t x, int32_t y) {
    for (int32_t across = -TACTICAL_TILE_WIDTH; across < TACTICAL_TILE_WIDTH; across++) {
        const int32_t from_side = TACTICAL_TILE_WIDTH - (across < 0 ? -across : across);
        const int32_t bottom = y + TACTICAL_TILE_HEIGHT * from_side / TACTICAL_TILE_WIDTH;
        draw_rectangle(canvas, x + across, bottom - TACTICAL_WALL_HEIGHT, 1, TACTICAL_WALL_HEIGHT,
                       across < 0 ? TACTICAL_STONE_DARK : TACTICAL_STONE);
    }
    tactical_draw_lozenge(canvas, x, y - TACTICAL_WALL_HEIGHT, TACTICAL_TILE_WIDTH, TACTICAL_TILE_HEIGHT,
                          TACTICAL_STONE_LIGHT);
}

/* Returns true if an explosion of the last step reached the place. */
static inline bool tactical_is_scorched(const Tactical *env, int32_t place) {
    for (int32_t i = 0; i < env->num_events; i++) {
        if (env->events[i].spell != TACTICAL_EXPLOSIVE) continue;
        if (tactical_distance(env->events[i].to, place) <= TACTICAL_BLAST) return true;
    }
    return false;
}

static inline void tactical_draw_place(const Tactical *env, PufferCanvas *canvas, int32_t place) {
    static const uint32_t ground[] = {0x3F7A52, 0x37704A}, reach[] = {0x4474B8, 0x3D6AAA},
                          scorched[] = {0xC07038, 0xB06430};
    const TacticalMap *map = tactical_map(env);
    const int32_t odd = (tactical_x(place) + tactical_y(place)) & 1;
    const int32_t own = env->actor == 0 ? place : tactical_turned(place);
    if (tactical_has(&map->walls, place)) return;
    if (!tactical_has(&map->ground, place)) {
        tactical_draw_hole(canvas, tactical_pixel_x(canvas, place), tactical_pixel_y(canvas, place),
                           TACTICAL_TILE_WIDTH, TACTICAL_TILE_HEIGHT);
    } else if (tactical_is_scorched(env, place)) {
        tactical_draw_tile(canvas, place, scorched[odd]);
    } else {
        const bool reached = !tactical_is_over(env) && tactical_has(&env->options.moves, own);
        tactical_draw_tile(canvas, place, reached ? reach[odd] : ground[odd]);
    }
    if (!tactical_is_over(env) && tactical_has(&env->options.blasts, own)) {
        tactical_draw_lozenge(canvas, tactical_pixel_x(canvas, place), tactical_pixel_y(canvas, place), 5, 3,
                              tactical_colours[env->actor]);
    }
}

/* ---- Units and their actions --------------------------------------------------------------------------- */

static inline void tactical_draw_archer(const Tactical *env, PufferCanvas *canvas, int32_t unit, int32_t x,
                                        int32_t y) {
    const TacticalUnit *archer = &env->units[unit];
    const uint32_t colour = archer->hp > 0 ? tactical_colours[unit] : 0x777777;
    tactical_draw_lozenge(canvas, x, y, 22, 11, 0x1B3426);
    for (int32_t up = 0; up < 34; up++) {
        const int32_t half = 14 - up / 3;
        draw_rectangle(canvas, x - half, y + 3 - up, 2 * half, 1, colour);
    }
    draw_disc(canvas, x, y - 36, 9, 0xF0C8A0);
    for (int32_t up = 0; up < 9; up++)
        draw_rectangle(canvas, x - 10 + up, y - 38 - up, 20 - 2 * up, 1, colour);
    draw_line(canvas, x + 13, y - 34, x + 20, y - 22, 3, 0x7A4A20);
    draw_line(canvas, x + 20, y - 22, x + 20, y - 12, 3, 0x7A4A20);
    draw_line(canvas, x + 20, y - 12, x + 13, y, 3, 0x7A4A20);
    draw_line(canvas, x + 13, y - 34, x + 13, y, 1, DRAW_WHITE);
    draw_rectangle(canvas, x - 21, y - 63, 42, 8, DRAW_NIGHT);
    draw_bar(canvas, x - 20, y - 62, 40, 6, archer->hp, env->hp, colour);
    if (env->actor == unit && !tactical_is_over(env)) {
        tactical_draw_lozenge(canvas, x, y - 74, 7, 7, DRAW_YELLOW);
    }
}

static inline void tactical_draw_standing(const Tactical *env, PufferCanvas *canvas, int32_t place) {
    const int32_t x = tactical_pixel_x(canvas, place), y = tactical_pixel_y(canvas, place);
    if (tactical_has(&tactical_map(env)->walls, place)) tactical_draw_block(canvas, x, y);
    if (place == env->units[0].place) tactical_draw_archer(env, canvas, 0, x, y);
    if (place == tactical_turned(env->units[1].place)) tactical_draw_archer(env, canvas, 1, x, y);
}

static inline void tactical_draw_event(PufferCanvas *canvas, const TacticalEvent *event) {
    static const uint32_t colours[] = {[TACTICAL_EXPLOSIVE] = DRAW_RED,
                                       [TACTICAL_FLYING] = DRAW_YELLOW,
                                       [TACTICAL_ROOTING] = DRAW_GREEN,
                                       [TACTICAL_WINDY] = DRAW_WHITE};
    const int32_t from_x = tactical_pixel_x(canvas, event->from),
                  from_y = tactical_pixel_y(canvas, event->from);
    const int32_t to_x = tactical_pixel_x(canvas, event->to), to_y = tactical_pixel_y(canvas, event->to);
    if (event->spell == TACTICAL_SPELLS) {
        for (int32_t i = 0; i <= 8; i++) {
            tactical_draw_lozenge(canvas, from_x + (to_x - from_x) * i / 8, from_y + (to_y - from_y) * i / 8,
                                  6, 3, tactical_colours[event->unit]);
        }
    } else if (event->spell != TACTICAL_SWIFT) {
        const int32_t aim = event->spell == TACTICAL_EXPLOSIVE ? 4 : 18;
        draw_line(canvas, from_x, from_y - 20, to_x, to_y - aim, 3, colours[event->spell]);
        draw_disc(canvas, to_x, to_y - aim, event->spell == TACTICAL_EXPLOSIVE ? 10 : 5,
                  colours[event->spell]);
    }
}

static inline void tactical_draw_events(const Tactical *env, PufferCanvas *canvas, bool moves) {
    for (int32_t i = 0; i < env->num_events; i++) {
        const bool is_move = env->events[i].spell == TACTICAL_SPELLS;
        if (is_move == moves) tactical_draw_event(canvas, &env->events[i]);
    }
}

/* Above the unit that the image is drawn for, and anything above it. */
static inline void tactical_draw_arrow(const Tactical *env, PufferCanvas *canvas) {
    const int32_t own = env->units[canvas->agent].place,
                  place = canvas->agent == 0 ? own : tactical_turned(own);
    draw_arrow(canvas, tactical_pixel_x(canvas, place), tactical_pixel_y(canvas, place) - 84);
}

/* ---- Texts ------------------------------------------------------------------------------------------ */

static inline void tactical_draw_points(PufferCanvas *canvas, int32_t x, int32_t y, const char *name,
                                        int32_t value, int32_t full, uint32_t colour) {
    draw_text(canvas, x, y, 2, DRAW_WHITE, name);
    draw_bar(canvas, x + 32, y, 128, 14, value < full ? value : full, full > 0 ? full : 1, colour);
    draw_number(canvas, x + 220, y, 2, DRAW_WHITE, value);
}

static inline void tactical_draw_panel(const Tactical *env, PufferCanvas *canvas, int32_t unit, int32_t x) {
    const TacticalUnit *archer = &env->units[unit];
    draw_text(canvas, x, 16, 3, tactical_colours[unit], tactical_names[unit]);
    if (unit == canvas->agent) draw_text(canvas, x + 169, 16, 3, DRAW_YELLOW, "YOU");
    tactical_draw_points(canvas, x, 46, "HP", archer->hp, env->hp, DRAW_RED);
    tactical_draw_points(canvas, x, 66, "AP", archer->ap, env->ap, DRAW_YELLOW);
    tactical_draw_points(canvas, x, 86, "MP", archer->mp, env->mp, DRAW_GREEN);
    draw_text(canvas, x, 108, 1, DRAW_WHITE, "TURNS UNTIL ROOTING      RABBIT");
    draw_number(canvas, x + 138, 108, 1, DRAW_WHITE, archer->rooting);
    draw_number(canvas, x + 204, 108, 1, DRAW_WHITE, archer->swift);
}

/* The winner once the game is over, before that the turn, and the kind of the map. */
static inline void tactical_draw_title(const Tactical *env, PufferCanvas *canvas) {
    static const char *const kinds[] = {"MEADOW", "RUINS", "LAKES", "RIVER", "ISLAND"};
    const char *kind = kinds[env->board % TACTICAL_KINDS];
    const int32_t middle = canvas->width / 2, winner = env->units[0].hp > 0 ? 0 : 1;
    draw_text(canvas, middle - draw_text_width((int32_t)strlen(kind), 2) / 2, 46, 2, 0x6A8794, kind);
    if (!tactical_is_over(env)) {
        draw_text(canvas, middle - 66, 16, 3, DRAW_WHITE, "TURN");
        draw_number(canvas, middle + 66, 16, 3, DRAW_WHITE, env->turn);
    } else if (env->units[1 - winner].hp > 0 || env->units[winner].hp == 0) {
        draw_text(canvas, middle - draw_text_width(4, 3) / 2, 16, 3, DRAW_WHITE, "DRAW");
    } else {
        const int32_t name = (int32_t)strlen(tactical_names[winner]);
        const int32_t left = middle - draw_text_width(name + 5, 3) / 2;
        draw_text(canvas, left, 16, 3, tactical_colours[winner], tactical_names[winner]);
        draw_text(canvas, left + 18 * (name + 1), 16, 3, tactical_colours[winner], "WINS");
    }
}

/* The last events, the newest at the bottom. */
static inline void tactical_draw_report(const Tactical *env, PufferCanvas *canvas) {
    static const char *const deeds[] = {"EXPLOSIVE ARROW", "FLYING ARROW", "ROOTING ARROW",
                                        "WIND ARROW",      "SWIFT RABBIT", "WALKS"};
    const int32_t lines = env->num_events < 6 ? env->num_events : 6;
    for (int32_t i = 0; i < lines; i++) {
        const TacticalEvent *event = &env->events[env->num_events - lines + i];
        const int32_t y = canvas->height - 18 * (lines - i) - 6;
        draw_text(canvas, 16, y, 2, tactical_colours[event->unit], tactical_names[event->unit]);
        draw_text(canvas, 100, y, 2, DRAW_WHITE, deeds[event->spell]);
    }
}

static inline void tactical_draw_legend(PufferCanvas *canvas) {
    const int32_t x = canvas->width - 206, y = canvas->height - 84;
    static const char *const meanings[] = {"IN REACH", "ARROW CAN EXPLODE", "HOLE", "WALL"};
    for (int32_t i = 0; i < 4; i++) draw_text(canvas, x + 40, y + 22 * i - 4, 1, DRAW_WHITE, meanings[i]);
    tactical_draw_lozenge(canvas, x + 16, y, 16, 8, 0x4474B8);
    tactical_draw_lozenge(canvas, x + 16, y + 22, 16, 8, 0x3F7A52);
    tactical_draw_lozenge(canvas, x + 16, y + 22, 5, 3, DRAW_CYAN);
    tactical_draw_hole(canvas, x + 16, y + 44, 16, 8);
    tactical_draw_lozenge(canvas, x + 16, y + 66, 16, 8, TACTICAL_STONE_LIGHT);
}

static inline void tactical_draw(const Tactical *env, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t cell = 0; cell < TACTICAL_CELLS; cell++) {
        tactical_draw_place(env, canvas, tactical_place_of_cell(cell));
    }
    tactical_draw_events(env, canvas, true);
    /* From back to front. */
    for (int32_t depth = 0; depth < 2 * TACTICAL_SIDE - 1; depth++) {
        for (int32_t x = 0; x < TACTICAL_SIDE; x++) {
            if (!tactical_is_inside(x, depth - x)) continue;
            tactical_draw_standing(env, canvas, tactical_seen(canvas, tactical_place(x, depth - x)));
        }
    }
    tactical_draw_events(env, canvas, false);
    tactical_draw_panel(env, canvas, 0, 16);
    tactical_draw_panel(env, canvas, 1, canvas->width - 236);
    tactical_draw_title(env, canvas);
    tactical_draw_report(env, canvas);
    tactical_draw_legend(canvas);
    if (canvas->agent >= 0) tactical_draw_arrow(env, canvas);
}

#endif
