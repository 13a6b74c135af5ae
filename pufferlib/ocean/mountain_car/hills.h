/* Rendering of the hills of both mountain cars: the ground, the flag, and a car on it. */
#ifndef MOUNTAIN_CAR_HILLS_H
#define MOUNTAIN_CAR_HILLS_H

#include "puffer_draw.h"

#define HILLS_LEFT  (-1.2) /* positions at both ends of the image */
#define HILLS_RIGHT 0.6
#define HILLS_GRASS 0x2E6B3Au
#define HILLS_EARTH 0x123A2Cu

/* Height of the ground. Its derivative is the slope used by the physics. */
static inline double hills_height(double position) {
    return 0.45 * draw_sine(3 * position) + 0.55;
}

static inline double hills_scale(const PufferCanvas *canvas) {
    return canvas->width / (HILLS_RIGHT - HILLS_LEFT);
}

static inline int32_t hills_x(const PufferCanvas *canvas, double position) {
    return (int32_t)((position - HILLS_LEFT) * hills_scale(canvas));
}

static inline int32_t hills_y(const PufferCanvas *canvas, double height) {
    return canvas->height - 10 - (int32_t)(height * hills_scale(canvas));
}

static inline void hills_draw_ground(PufferCanvas *canvas) {
    for (int32_t x = 0; x < canvas->width; x++) {
        const double position = HILLS_LEFT + (x + 0.5) / hills_scale(canvas);
        const int32_t y = hills_y(canvas, hills_height(position));
        draw_rectangle(canvas, x, y, 1, canvas->height - y, HILLS_EARTH);
        draw_rectangle(canvas, x, y, 1, 6, HILLS_GRASS);
    }
}

static inline void hills_draw_flag(PufferCanvas *canvas, double position) {
    const int32_t x = hills_x(canvas, position), y = hills_y(canvas, hills_height(position));
    draw_rectangle(canvas, x, y - 50, 2, 50, DRAW_WHITE);
    for (int32_t row = 0; row <= 16; row++) {
        const int32_t width = 24 - 3 * (row < 8 ? 8 - row : row - 8);
        draw_rectangle(canvas, x + 2, y - 50 + row, width, 1, DRAW_YELLOW);
    }
}

/* Computes a point of a tilted car: px along and perpendicular to the slope. */
static inline void hills_turn(const double at[2], double along, double away, double slope[2],
                              int32_t point[2]) {
    point[0] = (int32_t)(at[0] + along * slope[0] - away * slope[1]);
    point[1] = (int32_t)(at[1] - along * slope[1] - away * slope[0]);
}

/* Draws a car and its exhaust when it accelerates to `direction`, -1 to 1. */
static inline void hills_draw_car(PufferCanvas *canvas, double position, double direction) {
    const double rise = 1.35 * draw_cosine(3 * position), length = sqrt(1 + rise * rise);
    double slope[2] = {1 / length, rise / length};
    const double at[2] = {hills_x(canvas, position), hills_y(canvas, hills_height(position))};
    int32_t from[2], to[2];
    for (int32_t puff = 1; puff <= 3 && direction != 0; puff++) {
        hills_turn(at, (direction < 0 ? 1 : -1) * (22 + 9 * puff), 6 + puff, slope, from);
        draw_disc(canvas, from[0], from[1], (int32_t)(6 * fabs(direction)) - puff, DRAW_SLATE);
    }
    hills_turn(at, -16, 15, slope, from);
    hills_turn(at, 16, 15, slope, to);
    draw_line(canvas, from[0], from[1], to[0], to[1], 12, DRAW_CYAN);
    hills_turn(at, -6, 24, slope, from);
    hills_turn(at, 6, 24, slope, to);
    draw_line(canvas, from[0], from[1], to[0], to[1], 10, DRAW_CYAN);
    for (int32_t side = -1; side <= 1; side += 2) {
        hills_turn(at, side * 12, 7, slope, from);
        draw_disc(canvas, from[0], from[1], 7, DRAW_WHITE);
        draw_disc(canvas, from[0], from[1], 3, DRAW_NIGHT);
    }
}

/* Draws everything, with the steps and the fraction of time that has passed. */
static inline void hills_draw(PufferCanvas *canvas, double flag, double position, double direction,
                              int32_t steps, int32_t max_steps) {
    draw_clear(canvas, DRAW_NIGHT);
    hills_draw_ground(canvas);
    hills_draw_flag(canvas, flag);
    hills_draw_car(canvas, position, direction);
    draw_text(canvas, 16, 14, 2, DRAW_WHITE, "STEPS");
    draw_number(canvas, 150, 14, 2, DRAW_WHITE, steps);
    draw_bar(canvas, 16, canvas->height - 16, canvas->width - 32, 6, steps, max_steps, DRAW_YELLOW);
}

#endif
