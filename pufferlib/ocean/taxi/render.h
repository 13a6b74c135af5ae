/* Rendering of taxi: the town with its walls and stands, the taxi as a disc, the passenger as a small one.
 * Below are the colors of the passenger's stand, or of the taxi, and of the destination. */
#ifndef TAXI_RENDER_H
#define TAXI_RENDER_H

#include "puffer_draw.h"
#include "taxi.h"

static const PufferKey taxi_keys[] = {
    {"down", 0, TAXI_SOUTH, "drive south"}, {"up", 0, TAXI_NORTH, "drive north"},
    {"right", 0, TAXI_EAST, "drive east"},  {"left", 0, TAXI_WEST, "drive west"},
    {"space", 0, TAXI_PICK_UP, "pick up"},  {"enter", 0, TAXI_DROP_OFF, "drop off"},
};

static const uint32_t taxi_colours[] = {DRAW_RED, DRAW_GREEN, DRAW_YELLOW, DRAW_BLUE, DRAW_CYAN};

static inline void taxi_draw(const Taxi *env, PufferCanvas *canvas) {
    const int32_t cell = canvas->width / TAXI_SIZE, middle = cell / 2, town = cell * TAXI_SIZE;
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t place = 0; place < TAXI_SIZE * TAXI_SIZE; place++) {
        const int32_t x = place % TAXI_SIZE * cell, y = place / TAXI_SIZE * cell,
                      stand = taxi_stand_at(place);
        draw_rectangle(canvas, x + 2, y + 2, cell - 4, cell - 4,
                       stand < 0 ? DRAW_SLATE : taxi_colours[stand]);
    }
    for (int32_t place = 0; place < TAXI_SIZE * TAXI_SIZE; place++) {
        const int32_t x = place % TAXI_SIZE * cell, y = place / TAXI_SIZE * cell;
        if (taxi_walls[place]) draw_rectangle(canvas, x + cell - 4, y, 8, cell, DRAW_WHITE);
    }
    const int32_t x = env->place % TAXI_SIZE * cell + middle, y = env->place / TAXI_SIZE * cell + middle;
    const int32_t at = env->passenger == TAXI_INSIDE ? env->place : taxi_stands[env->passenger];
    draw_disc(canvas, x, y, cell * 2 / 5, DRAW_CYAN);
    draw_disc(canvas, at % TAXI_SIZE * cell + middle, at / TAXI_SIZE * cell + middle, cell / 8, DRAW_WHITE);
    draw_text(canvas, 10, town + 12, 2, DRAW_WHITE, "FROM");
    draw_rectangle(canvas, 70, town + 10, 20, 20, taxi_colours[env->passenger]);
    draw_text(canvas, 170, town + 12, 2, DRAW_WHITE, "TO");
    draw_rectangle(canvas, 206, town + 10, 20, 20, taxi_colours[env->destination]);
}

#endif
