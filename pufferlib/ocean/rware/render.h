/* Rendering of rware: shelves in their places, requested ones in orange, the goals, and robots whose nose
 * points forward. The robot that the image is drawn for is yellow. A robot in a frame carries a shelf of that
 * colour. The number of deliveries is above. */
#ifndef RWARE_RENDER_H
#define RWARE_RENDER_H

#include "puffer_draw.h"
#include "rware.h"

static const PufferKey rware_keys[] = {
    {"", 0, RWARE_STAY, "wait"},
    {"up", 0, RWARE_FORWARD, "drive forward"},
    {"left", 0, RWARE_LEFT, "turn left"},
    {"right", 0, RWARE_RIGHT, "turn right"},
    {"space", 0, RWARE_LIFT, "lift or put down"},
};

#define RWARE_TILE  0xD9D4C7u
#define RWARE_SEAM  0xC9C3B4u
#define RWARE_MARK  0xA39C8Bu /* of a free place */
#define RWARE_RACK  0x6E7F8Du
#define RWARE_SHADE 0x54636Fu
#define RWARE_ASKED DRAW_ORANGE
#define RWARE_LAMP  0xB5651Cu

enum { RWARE_PIXELS = 40, RWARE_PANEL = 60 }; /* size of a cell, height of the panel, px */

static inline void rware_draw_floor(PufferCanvas *canvas, int32_t x, int32_t y, uint32_t colour) {
    draw_rectangle(canvas, x, y, RWARE_PIXELS, RWARE_PIXELS, RWARE_SEAM);
    draw_rectangle(canvas, x + 1, y + 1, RWARE_PIXELS - 1, RWARE_PIXELS - 1, colour);
}

/* A rack of three boards, seen from above. */
static inline void rware_draw_shelf(PufferCanvas *canvas, int32_t x, int32_t y, uint32_t colour,
                                    uint32_t shade) {
    draw_rectangle(canvas, x + 5, y + 5, 32, 32, RWARE_MARK);
    draw_rectangle(canvas, x + 4, y + 4, 32, 32, shade);
    for (int32_t board = 0; board < 3; board++)
        draw_rectangle(canvas, x + 6, y + 6 + 10 * board, 28, 8, colour);
}

static inline void rware_draw_cell(PufferCanvas *canvas, int32_t x, int32_t y, int32_t kind) {
    rware_draw_floor(canvas, x, y, kind == RWARE_GOAL ? DRAW_GREEN : RWARE_TILE);
    if (kind == RWARE_SHELF) {
        rware_draw_shelf(canvas, x, y, RWARE_RACK, RWARE_SHADE);
    } else if (kind == RWARE_REQUESTED) {
        rware_draw_shelf(canvas, x, y, RWARE_ASKED, RWARE_LAMP);
    } else if (kind == RWARE_PLACE) {
        draw_rectangle(canvas, x + 4, y + 4, 32, 32, RWARE_MARK);
        draw_rectangle(canvas, x + 6, y + 6, 28, 28, RWARE_TILE);
    } else if (kind == RWARE_GOAL) {
        draw_text(canvas, x + 13, y + 10, 3, DRAW_WHITE, "G");
    }
}

/* A triangle that points in the robot's direction, its base behind the center. */
static inline void rware_draw_nose(PufferCanvas *canvas, int32_t x, int32_t y, int32_t heading,
                                   uint32_t colour) {
    for (int32_t ahead = -5; ahead <= 8; ahead++) {
        const int32_t half = (8 - ahead) / 2;
        if (heading % 2 == 0) {
            draw_rectangle(canvas, x + (heading == 0 ? ahead : -ahead), y - half, 1, 2 * half + 1, colour);
        } else {
            draw_rectangle(canvas, x - half, y + (heading == 1 ? ahead : -ahead), 2 * half + 1, 1, colour);
        }
    }
}

static inline void rware_draw_robot(const Rware *env, PufferCanvas *canvas, int32_t i) {
    const int32_t row = env->cells[i] / RWARE_PITCH - 1, column = env->cells[i] % RWARE_PITCH - 1;
    const int32_t x = column * RWARE_PIXELS, y = RWARE_PANEL + row * RWARE_PIXELS, half = RWARE_PIXELS / 2;
    const bool is_own = i == canvas->agent;
    if (env->loads[i] != RWARE_EMPTY) {
        const bool full = env->loads[i] == RWARE_CARRY;
        draw_rectangle(canvas, x + 1, y + 1, 38, 38, DRAW_NIGHT);
        rware_draw_shelf(canvas, x, y, full ? RWARE_ASKED : RWARE_RACK, full ? RWARE_LAMP : RWARE_SHADE);
    }
    draw_disc(canvas, x + half, y + half, 13, DRAW_NIGHT);
    draw_disc(canvas, x + half, y + half, 11, is_own ? DRAW_YELLOW : DRAW_CYAN);
    rware_draw_nose(canvas, x + half, y + half, env->headings[i], is_own ? DRAW_NIGHT : DRAW_WHITE);
}

/* On the robot that the image is drawn for. */
static inline void rware_draw_arrow(const Rware *env, PufferCanvas *canvas) {
    const int32_t cell = env->cells[canvas->agent], row = cell / RWARE_PITCH - 1;
    const int32_t x = (cell % RWARE_PITCH - 1) * RWARE_PIXELS, y = RWARE_PANEL + row * RWARE_PIXELS;
    draw_arrow(canvas, x + RWARE_PIXELS / 2, y + 8);
}

static inline void rware_draw_panel(const Rware *env, PufferCanvas *canvas) {
    static const struct {
        const char *name;
        uint32_t colour;
        int32_t at;
    } legend[] = {{"ASKED FOR", RWARE_ASKED, 8}, {"SHELF", RWARE_RACK, 156}, {"GOAL", DRAW_GREEN, 256}};
    draw_rectangle(canvas, 0, 0, canvas->width, RWARE_PANEL, DRAW_NIGHT);
    draw_text(canvas, 8, 10, 2, DRAW_WHITE, "DELIVERED");
    draw_number(canvas, 184, 10, 2, DRAW_YELLOW, env->deliveries);
    draw_text(canvas, 256, 10, 2, DRAW_WHITE, "STEP");
    draw_number(canvas, 380, 10, 2, DRAW_YELLOW, env->game.episode_length);
    for (size_t i = 0; i < sizeof legend / sizeof *legend; i++) {
        draw_rectangle(canvas, legend[i].at, 36, 14, 14, legend[i].colour);
        draw_text(canvas, legend[i].at + 22, 36, 2, DRAW_WHITE, legend[i].name);
    }
}

static inline void rware_draw(const Rware *env, PufferCanvas *canvas) {
    for (int32_t row = 0; row < rware_rows(env); row++) {
        for (int32_t column = 0; column < rware_columns(env); column++) {
            rware_draw_cell(canvas, column * RWARE_PIXELS, RWARE_PANEL + row * RWARE_PIXELS,
                            rware_kind(env, rware_cell(row, column)));
        }
    }
    for (int32_t i = 0; i < env->num_agents; i++) rware_draw_robot(env, canvas, i);
    rware_draw_panel(env, canvas);
    if (canvas->agent >= 0) rware_draw_arrow(env, canvas);
}

#endif
