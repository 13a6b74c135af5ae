/* Rendering of go: stones on a wooden board, the last moves marked, and small squares on points that count
 * for a side. Above the board, each side's captures and the score. */
#ifndef GO_RENDER_H
#define GO_RENDER_H

#include <math.h>

#include "go.h"
#include "puffer_draw.h"

#define GO_WOOD 0xDDB368u
#define GO_LINE 0x5B3D1Au
#define GO_GREY 0x8FA3ABu

enum { GO_BEND = 12 }; /* maximum bend of the wood grain, px */

static const PufferKey go_keys[] = {{"p", 0, GO_PASS, "pass"}};

/* Position of the board in the image. */
typedef struct {
    int32_t left, top, pitch, radius;
} GoPlace;

static inline GoPlace go_place_of(const Go *env) {
    const int32_t pitch = GO_WIDTH * 10 / (env->grid_size * 10 + 3), span = pitch * (env->grid_size - 1);
    const int32_t left = (GO_WIDTH - span) / 2;
    return (GoPlace){left, GO_PANEL + left, pitch, pitch * 46 / 100};
}

/* The user clicks on the points where black may play. */
static inline bool go_area_of_action(const void *game, int32_t agent, int32_t action, PufferArea *area) {
    (void)agent;
    const Go *env = game;
    const GoPlace place = go_place_of(env);
    if (go_point(env, action) == GO_NOWHERE) return false;
    const int32_t row = (action - 1) / env->grid_size, column = (action - 1) % env->grid_size;
    *area = (PufferArea){place.left + column * place.pitch - place.pitch / 2,
                         place.top + row * place.pitch - place.pitch / 2, place.pitch, place.pitch};
    return true;
}

/* Blends two colours, with `share` of the second one. */
static inline uint32_t go_mix(uint32_t from, uint32_t to, float share) {
    uint32_t colour = 0;
    for (int32_t shift = 0; shift < 24; shift += 8) {
        const float a = (float)(from >> shift & 255), b = (float)(to >> shift & 255);
        colour |= (uint32_t)(a + (b - a) * share + 0.5f) << shift;
    }
    return colour;
}

static inline void go_blend(PufferCanvas *canvas, int32_t x, int32_t y, uint32_t colour, float share) {
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height) return;
    uint8_t *pixel = canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
    const uint32_t below = (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2];
    draw_rectangle(canvas, x, y, 1, 1, go_mix(below, colour, share));
}

/* A disc with soft edges, lit from the upper left: from `light` there to `dark` at the far edge. */
static inline void go_draw_disc(PufferCanvas *canvas, int32_t x, int32_t y, int32_t radius, uint32_t light,
                                uint32_t dark, float strength) {
    const float size = (float)radius;
    for (int32_t dy = -radius - 1; dy <= radius + 1; dy++) {
        for (int32_t dx = -radius - 1; dx <= radius + 1; dx++) {
            const float cover = puffer_clamp(size + 0.5f - sqrtf((float)(dx * dx + dy * dy)), 0, 1);
            const float right = (float)dx + 0.4f * size, down = (float)dy + 0.4f * size;
            const float away = (right * right + down * down) / (2.25f * size * size);
            if (cover > 0) {
                go_blend(canvas, x + dx, y + dy, go_mix(light, dark, puffer_min(away, 1)), cover * strength);
            }
        }
    }
}

static inline void go_draw_stone(PufferCanvas *canvas, int32_t x, int32_t y, int32_t radius, int32_t colour) {
    const int32_t drop = radius / 9 + 1;
    go_draw_disc(canvas, x + drop, y + drop, radius, 0x000000u, 0x000000u, 0.3f);
    if (colour == GO_BLACK) {
        go_draw_disc(canvas, x, y, radius, 0x70747Cu, 0x0C0D10u, 1);
    } else {
        go_draw_disc(canvas, x, y, radius, 0xFFFFFFu, 0xB9B4A8u, 1);
    }
}

/* Grain: columns of slightly different shade that drift a little to the side. */
static inline void go_draw_wood(PufferCanvas *canvas) {
    uint32_t shades[GO_WIDTH + 2 * GO_BEND];
    for (int32_t i = 0; i < GO_WIDTH + 2 * GO_BEND; i++) {
        const float at = (float)i;
        const float grain =
            draw_wave(at / 27.3f) + draw_wave(at / 10.3f + 0.16f) + 0.7f * draw_wave(at / 3.307f + 0.32f);
        shades[i] = go_mix(GO_WOOD, 0xA87838u, 0.14f + 0.045f * grain);
    }
    for (int32_t y = GO_PANEL; y < canvas->height; y++) {
        const float bend = 9 * draw_wave((float)y / 571) + 3 * draw_wave((float)y / 170);
        const uint32_t *row = shades + GO_BEND + (int32_t)bend;
        for (int32_t x = 0; x < canvas->width; x++) draw_rectangle(canvas, x, y, 1, 1, row[x]);
    }
}

static inline void go_draw_star(PufferCanvas *canvas, const GoPlace *place, int32_t row, int32_t column) {
    go_draw_disc(canvas, place->left + column * place->pitch, place->top + row * place->pitch,
                 place->pitch / 14 + 2, GO_LINE, GO_LINE, 1);
}

static inline void go_draw_grid(const Go *env, PufferCanvas *canvas, const GoPlace *place) {
    const int32_t size = env->grid_size, span = place->pitch * (size - 1), middle = size / 2;
    const int32_t corner = size < 7 ? 1 : size < 13 ? 2 : 3;
    for (int32_t i = 0; i < size; i++) {
        const int32_t edge = i == 0 || i == size - 1, offset = i * place->pitch;
        draw_rectangle(canvas, place->left, place->top + offset - edge, span, 1 + 2 * edge, GO_LINE);
        draw_rectangle(canvas, place->left + offset - edge, place->top, 1 + 2 * edge, span, GO_LINE);
    }
    for (int32_t i = 0; i < 4; i++) {
        go_draw_star(canvas, place, i % 2 ? corner : size - 1 - corner, i / 2 ? corner : size - 1 - corner);
    }
    if (size % 2) go_draw_star(canvas, place, middle, middle);
    for (int32_t i = 0; i < 2 && size > 14; i++) {
        go_draw_star(canvas, place, i ? corner : size - 1 - corner, middle);
        go_draw_star(canvas, place, middle, i ? corner : size - 1 - corner);
    }
}

static inline void go_draw_points(const Go *env, PufferCanvas *canvas, const GoPlace *place) {
    const GoBoard board = go_board_of(env, env->words);
    const int32_t mark = place->pitch / 8 + 1;
    uint64_t area[2][GO_MAX_WORDS];
    go_area(&board, area);
    for (int32_t i = 0; i < go_num_points(env); i++) {
        const int32_t row = i / env->grid_size, column = i % env->grid_size;
        const int32_t point = row * board.stride + column, colour = board.colours[point];
        const int32_t x = place->left + column * place->pitch, y = place->top + row * place->pitch;
        if (colour != GO_EMPTY) {
            go_draw_stone(canvas, x, y, place->radius, colour);
            if (point == env->last[colour]) {
                go_draw_disc(canvas, x, y, place->radius / 4 + 1, 0xF06048u, 0xC03020u, 1);
            }
        } else if (go_has(area[GO_BLACK], point) || go_has(area[GO_WHITE], point)) {
            draw_rectangle(canvas, x - mark / 2, y - mark / 2, mark, mark,
                           go_has(area[GO_BLACK], point) ? 0x202020u : 0xF8F4E8u);
        }
    }
}

/* A number with one decimal digit. */
static inline void go_draw_decimal(PufferCanvas *canvas, int32_t x, int32_t y, int32_t scale, uint32_t colour,
                                   float value) {
    const int32_t tenths = (int32_t)(10 * fabsf(value) + 0.5f);
    int32_t digits = 1;
    for (int32_t rest = tenths / 100; rest > 0; rest /= 10) digits++;
    if (value < 0) {
        draw_text(canvas, x, y, scale, colour, "-");
        x += 6 * scale;
    }
    draw_number(canvas, x + draw_text_width(digits, scale), y, scale, colour, tenths / 10);
    draw_rectangle(canvas, x + (6 * digits + 1) * scale, y + 5 * scale, 2 * scale, 2 * scale, colour);
    draw_number(canvas, x + (6 * digits + 9) * scale, y, scale, colour, tenths % 10);
}

static inline void go_draw_lead(const Go *env, PufferCanvas *canvas, const GoBoard *board) {
    const float lead = go_lead(env, board);
    const char *text = lead > 0 ? "BLACK LEADS BY" : lead < 0 ? "WHITE LEADS BY" : "EVEN";
    const int32_t width = draw_text_width(14, 2) + 60, left = (canvas->width - width) / 2;
    draw_text(canvas, left, 20, 2, DRAW_WHITE, text);
    if (lead != 0) {
        go_draw_decimal(canvas, left + draw_text_width(15, 2) + 2, 20, 2, DRAW_YELLOW, fabsf(lead));
    }
    draw_text(canvas, left, 46, 2, GO_GREY, "KOMI");
    draw_text(canvas, left + 156, 46, 2, DRAW_YELLOW, env->passes > 0 ? "PASS" : "");
    go_draw_decimal(canvas, left + draw_text_width(5, 2) + 2, 46, 2, GO_GREY, env->komi);
}

static inline void go_draw_panel(const Go *env, PufferCanvas *canvas) {
    const GoBoard board = go_board_of(env, env->words);
    const int32_t right = canvas->width;
    draw_rectangle(canvas, 0, 0, right, GO_PANEL, DRAW_NIGHT);
    go_draw_stone(canvas, 42, 40, 24, GO_BLACK);
    draw_text(canvas, 78, 20, 2, DRAW_WHITE,
              env->players == 1    ? "AGENT"
              : canvas->agent == 0 ? "YOU"
                                   : "BLACK");
    draw_text(canvas, 78, 46, 2, GO_GREY, "TOOK");
    draw_number(canvas, 168, 46, 2, DRAW_YELLOW, env->captured[GO_BLACK]);
    go_draw_stone(canvas, right - 42, 40, 24, GO_WHITE);
    draw_text(canvas, right - 168, 20, 2, DRAW_WHITE,
              env->players == 1    ? "SCRIPT"
              : canvas->agent == 1 ? "YOU"
                                   : "WHITE");
    draw_text(canvas, right - 168, 46, 2, GO_GREY, "TOOK");
    draw_number(canvas, right - 78, 46, 2, DRAW_YELLOW, env->captured[GO_WHITE]);
    go_draw_lead(env, canvas, &board);
}

static inline void go_draw(const Go *env, PufferCanvas *canvas) {
    const GoPlace place = go_place_of(env);
    go_draw_wood(canvas);
    go_draw_grid(env, canvas, &place);
    go_draw_points(env, canvas, &place);
    go_draw_panel(env, canvas);
}

#endif
