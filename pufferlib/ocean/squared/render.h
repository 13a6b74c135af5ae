/* Squared, drawn: the grid, the agent as a disc, the target as a square. */
#ifndef SQUARED_RENDER_H
#define SQUARED_RENDER_H

#include "puffer_draw.h"
#include "squared.h"

static const PufferKey squared_keys[] = {
    {"up", 0, SQUARED_UP, "move up"},       {"down", 0, SQUARED_DOWN, "move down"},
    {"left", 0, SQUARED_LEFT, "move left"}, {"right", 0, SQUARED_RIGHT, "move right"},
    {"space", 0, SQUARED_STAY, "stay"},
};

static inline void squared_draw(const Squared *env, PufferCanvas *canvas) {
    const int32_t cell = canvas->width / env->size;
    const int32_t gap = cell > 8; /* px between cells, where there is room */
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t row = 0; row < env->size; row++) {
        for (int32_t column = 0; column < env->size; column++) {
            draw_rectangle(canvas, column * cell + gap, row * cell + gap, cell - 2 * gap, cell - 2 * gap,
                           DRAW_SLATE);
        }
    }
    int32_t row = env->target / env->size, column = env->target % env->size, inset = cell / 5;
    draw_rectangle(canvas, column * cell + inset, row * cell + inset, cell - 2 * inset, cell - 2 * inset,
                   DRAW_ORANGE);
    draw_disc(canvas, env->column * cell + cell / 2, env->row * cell + cell / 2, cell * 2 / 5, DRAW_CYAN);
}

#endif
