/* Rendering of squared as the agent sees it: the grid, the agent as a disc, targets as squares. */
#ifndef SQUARED_RENDER_H
#define SQUARED_RENDER_H

#include "puffer_draw.h"
#include "squared.h"

static const PufferKey squared_keys[] = {
    {"up", 0, SQUARED_UP, "move up"},
    {"down", 0, SQUARED_DOWN, "move down"},
    {"left", 0, SQUARED_LEFT, "move left"},
    {"right", 0, SQUARED_RIGHT, "move right"},
    {"t", 0, SQUARED_UP_LEFT, "move up left"},
    {"y", 0, SQUARED_UP_RIGHT, "move up right"},
    {"g", 0, SQUARED_DOWN_LEFT, "move down left"},
    {"h", 0, SQUARED_DOWN_RIGHT, "move down right"},
    {"space", 0, SQUARED_STAY, "stay"},
};

static inline void squared_draw(const Squared *env, PufferCanvas *canvas) {
    const int32_t cell = canvas->width / env->size, inset = cell / 5;
    const int32_t gap = cell > 8; /* px between cells, if there is room */
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t row = 0; row < env->size; row++) {
        for (int32_t column = 0; column < env->size; column++) {
            draw_rectangle(canvas, column * cell + gap, row * cell + gap, cell - 2 * gap, cell - 2 * gap,
                           DRAW_SLATE);
        }
    }
    for (int32_t i = 0; i < env->num_targets; i++) {
        const uint8_t code = squared_code(env, i);
        if (code == SQUARED_EMPTY) continue;
        draw_rectangle(canvas, env->columns[i] * cell + inset, env->rows[i] * cell + inset, cell - 2 * inset,
                       cell - 2 * inset, code == SQUARED_HIT ? DRAW_NIGHT : DRAW_ORANGE);
    }
    draw_disc(canvas, env->column * cell + cell / 2, env->row * cell + cell / 2, cell * 2 / 5, DRAW_CYAN);
}

#endif
