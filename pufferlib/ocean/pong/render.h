/* Rendering of pong: the points of both sides, the net, the paddles, the ball. */
#ifndef PONG_RENDER_H
#define PONG_RENDER_H

#include "pong.h"
#include "puffer_draw.h"

static const PufferKey pong_keys[] = {
    {"", 0, PONG_STAY, "stay"},
    {"up", 0, PONG_UP, "move up"},
    {"down", 0, PONG_DOWN, "move down"},
};

static inline void pong_draw_net(PufferCanvas *canvas) {
    const int32_t dash = 12, middle = canvas->width / 2 - 2;
    for (int32_t y = dash / 2; y < canvas->height; y += 2 * dash) {
        draw_rectangle(canvas, middle, y, 4, dash, DRAW_SLATE);
    }
}

static inline void pong_draw(const Pong *env, PufferCanvas *canvas) {
    const int32_t thickness = env->paddle_width, height = env->paddle_height;
    const int32_t scale = canvas->width / 90 + 1, middle = canvas->width / 2;
    /* y points down in an image */
    const int32_t left = canvas->height - (int32_t)env->left_y - height / 2;
    const int32_t right = canvas->height - (int32_t)env->right_y - height / 2;
    draw_clear(canvas, DRAW_NIGHT);
    pong_draw_net(canvas);
    draw_number(canvas, middle - 4 * scale, 3 * scale, scale, DRAW_ORANGE, env->left_points);
    draw_number(canvas, middle + 15 * scale, 3 * scale, scale, DRAW_CYAN, env->right_points);
    draw_rectangle(canvas, 0, left, thickness, height, DRAW_ORANGE);
    draw_rectangle(canvas, canvas->width - thickness, right, thickness, height, DRAW_CYAN);
    draw_rectangle(canvas, thickness + (int32_t)env->ball_x,
                   canvas->height - (int32_t)env->ball_y - env->ball_size, env->ball_size, env->ball_size,
                   DRAW_WHITE);
}

#endif
