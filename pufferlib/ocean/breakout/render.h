/* Rendering of breakout: points, balls in reserve, the wall, the paddle, the ball. */
#ifndef BREAKOUT_RENDER_H
#define BREAKOUT_RENDER_H

#include "breakout.h"
#include "puffer_draw.h"

static const PufferKey breakout_keys[] = {
    {"", 0, BREAKOUT_STAY, "stay"},
    {"left", 0, BREAKOUT_LEFT, "move left"},
    {"right", 0, BREAKOUT_RIGHT, "move right"},
};

static inline void breakout_draw_wall(const Breakout *env, PufferCanvas *canvas) {
    static const uint32_t colours[] = {DRAW_RED, DRAW_ORANGE, DRAW_YELLOW, DRAW_GREEN, DRAW_CYAN, DRAW_BLUE};
    const int32_t gap = env->brick_width > 4 && env->brick_height > 4;
    for (int32_t row = 0; row < env->brick_rows; row++) {
        const int32_t y = BREAKOUT_WALL_TOP + row * env->brick_height;
        const uint32_t colour = colours[row * 6 / env->brick_rows];
        for (int32_t column = 0; column < env->brick_columns; column++) {
            if (!(env->bricks[row] >> column & 1)) continue;
            draw_rectangle(canvas, column * env->brick_width + gap, y + gap, env->brick_width - 2 * gap,
                           env->brick_height - 2 * gap, colour);
        }
    }
}

static inline void breakout_draw(const Breakout *env, PufferCanvas *canvas) {
    const int32_t scale = 4, margin = 8, size = env->ball_size;
    draw_clear(canvas, DRAW_NIGHT);
    draw_rectangle(canvas, 0, 0, canvas->width, BREAKOUT_WALL_TOP - margin, DRAW_SLATE);
    draw_number(canvas, canvas->width - margin, margin - 1, scale, DRAW_WHITE, env->points);
    for (int32_t ball = 0; ball < env->balls_left; ball++) {
        draw_disc(canvas, 2 * margin + 3 * margin * ball, BREAKOUT_WALL_TOP / 2 - margin / 2, margin,
                  DRAW_WHITE);
    }
    breakout_draw_wall(env, canvas);
    draw_rectangle(canvas, (int32_t)env->paddle_x, (int32_t)breakout_paddle_y(env), (int32_t)env->paddle_size,
                   env->paddle_height, DRAW_CYAN);
    draw_disc(canvas, (int32_t)env->ball_x + size / 2, (int32_t)env->ball_y + size / 2,
              size > 3 ? size / 2 - 1 : size / 2, DRAW_WHITE);
}

#endif
