/* Drawing primitives for a canvas: rectangles, discs, text. Everything is clipped to the canvas. Coordinates
 * and sizes are in px from the top left. Colours are 0xRRGGBB. */
#ifndef PUFFER_DRAW_H
#define PUFFER_DRAW_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_font.h"

/* Palette shared by all environments. */
#define DRAW_NIGHT  0x061820u
#define DRAW_SLATE  0x14303Cu
#define DRAW_WHITE  0xF1F1F1u
#define DRAW_CYAN   0x00BBBBu
#define DRAW_RED    0xD64545u
#define DRAW_ORANGE 0xE88C30u
#define DRAW_YELLOW 0xE8D44Du
#define DRAW_GREEN  0x53A653u
#define DRAW_BLUE   0x4A6FD6u

/* Sine with period 1 and an error below 0.0011. It uses only additions and multiplications, because the last
 * bits of a C library's sine differ between machines, and images must be bit-identical everywhere. */
static inline float draw_wave(float at) {
    const float phase = at - floorf(at) - 0.5f;
    const float arch = phase * (16 * fabsf(phase) - 8);
    return arch * (0.775f + 0.225f * fabsf(arch));
}

/* Sine and cosine of an angle in radians, with the precision of draw_wave. */
static inline double draw_sine(double angle) {
    return draw_wave((float)(angle * 0.15915494309189535));
}

static inline double draw_cosine(double angle) {
    return draw_wave((float)(angle * 0.15915494309189535 + 0.25));
}

static inline int32_t draw_clip(int32_t value, int32_t end) {
    return value < 0 ? 0 : value > end ? end : value;
}

static inline void draw_rectangle(PufferCanvas *canvas, int32_t x, int32_t y, int32_t width, int32_t height,
                                  uint32_t colour) {
    int32_t left = draw_clip(x, canvas->width), right = draw_clip(x + width, canvas->width);
    int32_t top = draw_clip(y, canvas->height), bottom = draw_clip(y + height, canvas->height);
    for (int32_t row = top; row < bottom; row++) {
        uint8_t *pixel = canvas->pixels + ((size_t)row * (size_t)canvas->width + (size_t)left) * 3;
        for (int32_t column = left; column < right; column++) {
            *pixel++ = (uint8_t)(colour >> 16);
            *pixel++ = (uint8_t)(colour >> 8);
            *pixel++ = (uint8_t)colour;
        }
    }
}

static inline void draw_clear(PufferCanvas *canvas, uint32_t colour) {
    draw_rectangle(canvas, 0, 0, canvas->width, canvas->height, colour);
}

static inline void draw_disc(PufferCanvas *canvas, int32_t x, int32_t y, int32_t radius, uint32_t colour) {
    for (int32_t dy = -radius; dy <= radius; dy++) {
        int32_t half = 0; /* half width of this row inside the circle */
        while ((half + 1) * (half + 1) + dy * dy <= radius * radius + radius) half++;
        draw_rectangle(canvas, x - half, y + dy, 2 * half + 1, 1, colour);
    }
}

/* Draws a line between two points. A thickness of 1 is a line of one pixel. */
static inline void draw_line(PufferCanvas *canvas, int32_t x0, int32_t y0, int32_t x1, int32_t y1,
                             int32_t thickness, uint32_t colour) {
    const int32_t across = x1 - x0, down = y1 - y0;
    const int32_t wide = across < 0 ? -across : across, high = down < 0 ? -down : down;
    const int32_t steps = wide > high ? wide : high;
    for (int32_t i = 0; i <= steps; i++) {
        const int32_t x = steps > 0 ? x0 + across * i / steps : x0;
        const int32_t y = steps > 0 ? y0 + down * i / steps : y0;
        if (thickness < 3) {
            draw_rectangle(canvas, x, y, thickness, thickness, colour);
        } else {
            draw_disc(canvas, x, y, thickness / 2, colour);
        }
    }
}

/* Draws an arrow that points down at the agent for which the image is drawn. */
static inline void draw_arrow(PufferCanvas *canvas, int32_t x, int32_t y) {
    for (int32_t up = 0; up <= 11; up++) {
        const int32_t half = up / 2 + 2;
        draw_rectangle(canvas, x - half, y - up, 2 * half + 1, 1, DRAW_NIGHT);
        if (up > 1 && up < 11) draw_rectangle(canvas, x - half + 2, y - up, 2 * half - 3, 1, DRAW_YELLOW);
    }
}

/* Draws a horizontal bar that is filled to `value` out of `full`, where full > 0. */
static inline void draw_bar(PufferCanvas *canvas, int32_t x, int32_t y, int32_t width, int32_t height,
                            int32_t value, int32_t full, uint32_t colour) {
    draw_rectangle(canvas, x, y, width, height, DRAW_SLATE);
    draw_rectangle(canvas, x, y, (int32_t)((int64_t)width * value / full), height, colour);
}

/* Draws characters of 5 x 9 squares, each `scale` px wide. The advance is 6 squares. Capital letters and
 * digits are 7 squares high. */
static inline void draw_text(PufferCanvas *canvas, int32_t x, int32_t y, int32_t scale, uint32_t colour,
                             const char *text) {
    for (; *text != '\0'; text++, x += 6 * scale) {
        for (int32_t square = 0; square < FONT_HEIGHT * FONT_WIDTH; square++) {
            int32_t row = square / FONT_WIDTH, column = square % FONT_WIDTH;
            if (!(font_row(*text, row) >> (FONT_WIDTH - 1 - column) & 1)) continue;
            draw_rectangle(canvas, x + column * scale, y + row * scale, scale, scale, colour);
        }
    }
}

/* Width of `characters` characters in px. */
static inline int32_t draw_text_width(int32_t characters, int32_t scale) {
    return characters > 0 ? (6 * characters - 1) * scale : 0;
}

/* Draws an integer whose last digit ends at `right`. */
static inline void draw_number(PufferCanvas *canvas, int32_t right, int32_t y, int32_t scale, uint32_t colour,
                               int32_t number) {
    char digits[12];
    char *first = digits + sizeof digits - 1;
    uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    *first = '\0';
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) *--first = '-';
    int32_t count = (int32_t)(digits + sizeof digits - 1 - first);
    draw_text(canvas, right - draw_text_width(count, scale), y, scale, colour, first);
}

#endif
