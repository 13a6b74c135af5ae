/* Rendering of pendulum: the rod, its target, the torque, and the fraction of time that has passed. */
#ifndef PENDULUM_RENDER_H
#define PENDULUM_RENDER_H

#include "pendulum.h"
#include "puffer_draw.h"

enum { PENDULUM_ROD = 130, PENDULUM_RING = 160 /* px */ };

/* A ring of dots around the hinge, green at the target of the rod. */
static inline void pendulum_draw_ring(PufferCanvas *canvas, int32_t x, int32_t y) {
    for (int32_t dot = 0; dot < 72; dot++) {
        const double angle = dot * PUFFER_PI / 36;
        const bool upright = angle < PENDULUM_UPRIGHT || angle > 2 * PUFFER_PI - PENDULUM_UPRIGHT;
        draw_disc(canvas, x + (int32_t)(PENDULUM_RING * draw_sine(angle)),
                  y - (int32_t)(PENDULUM_RING * draw_cosine(angle)), upright ? 4 : 2,
                  upright ? DRAW_GREEN : DRAW_SLATE);
    }
}

/* Dots around the hinge, from the top to the side to which the torque turns, more for a stronger torque. */
static inline void pendulum_draw_torque(PufferCanvas *canvas, int32_t x, int32_t y, double torque) {
    for (int32_t dot = 0; dot <= 10 && torque != 0; dot++) {
        const double angle = 1.2 * torque * dot / 10;
        draw_disc(canvas, x - (int32_t)(38 * draw_sine(angle)), y - (int32_t)(38 * draw_cosine(angle)),
                  dot == 10 ? 6 : 2, DRAW_YELLOW);
    }
}

static inline void pendulum_draw(const Pendulum *env, PufferCanvas *canvas) {
    const int32_t x = canvas->width / 2, y = canvas->height / 2;
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 16, 14, 2, DRAW_WHITE, "STEPS");
    draw_number(canvas, 150, 14, 2, DRAW_WHITE, env->game.episode_length);
    draw_bar(canvas, 16, canvas->height - 20, canvas->width - 32, 6, env->game.episode_length, env->max_steps,
             DRAW_YELLOW);
    pendulum_draw_ring(canvas, x, y);
    draw_line(canvas, x, y, x - (int32_t)(PENDULUM_ROD * draw_sine(env->angle)),
              y - (int32_t)(PENDULUM_ROD * draw_cosine(env->angle)), 22, DRAW_RED);
    draw_disc(canvas, x, y, 6, DRAW_WHITE);
    pendulum_draw_torque(canvas, x, y, env->torque);
}

#endif
