/* Rendering of stochastic: the fraction so far as a column, and a mark at the target fraction. */
#ifndef STOCHASTIC_RENDER_H
#define STOCHASTIC_RENDER_H

#include "puffer_draw.h"
#include "stochastic.h"

static const PufferKey stochastic_keys[] = {
    {"0", 0, 0, "the action that is counted"},
    {"1", 0, 1, "the other one"},
};

static inline void stochastic_draw(const Stochastic *env, PufferCanvas *canvas) {
    const int32_t left = 30, width = canvas->width - 60, length = env->game.episode_length;
    const int32_t mark = left + (int32_t)(env->p * (float)width);
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, left, 16, 2, DRAW_WHITE, "SHARE OF ACTION 0");
    draw_number(canvas, canvas->width - left, 16, 2, DRAW_CYAN,
                length > 0 ? (int32_t)(100 * (int64_t)env->count / length) : 0);
    draw_bar(canvas, left, 70, width, 36, env->count, length > 0 ? length : 1, DRAW_CYAN);
    draw_rectangle(canvas, mark - 2, 56, 4, 64, DRAW_ORANGE);
    draw_text(canvas, mark - 35, 128, 2, DRAW_ORANGE, "ASKED");
    draw_bar(canvas, left, 176, width, 6, length, env->horizon, DRAW_YELLOW);
}

#endif
