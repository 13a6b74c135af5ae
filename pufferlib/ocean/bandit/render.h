/* Rendering of bandit: the arms in a row, a star at the best one, the lever of the last arm pulled, and its
 * reward as a column above or below zero. */
#ifndef BANDIT_RENDER_H
#define BANDIT_RENDER_H

#include "bandit.h"
#include "puffer_draw.h"

enum { BANDIT_ZERO_Y = 130, BANDIT_ARMS_Y = 236 };

static inline void bandit_draw_star(PufferCanvas *canvas, int32_t x, int32_t y, int32_t size) {
    for (int32_t row = -size; row <= size; row++) {
        const int32_t half = row < 0 ? size + row : size - row;
        draw_rectangle(canvas, x - half, y + row, 2 * half + 1, 1, DRAW_YELLOW);
    }
}

static inline void bandit_draw_arm(const Bandit *env, PufferCanvas *canvas, int32_t arm) {
    const int32_t slot = canvas->width / env->num_actions, x = arm * slot + slot / 2, half = slot * 2 / 5;
    const bool pulled = env->pulled == arm + 1;
    draw_rectangle(canvas, x - half, BANDIT_ARMS_Y, 2 * half, 48, pulled ? DRAW_CYAN : DRAW_SLATE);
    draw_line(canvas, x, BANDIT_ARMS_Y, x, BANDIT_ARMS_Y + (pulled ? 16 : -16), 3, DRAW_WHITE);
    draw_disc(canvas, x, BANDIT_ARMS_Y + (pulled ? 16 : -16), half < 7 ? half : 7, DRAW_WHITE);
    if (arm == env->best) bandit_draw_star(canvas, x, BANDIT_ARMS_Y + 64, half < 12 ? half : 12);
}

/* 26 px are one standard deviation, or the best arm's mean if that is larger. */
static inline void bandit_draw_payment(const Bandit *env, PufferCanvas *canvas) {
    const int32_t slot = canvas->width / env->num_actions, x = (env->pulled - 1) * slot + slot / 10;
    const float unit = env->reward_scale * puffer_max(1, env->reward_noise);
    const int32_t height = (int32_t)puffer_clamp(26 * env->paid / unit, -70, 90);
    if (height > 0) {
        draw_rectangle(canvas, x, BANDIT_ZERO_Y - height, slot * 4 / 5, height, DRAW_GREEN);
    } else {
        draw_rectangle(canvas, x, BANDIT_ZERO_Y, slot * 4 / 5, 1 - height, DRAW_RED);
    }
}

static inline void bandit_draw(const Bandit *env, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 12, 12, 2, DRAW_WHITE, "PAID BY THE LAST PULL");
    draw_text(canvas, canvas->width - 110, 12, 2, DRAW_YELLOW, "BEST ARM");
    bandit_draw_star(canvas, canvas->width - 128, 19, 8);
    draw_rectangle(canvas, 0, BANDIT_ZERO_Y, canvas->width, 2, DRAW_SLATE);
    if (env->pulled > 0) bandit_draw_payment(env, canvas);
    for (int32_t arm = 0; arm < env->num_actions; arm++) bandit_draw_arm(env, canvas, arm);
}

#endif
