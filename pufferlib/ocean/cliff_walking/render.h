/* Rendering of cliff_walking: ground, the cliff, the goal as a square, the walker as a disc. */
#ifndef CLIFF_WALKING_RENDER_H
#define CLIFF_WALKING_RENDER_H

#include "cliff_walking.h"
#include "puffer_draw.h"

static const PufferKey cliff_walking_keys[] = {
    {"up", 0, CLIFF_WALKING_UP, "move up"},
    {"right", 0, CLIFF_WALKING_RIGHT, "move right"},
    {"down", 0, CLIFF_WALKING_DOWN, "move down"},
    {"left", 0, CLIFF_WALKING_LEFT, "move left"},
};

static inline void cliff_walking_draw(const CliffWalking *env, PufferCanvas *canvas) {
    const int32_t cell = canvas->width / CLIFF_WALKING_COLUMNS, inset = cell / 5;
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t place = 0; place <= CLIFF_WALKING_GOAL; place++) {
        const int32_t x = place % CLIFF_WALKING_COLUMNS * cell, y = place / CLIFF_WALKING_COLUMNS * cell;
        const bool is_cliff = place > CLIFF_WALKING_START && place < CLIFF_WALKING_GOAL;
        draw_rectangle(canvas, x + 1, y + 1, cell - 2, cell - 2, is_cliff ? DRAW_RED : DRAW_SLATE);
        if (place == CLIFF_WALKING_GOAL)
            draw_rectangle(canvas, x + inset, y + inset, cell - 2 * inset, cell - 2 * inset, DRAW_ORANGE);
    }
    draw_disc(canvas, env->place % CLIFF_WALKING_COLUMNS * cell + cell / 2,
              env->place / CLIFF_WALKING_COLUMNS * cell + cell / 2, cell * 3 / 10, DRAW_CYAN);
}

#endif
