/* Shrinks grayscale images by area averaging: a pixel of the small image is the mean of the area that it
 * covers.
 *
 * The result is bit-identical to OpenCV's INTER_AREA, the standard in Atari preprocessing, and takes a third
 * of the time. All weights are integers over a common denominator, so sums are exact, and four rows fit in
 * one 64-bit word. OpenCV adds floats, which matters only for exact halves. These are recomputed in OpenCV's
 * way. */
#ifndef PUFFER_SHRINK_H
#define PUFFER_SHRINK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    PUFFER_SHRINK_TAPS = 4,    /* pixels of the large image under one of the small image, along one side */
    PUFFER_SHRINK_SMALL = 128, /* longest sides */
    PUFFER_SHRINK_LARGE = 512,
    PUFFER_SHRINK_LANES = 4,
};

/* The pixels that one pixel of the small image covers along one side, and their weights. */
typedef struct PufferTaps {
    int first, count;
    uint16_t weights[PUFFER_SHRINK_TAPS]; /* 0 from count on */
    float shares[PUFFER_SHRINK_TAPS];     /* the same weights, rounded like OpenCV does */
} PufferTaps;

typedef struct PufferShrink {
    int height, width, small_height, small_width;
    uint32_t denominator, reciprocal; /* reciprocal: 2^32 / denominator, rounded up */
    PufferTaps rows[PUFFER_SHRINK_SMALL], columns[PUFFER_SHRINK_SMALL];
} PufferShrink;

static inline int puffer_common_divisor(int a, int b) {
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Computes the weights along one side. Returns their sum, or 0 if they do not fit. */
static inline int puffer_shrink_side(PufferTaps *taps, int large, int small) {
    if (small < 1 || small > PUFFER_SHRINK_SMALL || large < small || large > PUFFER_SHRINK_LARGE) return 0;
    int divisor = puffer_common_divisor(large, small);
    int area = large / divisor, pixel = small / divisor; /* lengths of a small and of a large pixel */
    double scale = 1.0 / ((double)small / large);
    if ((area + pixel - 1) / pixel + 1 > PUFFER_SHRINK_TAPS) return 0;
    for (int i = 0; i < small; i++) {
        PufferTaps *tap = &taps[i];
        memset(tap, 0, sizeof(*tap));
        tap->first = i * area / pixel;
        double start = i * scale, end = start + scale, cell = fmin(scale, large - start);
        for (int at = tap->first; at < large && at * pixel < (i + 1) * area; at++) {
            int from = at * pixel > i * area ? at * pixel : i * area;
            int to = (at + 1) * pixel < (i + 1) * area ? (at + 1) * pixel : (i + 1) * area;
            double covered = fmin(at + 1, end) - fmax(at, start);
            tap->weights[tap->count] = (uint16_t)(to - from);
            tap->shares[tap->count++] = (float)(to - from == pixel ? 1.0 / cell : covered / cell);
        }
    }
    return area;
}

/* Initializes `shrink`. Returns false if the sizes are not supported. */
static inline bool puffer_shrink_init(PufferShrink *shrink, int height, int width, int small_height,
                                      int small_width) {
    int rows = puffer_shrink_side(shrink->rows, height, small_height);
    int columns = puffer_shrink_side(shrink->columns, width, small_width);
    /* Sums must fit in 16 bits. OpenCV uses another method, with other halves, for integer ratios. */
    if (rows == 0 || columns == 0 || rows * columns > UINT16_MAX / UINT8_MAX) return false;
    if (height % small_height == 0 && width % small_width == 0) return false;
    shrink->height = height;
    shrink->width = width;
    shrink->small_height = small_height;
    shrink->small_width = small_width;
    shrink->denominator = (uint32_t)(rows * columns);
    shrink->reciprocal = (uint32_t)(((UINT64_C(1) << 32) + shrink->denominator - 1) / shrink->denominator);
    return true;
}

/* Sums the columns of the pixel-wise maximum of two images for one row of the small image. */
static inline void puffer_shrink_row(uint16_t *sums, const PufferTaps *tap, const uint8_t *newer,
                                     const uint8_t *older, int width) {
    memset(sums, 0, (size_t)width * sizeof(*sums));
    for (int t = 0; t < tap->count; t++) {
        const uint8_t *a = newer + (tap->first + t) * width, *b = older + (tap->first + t) * width;
        uint16_t weight = tap->weights[t];
        for (int x = 0; x < width; x++) sums[x] = (uint16_t)(sums[x] + weight * (a[x] > b[x] ? a[x] : b[x]));
    }
}

/* Computes a pixel whose mean is an exact half by adding like OpenCV does. */
static inline uint8_t puffer_shrink_half(const PufferShrink *shrink, const uint8_t *newer,
                                         const uint8_t *older, int y, int x) {
    const PufferTaps *row = &shrink->rows[y], *column = &shrink->columns[x];
    float sum = 0;
    for (int r = 0; r < row->count; r++) {
        int start = (row->first + r) * shrink->width + column->first;
        float across = 0;
        for (int c = 0; c < column->count; c++) {
            uint8_t a = newer[start + c], b = older[start + c];
            across += (float)(a > b ? a : b) * column->shares[c];
        }
        sum += row->shares[r] * across;
    }
    return (uint8_t)lrintf(sum);
}

/* Computes up to four rows of the small image, starting at y. */
static inline void puffer_shrink_rows(const PufferShrink *shrink, const uint8_t *newer, const uint8_t *older,
                                      const uint64_t *sums, int y, uint8_t *small) {
    uint32_t half = shrink->denominator / 2;
    bool is_even = shrink->denominator % 2 == 0;
    int rows =
        shrink->small_height - y < PUFFER_SHRINK_LANES ? shrink->small_height - y : PUFFER_SHRINK_LANES;
    for (int x = 0; x < shrink->small_width; x++) {
        const PufferTaps *tap = &shrink->columns[x];
        uint64_t lanes = 0;
        for (int t = 0; t < PUFFER_SHRINK_TAPS; t++) lanes += sums[tap->first + t] * tap->weights[t];
        for (int lane = 0; lane < rows; lane++) {
            uint32_t sum = (uint32_t)(lanes >> (16 * lane)) & UINT16_MAX;
            uint32_t mean = (uint32_t)(((uint64_t)(sum + half) * shrink->reciprocal) >> 32);
            bool is_half = is_even && sum + half == mean * shrink->denominator;
            int at = (y + lane) * shrink->small_width + x;
            small[at] = is_half ? puffer_shrink_half(shrink, newer, older, y + lane, x) : (uint8_t)mean;
        }
    }
}

/* Returns whether a changed row of the large images contributes to the rows of the small image from y on. */
static inline bool puffer_shrink_is_changed(const PufferShrink *shrink, const bool *changed, int y) {
    int last =
        (y + PUFFER_SHRINK_LANES < shrink->small_height ? y + PUFFER_SHRINK_LANES : shrink->small_height) - 1;
    int end = shrink->rows[last].first + shrink->rows[last].count;
    for (int row = shrink->rows[y].first; row < end; row++) {
        if (changed[row]) return true;
    }
    return false;
}

/* Shrinks the pixel-wise maximum of two images, which may be the same image.
 *
 * changed: rows that differ from the images that `small` was computed from; NULL: all rows. */
static inline void puffer_shrink(const PufferShrink *shrink, const uint8_t *newer, const uint8_t *older,
                                 const bool *changed, uint8_t *small) {
    uint16_t rows[PUFFER_SHRINK_LANES][PUFFER_SHRINK_LARGE];
    uint64_t sums[PUFFER_SHRINK_LARGE + PUFFER_SHRINK_TAPS] = {
        0}; /* taps of weight 0 may lie beyond the end */
    memset(rows, 0, sizeof(rows));
    for (int y = 0; y < shrink->small_height; y += PUFFER_SHRINK_LANES) {
        if (changed != NULL && !puffer_shrink_is_changed(shrink, changed, y)) continue;
        for (int lane = 0; lane < PUFFER_SHRINK_LANES && y + lane < shrink->small_height; lane++)
            puffer_shrink_row(rows[lane], &shrink->rows[y + lane], newer, older, shrink->width);
        for (int x = 0; x < shrink->width; x++)
            sums[x] = (uint64_t)rows[0][x] | (uint64_t)rows[1][x] << 16 | (uint64_t)rows[2][x] << 32 |
                      (uint64_t)rows[3][x] << 48;
        puffer_shrink_rows(shrink, newer, older, sums, y, small);
    }
}

#endif
