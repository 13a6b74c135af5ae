/* Rendering of cartpole: the track with its ends, the cart, the pole between its terminal angles, and the
 * fraction of time that has passed. */
#ifndef CARTPOLE_RENDER_H
#define CARTPOLE_RENDER_H

#include "cartpole.h"
#include "puffer_draw.h"

static const PufferKey cartpole_keys[] = {
    {"left", 0, CARTPOLE_LEFT, "push to the left"},
    {"right", 0, CARTPOLE_RIGHT, "push to the right"},
};

enum { CARTPOLE_PX_PER_M = 110, CARTPOLE_TRACK_Y = 240, CARTPOLE_AXLE = 34 /* px above the track */ };

/* A line from the hinge at `x`, `length` px long. */
static inline void cartpole_draw_ray(PufferCanvas *canvas, int32_t x, double angle, double length,
                                     int32_t thickness, uint32_t colour) {
    const int32_t hinge = CARTPOLE_TRACK_Y - CARTPOLE_AXLE;
    draw_line(canvas, x, hinge, x + (int32_t)(length * draw_sine(angle)),
              hinge - (int32_t)(length * draw_cosine(angle)), thickness, colour);
}

static inline void cartpole_draw_track(PufferCanvas *canvas) {
    const int32_t middle = canvas->width / 2, end = (int32_t)(CARTPOLE_MAX_X * CARTPOLE_PX_PER_M);
    draw_rectangle(canvas, 0, CARTPOLE_TRACK_Y, canvas->width, 4, DRAW_SLATE);
    draw_rectangle(canvas, middle - 1, CARTPOLE_TRACK_Y, 2, 12, DRAW_SLATE);
    for (int32_t side = -1; side <= 1; side += 2) {
        draw_rectangle(canvas, middle + side * end - 2, CARTPOLE_TRACK_Y - 40, 4, 44, DRAW_RED);
    }
}

static inline void cartpole_draw_cart(PufferCanvas *canvas, int32_t x) {
    draw_rectangle(canvas, x - 30, CARTPOLE_TRACK_Y - 38, 60, 28, DRAW_CYAN);
    draw_disc(canvas, x - 18, CARTPOLE_TRACK_Y - 8, 8, DRAW_WHITE);
    draw_disc(canvas, x + 18, CARTPOLE_TRACK_Y - 8, 8, DRAW_WHITE);
}

static inline void cartpole_draw(const Cartpole *env, PufferCanvas *canvas) {
    const int32_t x = canvas->width / 2 + (int32_t)(puffer_clamp((float)env->x, -5, 5) * CARTPOLE_PX_PER_M);
    const double pole = puffer_clamp(2 * env->half_length * CARTPOLE_PX_PER_M, 20, 190);
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 16, 14, 2, DRAW_WHITE, "STEPS");
    draw_number(canvas, 150, 14, 2, DRAW_WHITE, env->game.episode_length);
    draw_bar(canvas, 16, 300, canvas->width - 32, 6, env->game.episode_length, env->max_steps, DRAW_YELLOW);
    cartpole_draw_track(canvas);
    cartpole_draw_ray(canvas, x, -CARTPOLE_MAX_ANGLE, pole, 1, DRAW_RED);
    cartpole_draw_ray(canvas, x, CARTPOLE_MAX_ANGLE, pole, 1, DRAW_RED);
    cartpole_draw_cart(canvas, x);
    cartpole_draw_ray(canvas, x, puffer_clamp((float)env->angle, -1.5f, 1.5f), pole, 8, DRAW_ORANGE);
    draw_disc(canvas, x, CARTPOLE_TRACK_Y - CARTPOLE_AXLE, 5, DRAW_WHITE);
}

#endif
