/* Rendering of enduro: the scenery, the cars sorted by distance, and a dashboard with the day, the cars still
 * to be passed, the speed and the time of day. */
#ifndef ENDURO_RENDER_H
#define ENDURO_RENDER_H

#include "enduro.h"
#include "puffer_draw.h"
#include "scene.h"

static const PufferKey enduro_keys[] = {
    {"", 0, ENDURO_COAST, "keep the speed"},
    {"up", 0, ENDURO_ACCELERATE, "accelerate"},
    {"down", 0, ENDURO_BRAKE, "brake"},
    {"left", 0, ENDURO_LEFT, "steer left"},
    {"right", 0, ENDURO_RIGHT, "steer right"},
    {"up+left", 0, ENDURO_ACCELERATE_LEFT, "accelerate and steer left"},
    {"up+right", 0, ENDURO_ACCELERATE_RIGHT, "accelerate and steer right"},
    {"down+left", 0, ENDURO_BRAKE_LEFT, "brake and steer left"},
    {"down+right", 0, ENDURO_BRAKE_RIGHT, "brake and steer right"},
};

typedef struct {
    uint32_t body, glass;
    bool braking;
} EnduroPaint;

/* A rectangle inside a car, in hundredths of the car's width and height. */
static inline void enduro_draw_part(PufferCanvas *canvas, const int32_t box[4], int32_t left, int32_t top,
                                    int32_t width, int32_t height, uint32_t colour) {
    const int32_t x0 = box[0] + left * box[2] / 100, x1 = box[0] + (left + width) * box[2] / 100;
    const int32_t y0 = box[1] + top * box[3] / 100, y1 = box[1] + (top + height) * box[3] / 100;
    draw_rectangle(canvas, x0, y0, x1 > x0 ? x1 - x0 : 1, y1 > y0 ? y1 - y0 : 1, colour);
}

static inline void enduro_draw_lamps(const EnduroView *view, const int32_t box[4], bool braking) {
    const bool dark = view->palette.light < 0.5f;
    const uint32_t lamp = braking ? 0xFF5040 : dark ? 0xFF2418 : 0xC02018;
    for (int32_t side = 0; side < 2; side++) {
        if (dark) {
            enduro_draw_part(view->canvas, box, side ? 72 : 4, 44, 24, 26,
                             enduro_mix(view->palette.ground, lamp, 0.45f));
        }
        enduro_draw_part(view->canvas, box, side ? 76 : 8, 48, 16, 16, lamp);
    }
}

/* A car from behind. At night little more than its lights is visible. */
static inline void enduro_draw_car(const EnduroView *view, float x, float distance, EnduroPaint paint) {
    PufferCanvas *canvas = view->canvas;
    const float scale = enduro_scale(distance), size = view->env->car_width * scale;
    const float bottom = enduro_screen_y(view->row, scale) * view->down;
    const int32_t width = (int32_t)(size * view->across) + 2,
                  height = (int32_t)(0.85f * size * view->down) + 2;
    const int32_t left = (int32_t)(enduro_screen_x(x, scale, view->bend) * view->across) - width / 2;
    const int32_t box[4] = {left, (int32_t)bottom - height, width, height};
    const uint32_t body = enduro_shade(view, paint.body, distance),
                   black = enduro_shade(view, 0x15171A, distance);
    enduro_draw_part(canvas, box, -4, 90, 108, 12, enduro_mix(body, 0x000000, 0.75f));
    enduro_draw_part(canvas, box, 2, 62, 20, 38, black);
    enduro_draw_part(canvas, box, 78, 62, 20, 38, black);
    for (int32_t row = 0; row < 36; row += 4) {
        const int32_t inset = 26 - row / 3;
        enduro_draw_part(canvas, box, inset, row, 100 - 2 * inset, 5, body);
        if (row < 8 || row > 28) continue;
        enduro_draw_part(canvas, box, inset + 6, row, 88 - 2 * inset, 5,
                         enduro_shade(view, paint.glass, distance));
    }
    enduro_draw_part(canvas, box, 2, 36, 96, 46, body);
    enduro_draw_part(canvas, box, 2, 36, 96, 6,
                     enduro_mix(body, enduro_shade(view, 0xFFFFFF, distance), 0.45f));
    enduro_draw_part(canvas, box, 6, 74, 88, 12, black);
    enduro_draw_part(canvas, box, 40, 54, 20, 12, enduro_shade(view, 0xE8E8E8, distance));
    enduro_draw_lamps(view, box, paint.braking);
}

/* Draws the cars ahead of the player, or those beside and behind it, farthest first. */
static inline void enduro_draw_traffic(const EnduroView *view, bool ahead) {
    static const uint32_t paints[8] = {DRAW_RED,   DRAW_YELLOW, DRAW_BLUE, 0xF1F1F1,
                                       DRAW_GREEN, DRAW_ORANGE, 0x9B59B6,  0x34495E};
    const float sight = enduro_is_fog(view->env) ? ENDURO_FOG : ENDURO_FAR;
    for (int32_t i = view->env->num_cars - 1; i >= 0; i--) {
        const EnduroCar *car = &view->env->cars[i];
        const float distance = view->env->distances[i];
        if (distance > sight || (distance >= 0) != ahead) continue;
        enduro_draw_car(view, enduro_lane_middle(car->lane), distance,
                        (EnduroPaint){.body = paints[car->paint % 8], .glass = 0x26323C});
    }
}

static inline void enduro_draw_smoke(const EnduroView *view) {
    const Enduro *env = view->env;
    if (env->stun == 0) return;
    for (uint32_t i = 0; i < 7; i++) {
        const uint32_t place = enduro_hash(i + 8 * (uint32_t)(env->stun / 6));
        const float x = env->x + (float)(place & 15) - 8, up = (float)(place >> 4 & 15);
        const float radius = env->crashed ? 2 + (float)(place >> 8 & 3) : 1;
        draw_disc(view->canvas, (int32_t)((ENDURO_CENTRE + x) * view->across),
                  (int32_t)((view->row - (env->crashed ? up : 0.2f * up)) * view->down),
                  (int32_t)(radius * view->down),
                  enduro_mix(0xD8D8D8, 0xE88C30, (float)(place >> 12 & 1) * 0.7f));
    }
}

/* ---- The dashboard ---------------------------------------------------------------------------------- */

static inline void enduro_draw_gauge(const EnduroView *view, int32_t x, int32_t y, int32_t scale) {
    const Enduro *env = view->env;
    const float share = enduro_speed_share(env);
    const int32_t cells = 16, lit = (int32_t)(share * (float)cells + 0.5f), wide = 6 * scale;
    draw_text(view->canvas, x, y, scale, 0x8FA3AD, "SPEED");
    draw_number(view->canvas, x + cells * wide, y, scale, DRAW_WHITE, (int32_t)(50 + 200 * share));
    for (int32_t i = 0; i < cells; i++) {
        const uint32_t colour = i < 6 ? DRAW_GREEN : i < 11 ? DRAW_YELLOW : DRAW_RED;
        const int32_t tall = (4 + i / 2) * scale;
        draw_rectangle(view->canvas, x + i * wide, y + 22 * scale - tall, wide - scale, tall,
                       i < lit ? colour : enduro_mix(DRAW_NIGHT, colour, 0.2f));
    }
    draw_text(view->canvas, x, y + 25 * scale, scale, 0x8FA3AD, "GEAR");
    draw_number(view->canvas, x + cells * wide, y + 25 * scale, scale, DRAW_WHITE, enduro_gear(env) + 1);
}

static inline void enduro_draw_cars_left(const EnduroView *view, int32_t x, int32_t y, int32_t scale) {
    const Enduro *env = view->env;
    const int32_t left = env->todays_quota > env->today ? env->todays_quota - env->today : 0;
    const int32_t width = 96 * scale;
    draw_text(view->canvas, x, y, scale, 0x8FA3AD, left > 0 ? "CARS TO PASS" : "QUOTA MET");
    draw_bar(view->canvas, x, y + 25 * scale, width, 7 * scale, env->todays_quota - left, env->todays_quota,
             left > 0 ? DRAW_CYAN : DRAW_GREEN);
    if (left > 0) {
        draw_number(view->canvas, x + width, y + 10 * scale, 2 * scale - scale / 2, DRAW_WHITE, left);
        return;
    }
    for (int32_t flag = 0; flag < 8; flag++) {
        const int32_t at = x + flag * 12 * scale;
        draw_rectangle(view->canvas, at, y + 10 * scale, scale, 13 * scale, 0xC0C0C0);
        draw_rectangle(view->canvas, at + scale, y + 10 * scale, 8 * scale, 6 * scale, DRAW_GREEN);
    }
}

/* The sixteen phases in their colours, and the current time. */
static inline void enduro_draw_clock(const EnduroView *view, int32_t x, int32_t y, int32_t width,
                                     int32_t scale) {
    Enduro other = *view->env;
    for (int32_t i = 0; i < width; i++) {
        other.day_frame = (int32_t)((int64_t)i * other.day_frames / width);
        const EnduroPalette palette = enduro_palette(&other);
        draw_rectangle(view->canvas, x + i, y, 1, 3 * scale, palette.low_sky);
        draw_rectangle(view->canvas, x + i, y + 3 * scale, 1, 3 * scale, palette.ground);
    }
    const int32_t now = x + (int32_t)((int64_t)width * view->env->day_frame / view->env->day_frames);
    draw_rectangle(view->canvas, now - scale, y - 2 * scale, 2 * scale, 10 * scale, DRAW_WHITE);
}

/* Dashboard without text for small images: bars for the cars passed and the speed, and the time of day. */
static inline void enduro_draw_small_dashboard(const EnduroView *view) {
    const Enduro *env = view->env;
    const int32_t bar = (view->canvas->height - view->bottom) / 6 + 1, gap = bar / 2 + 1;
    const int32_t x = view->canvas->width / 16, width = view->canvas->width - 2 * x, top = view->bottom + gap;
    const int32_t today = env->today < env->todays_quota ? env->today : env->todays_quota;
    draw_bar(view->canvas, x, top, width, bar, today, env->todays_quota,
             today < env->todays_quota ? DRAW_CYAN : DRAW_GREEN);
    draw_bar(view->canvas, x, top + bar + gap, width, bar, (int32_t)(1000 * enduro_speed_share(env)), 1000,
             DRAW_YELLOW);
    enduro_draw_clock(view, x, top + 2 * (bar + gap), width, 1);
}

static inline void enduro_draw_dashboard(const EnduroView *view) {
    const Enduro *env = view->env;
    PufferCanvas *canvas = view->canvas;
    const int32_t wide = canvas->width / 320, high = canvas->height / 240, scale = wide < high ? wide : high;
    const int32_t margin = canvas->width / 32, top = view->bottom + 5 * scale;
    draw_rectangle(canvas, 0, view->bottom, canvas->width, canvas->height - view->bottom, DRAW_NIGHT);
    draw_rectangle(canvas, 0, view->bottom, canvas->width, canvas->height / 240, 0x3C5A68);
    if (scale == 0) {
        enduro_draw_small_dashboard(view);
        return;
    }
    draw_text(canvas, margin, top, scale, 0x8FA3AD, "DAY");
    draw_number(canvas, margin + draw_text_width(9, scale), top, scale, DRAW_WHITE, env->day + 1);
    draw_text(canvas, margin, top + 12 * scale, scale, 0x8FA3AD, "KM");
    draw_number(canvas, margin + draw_text_width(9, scale), top + 12 * scale, scale, DRAW_WHITE,
                (int32_t)(env->odometer / 1000));
    if (env->stun > 0) {
        draw_text(canvas, margin, top + 25 * scale, scale, DRAW_RED, env->crashed ? "CRASH" : "EDGE");
    }
    enduro_draw_cars_left(view, canvas->width / 2 - 48 * scale - margin, top, scale);
    enduro_draw_gauge(view, canvas->width - margin - 96 * scale, top, scale);
    enduro_draw_clock(view, margin, canvas->height - 12 * scale, canvas->width - 2 * margin, scale);
}

static inline void enduro_draw(const Enduro *env, PufferCanvas *canvas) {
    const EnduroView view = enduro_view(env, canvas);
    enduro_draw_scene(&view);
    enduro_draw_traffic(&view, true);
    enduro_draw_car(&view, env->x, 0,
                    (EnduroPaint){.body = DRAW_CYAN, .glass = 0x103038, .braking = env->stun > 0});
    enduro_draw_smoke(&view);
    enduro_draw_traffic(&view, false);
    enduro_draw_snowfall(&view);
    enduro_draw_dashboard(&view);
}

#endif
