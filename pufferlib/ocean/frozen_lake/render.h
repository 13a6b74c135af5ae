/* Rendering of frozen_lake: ice, holes, the goal as a square, the player as a disc. */
#ifndef FROZEN_LAKE_RENDER_H
#define FROZEN_LAKE_RENDER_H

#include "frozen_lake.h"
#include "puffer_draw.h"

static const PufferKey frozen_lake_keys[] = {
    {"left", 0, FROZEN_LAKE_LEFT, "move left"},
    {"down", 0, FROZEN_LAKE_DOWN, "move down"},
    {"right", 0, FROZEN_LAKE_RIGHT, "move right"},
    {"up", 0, FROZEN_LAKE_UP, "move up"},
};

static inline void frozen_lake_draw(const FrozenLake *env, PufferCanvas *canvas) {
    const int32_t longer = env->rows > env->columns ? env->rows : env->columns;
    const int32_t cell = canvas->width / longer, inset = cell / 5, middle = cell / 2;
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t place = 0; place < env->rows * env->columns; place++) {
        const int32_t x = place % env->columns * cell, y = place / env->columns * cell;
        draw_rectangle(canvas, x + 1, y + 1, cell - 2, cell - 2, DRAW_WHITE);
        if (env->tiles[place] == 'H') draw_disc(canvas, x + middle, y + middle, cell * 2 / 5, DRAW_BLUE);
        if (env->tiles[place] == 'G')
            draw_rectangle(canvas, x + inset, y + inset, cell - 2 * inset, cell - 2 * inset, DRAW_ORANGE);
    }
    const int32_t x = env->place % env->columns * cell + middle,
                  y = env->place / env->columns * cell + middle;
    draw_disc(canvas, x, y, cell * 3 / 10, env->tiles[env->place] == 'H' ? DRAW_RED : DRAW_CYAN);
}

#endif
