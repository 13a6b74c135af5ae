/* Enduro's scenery: sky by time of day, hills, road, trees, snow and fog. */
#ifndef ENDURO_SCENE_H
#define ENDURO_SCENE_H

#include "enduro.h"
#include "puffer_draw.h"

#define ENDURO_TREE_GAP 9.0f /* between trees on one side, along the road */

enum { ENDURO_TREES = 24, ENDURO_FLAKES = 160, ENDURO_STARS = 60 };

/* Colours of a phase of the day. `light` is 1 in full daylight. */
typedef struct {
    uint32_t sky, low_sky, hills, ground;
    float light;
} EnduroPalette;

/* Values shared by all parts of an image. */
typedef struct {
    const Enduro *env;
    PufferCanvas *canvas;
    EnduroPalette palette;
    float across, down; /* image px per screen px */
    float bend, row;
    float fog; /* 0 none to 1 full */
    int32_t horizon, bottom;
} EnduroView;

static inline uint32_t enduro_mix(uint32_t colour, uint32_t other, float share) {
    const int32_t weight = (int32_t)(256 * puffer_clamp(share, 0, 1));
    uint32_t mixed = 0;
    for (int32_t shift = 0; shift < 24; shift += 8) {
        const int32_t from = colour >> shift & 255, to = other >> shift & 255;
        mixed |= (uint32_t)(from + (to - from) * weight / 256) << shift;
    }
    return mixed;
}

/* A hash of `value`, always the same. */
static inline uint32_t enduro_hash(uint32_t value) {
    value = (value ^ value >> 16) * 0x7FEB352Du;
    value = (value ^ value >> 15) * 0x846CA68Bu;
    return value ^ value >> 16;
}

/* The last third of a phase blends into the next one. */
static inline EnduroPalette enduro_palette(const Enduro *env) {
    static const EnduroPalette palettes[ENDURO_PHASES] = {
        {0x4A7FC1, 0xF6C58F, 0x56724E, 0x5C9A4A, 0.9f},  {0x3F8FE0, 0xBFE3FA, 0x4F8A50, 0x56A745, 1},
        {0x2F86E0, 0xB5DEF9, 0x4A8A4C, 0x4FA03F, 1},     {0x8FA6BA, 0xDDE6EE, 0xC3D0DC, 0xEDF3F7, 0.95f},
        {0x3F8FE0, 0xBFE3FA, 0x4F8A50, 0x56A745, 1},     {0x2F86E0, 0xB5DEF9, 0x4A8A4C, 0x4FA03F, 1},
        {0x4A86CC, 0xF4DDA8, 0x5A8347, 0x7AA043, 0.95f}, {0x51589F, 0xF2994A, 0x4C4A5E, 0x5F7A3C, 0.8f},
        {0x3A2F6B, 0xE0573E, 0x3A3350, 0x41552F, 0.6f},  {0x1E1B45, 0x8F3A52, 0x221E38, 0x28361F, 0.35f},
        {0x05071A, 0x121B40, 0x0A0D1C, 0x0D160F, 0.1f},  {0x14181F, 0x2C313B, 0x23272F, 0x1A1F20, 0.1f},
        {0x5C646E, 0x8C949B, 0x78808A, 0x5B655B, 0.45f}, {0x05071A, 0x121B40, 0x0A0D1C, 0x0D160F, 0.1f},
        {0x1F2A5C, 0xB5617A, 0x2A2A44, 0x26352A, 0.3f},  {0x3B5A9E, 0xF0A070, 0x3F4A5A, 0x47703F, 0.7f},
    };
    const int32_t begun = (int32_t)enduro_time(env),
                  phase = begun < ENDURO_PHASES ? begun : ENDURO_PHASES - 1;
    const EnduroPalette *now = &palettes[phase], *next = &palettes[(phase + 1) % ENDURO_PHASES];
    const float share = 3 * (enduro_time(env) - (float)phase) - 2;
    return (EnduroPalette){
        enduro_mix(now->sky, next->sky, share),
        enduro_mix(now->low_sky, next->low_sky, share),
        enduro_mix(now->hills, next->hills, share),
        enduro_mix(now->ground, next->ground, share),
        now->light + puffer_clamp(share, 0, 1) * (next->light - now->light),
    };
}

/* Full while cars are hidden, increasing before and decreasing after. */
static inline float enduro_fog(const Enduro *env) {
    const float time = enduro_time(env);
    const float rising = 1 + 3 * (time - ENDURO_FOG_FIRST), falling = 1 - 3 * (time - ENDURO_FOG_LAST - 1);
    return puffer_clamp(puffer_min(rising, falling), 0, 1);
}

static inline EnduroView enduro_view(const Enduro *env, PufferCanvas *canvas) {
    const float down = (float)canvas->height / ENDURO_SCREEN_HEIGHT;
    return (EnduroView){
        .env = env,
        .canvas = canvas,
        .palette = enduro_palette(env),
        .across = (float)canvas->width / ENDURO_SCREEN_WIDTH,
        .down = down,
        .bend = enduro_bend(env),
        .row = enduro_row(env),
        .fog = enduro_fog(env),
        .horizon = (int32_t)(ENDURO_HORIZON * down),
        .bottom = (int32_t)(ENDURO_DASHBOARD * down),
    };
}

/* A colour in the current light, at this distance in the fog. */
static inline uint32_t enduro_shade(const EnduroView *view, uint32_t colour, float distance) {
    const uint32_t dark = enduro_mix(0x04060C, view->palette.sky, 0.15f);
    const uint32_t lit = enduro_mix(dark, colour, 0.12f + 0.88f * view->palette.light);
    return enduro_mix(lit, view->palette.low_sky, view->fog * puffer_clamp(distance / ENDURO_FOG, 0, 1));
}

/* ---- The sky ---------------------------------------------------------------------------------------- */

/* Height of the skyline in [0, 1] at a position on the full circle, from periodic waves. */
static inline float enduro_skyline(float turn, int32_t layer) {
    if (layer == 0) {
        return 0.5f + 0.28f * draw_wave(3 * turn) + 0.14f * draw_wave(11 * turn + 0.16f) +
               0.08f * draw_wave(23 * turn);
    }
    return 0.45f + 0.3f * draw_wave(5 * turn + 0.32f) + 0.2f * draw_wave(9 * turn);
}

static inline void enduro_draw_hills(const EnduroView *view) {
    const uint32_t far = enduro_mix(view->palette.hills, view->palette.low_sky, 0.55f);
    const float tall[2] = {24 * view->down, 12 * view->down};
    for (int32_t layer = 0; layer < 2; layer++) {
        const float start = view->env->heading * (float)(layer + 1);
        const uint32_t colour =
            enduro_mix(layer == 0 ? far : view->palette.hills, view->palette.low_sky, view->fog);
        for (int32_t x = 0; x < view->canvas->width; x++) {
            const float turn = start + 0.25f * (float)x / (float)view->canvas->width;
            const int32_t height = (int32_t)(tall[layer] * enduro_skyline(turn, layer));
            draw_rectangle(view->canvas, x, view->horizon - height, 1, height + 1, colour);
        }
    }
}

static inline void enduro_draw_stars(const EnduroView *view) {
    const float dark = (1 - view->fog) * puffer_clamp(1 - 2.5f * view->palette.light, 0, 1);
    if (dark <= 0) return;
    const int32_t size = view->canvas->height / 300 + 1;
    for (uint32_t i = 0; i < ENDURO_STARS; i++) {
        const uint32_t place = enduro_hash(i);
        const float turn = (float)(place & 1023) / 1024 - 4 * view->env->heading;
        const int32_t x = (int32_t)((turn - floorf(turn)) * (float)view->canvas->width);
        const int32_t y = (int32_t)(place >> 10 & 1023) * view->horizon / 1024;
        const uint32_t sky =
            enduro_mix(view->palette.sky, view->palette.low_sky, (float)y / (float)view->horizon);
        const float shine = dark * (0.4f + 0.6f * (float)(place >> 20 & 15) / 15);
        draw_rectangle(view->canvas, x, y, size, size, enduro_mix(sky, 0xFFFFFF, shine));
    }
}

/* The sun from the first phase to the ninth, the moon through the night. */
static inline void enduro_draw_sun(const EnduroView *view) {
    const float time = enduro_time(view->env);
    const bool night = time >= 10 && time < 14.5f;
    const float way = night ? (time - 10) / 4.5f : (time < 10 ? time + 1 : time - 15) / 11;
    const bool hidden = view->fog > 0.5f || enduro_is_snow(view->env);
    if (hidden || (!night && time > 10 && time < 15)) return;
    const int32_t radius = (int32_t)(5 * view->down);
    const int32_t x = (int32_t)((0.08f + 0.84f * way) * (float)view->canvas->width);
    const int32_t y = view->horizon - (int32_t)((2 + 160 * way * (1 - way)) * view->down);
    const uint32_t colour = night ? 0xE8ECF4 : enduro_mix(0xFFF3B0, 0xFF8A40, 2 * fabsf(way - 0.5f));
    if (!night)
        draw_disc(view->canvas, x, y, radius + radius / 2, enduro_mix(view->palette.low_sky, colour, 0.35f));
    draw_disc(view->canvas, x, y, radius, colour);
    if (night) draw_disc(view->canvas, x + radius / 2, y - radius / 4, radius * 7 / 8, view->palette.sky);
}

static inline void enduro_draw_sky(const EnduroView *view) {
    for (int32_t y = 0; y < view->horizon; y++) {
        const float share = (float)y / (float)view->horizon;
        draw_rectangle(view->canvas, 0, y, view->canvas->width, 1,
                       enduro_mix(view->palette.sky, view->palette.low_sky, share * share));
    }
    enduro_draw_stars(view);
    enduro_draw_sun(view);
    enduro_draw_hills(view);
}

/* ---- The ground ------------------------------------------------------------------------------------- */

/* True in the second half of a stripe along the road. */
static inline bool enduro_stripe(const EnduroView *view, float distance, float length) {
    const double place = (view->env->odometer + (double)distance) / (double)length;
    return place - floor(place) >= 0.5;
}

/* Part of a row of the road. `from` and `to` are in px beside the player. */
static inline void enduro_draw_strip(const EnduroView *view, int32_t y, float scale, float from, float to,
                                     uint32_t colour) {
    const float left = enduro_screen_x(from, scale, view->bend) * view->across;
    const float right = enduro_screen_x(to, scale, view->bend) * view->across;
    int32_t width = (int32_t)right - (int32_t)left;
    draw_rectangle(view->canvas, (int32_t)left, y, width > 0 ? width : 1, 1, colour);
}

/* At night the car's headlights light the road ahead. */
static inline void enduro_draw_beam(const EnduroView *view, int32_t y, float scale, float distance) {
    const float dark =
        puffer_clamp(1 - 2 * view->palette.light, 0, 1) * puffer_clamp(1 - distance / 50, 0, 1);
    if (dark <= 0 || distance < 0) return;
    const float half = 7 + 0.35f * distance;
    const uint32_t road = enduro_shade(view, 0x55585F, distance);
    enduro_draw_strip(view, y, scale, puffer_max(view->env->x - half, -46),
                      puffer_min(view->env->x + half, 46), enduro_mix(road, 0xD8D2A8, 0.35f * dark));
}

static inline void enduro_draw_road_row(const EnduroView *view, int32_t y) {
    const float screen_y = ((float)y + 0.5f) / view->down;
    const float scale = puffer_max((screen_y - ENDURO_HORIZON) / (view->row - ENDURO_HORIZON), 0.01f);
    const float distance = ENDURO_FOCUS / scale - ENDURO_FOCUS, edge = enduro_edge(view->env, distance);
    const bool odd = enduro_stripe(view, distance, 24);
    const uint32_t grass = enduro_mix(view->palette.ground, 0x000000, odd ? 0.1f : 0);
    const uint32_t haze =
        enduro_mix(grass, view->palette.low_sky, puffer_clamp((distance - 60) / 600, 0, 0.6f));
    const uint32_t road = enduro_mix(0x55585F, enduro_is_snow(view->env) ? 0xC9D3DB : 0x55585F, 0.45f);
    draw_rectangle(
        view->canvas, 0, y, view->canvas->width, 1,
        enduro_mix(haze, view->palette.low_sky, view->fog * puffer_clamp(distance / ENDURO_FOG, 0, 1)));
    enduro_draw_strip(view, y, scale, -edge - 4, edge + 4,
                      enduro_shade(view, enduro_stripe(view, distance, 12) ? 0xC8463C : 0xF0F0F0, distance));
    enduro_draw_strip(view, y, scale, -edge, edge,
                      enduro_shade(view, enduro_mix(road, 0, odd ? 0.06f : 0), distance));
    enduro_draw_beam(view, y, scale, distance);
    if (!enduro_stripe(view, distance, 16)) return;
    for (int32_t side = -1; side <= 1; side += 2) {
        const float line = 0.5f * ENDURO_LANE * (float)side;
        enduro_draw_strip(view, y, scale, line - 0.8f, line + 0.8f, enduro_shade(view, 0xF4F1DE, distance));
    }
}

static inline void enduro_draw_tree(const EnduroView *view, int32_t x, int32_t y, int32_t size,
                                    float distance) {
    const bool snow = enduro_is_snow(view->env);
    const int32_t trunk = size / 8 + 1, crown = size * 5 / 6;
    draw_rectangle(view->canvas, x - trunk / 2, y - size / 4, trunk, size / 4,
                   enduro_shade(view, 0x5B3F28, distance));
    for (int32_t row = 0; row < crown; row++) {
        const int32_t tier = crown / 3 + 1,
                      half = (row % tier + tier / 2 * (row / tier)) * size / (5 * tier) + 1;
        const uint32_t green = row % tier < tier / 2 ? 0x2F7A3A : 0x25642F;
        const bool white = snow && row % tier < tier * 2 / 3;
        draw_rectangle(view->canvas, x - half, y - size + row, 2 * half + 1, 1,
                       enduro_shade(view, white ? 0xF4F8FB : green, distance));
    }
}

/* Trees have fixed positions along the road. The farthest are drawn first. */
static inline void enduro_draw_trees(const EnduroView *view) {
    const double first = floor(view->env->odometer / (double)ENDURO_TREE_GAP);
    for (int32_t i = ENDURO_TREES - 1; i >= 0; i--) {
        const double place = first + i;
        const uint32_t kind = enduro_hash((uint32_t)(int64_t)place);
        const float distance = (float)(place * (double)ENDURO_TREE_GAP - view->env->odometer);
        const float scale = enduro_scale(puffer_max(distance, -ENDURO_TREE_GAP));
        if (kind % 4 == 0) continue;
        const float side = kind >> 8 & 1 ? 1 : -1, off = 68 + (float)(kind >> 12 & 63);
        const float x = enduro_screen_x(side * off, scale, view->bend) * view->across;
        const float size = (26 + (float)(kind >> 20 & 15)) * scale * view->down;
        enduro_draw_tree(view, (int32_t)x, (int32_t)(enduro_screen_y(view->row, scale) * view->down),
                         (int32_t)size, distance);
    }
}

static inline void enduro_draw_snowfall(const EnduroView *view) {
    if (!enduro_is_snow(view->env)) return;
    const uint32_t width = (uint32_t)view->canvas->width, height = (uint32_t)view->bottom;
    for (uint32_t i = 0; i < ENDURO_FLAKES; i++) {
        const uint32_t place = enduro_hash(i), fall = (uint32_t)view->env->day_frame * (2 + place % 3);
        const int32_t size = 1 + (int32_t)(place >> 30) * view->canvas->height / 480;
        draw_rectangle(view->canvas, (int32_t)((place >> 4) % width),
                       (int32_t)(((place >> 12) + fall) % height), size, size, 0xFFFFFF);
    }
}

static inline void enduro_draw_scene(const EnduroView *view) {
    enduro_draw_sky(view);
    for (int32_t y = view->horizon; y < view->bottom; y++) enduro_draw_road_row(view, y);
    enduro_draw_trees(view);
}

#endif
