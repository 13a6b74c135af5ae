/* Image observations: the image of a game, scaled to any size, in every row of its agents.
 *
 * A pixel of the small image is the mean of the area that it covers. Weights are integers that sum up to 256
 * along each side, so that a row of sums fits in 16 bits and a uniform colour stays exactly the same.
 *
 * Games draw at their own size into a scratch buffer, which one thread uses at a time. There are as many
 * buffers as threads that may step the batch, so a thread never waits for one, and a step allocates nothing.
 */
#ifndef PUFFER_PIXELS_H
#define PUFFER_PIXELS_H

#include <stdatomic.h>
#include <stdlib.h>

#include "puffer_env.h"

/* Pixels [first, first + count) of the large side that one pixel of the small side covers. */
typedef struct {
    int32_t first, count;
    const uint16_t *weights;
} PufferSpan;

/* Scaling from one image size to another. */
typedef struct {
    int32_t height, width, small_height, small_width;
    PufferSpan *rows, *columns;
    uint16_t *weights;
} PufferScale;

typedef struct {
    atomic_flag taken;
    uint8_t *picture;
    uint16_t *sums; /* one row with three channels */
} PufferScratch;

struct PufferPixels {
    PufferScale scale;
    int32_t num_scratch_buffers;
    PufferScratch *scratch_buffers;
    uint8_t *rows, *final_rows; /* caller's rows: [agents][3][small_height][small_width] */
};

/* ---- Scaling ------------------------------------------------------------------------------------ */

/* Returns the end of the weights that were written. */
static inline uint16_t *puffer_scale_side(PufferSpan *spans, uint16_t *weights, int64_t large,
                                          int64_t small) {
    for (int64_t i = 0; i < small; i++) {
        const int64_t start = i * large; /* in units of 1 / small of a large pixel */
        spans[i] = (PufferSpan){.first = (int32_t)(start / small), .weights = weights};
        int64_t before = 0;
        for (int64_t at = start / small; at * small < start + large; at++) {
            const int64_t end = (at + 1) * small < start + large ? (at + 1) * small - start : large;
            const int64_t share = (end * 256 + large / 2) / large;
            *weights++ = (uint16_t)(share - before);
            before = share;
            spans[i].count++;
        }
    }
    return weights;
}

static inline void puffer_scale_destroy(PufferScale *scale) {
    free(scale->rows);
    free(scale->weights);
    memset(scale, 0, sizeof *scale);
}

/* All sizes must be at least 1. Returns false if there is no memory. */
static inline bool puffer_scale_create(PufferScale *scale, int32_t height, int32_t width,
                                       int32_t small_height, int32_t small_width) {
    const size_t spans = (size_t)small_height + (size_t)small_width;
    /* Neighbouring spans share at most one pixel. */
    const size_t weights = (size_t)height + (size_t)width + 2 * spans;
    *scale = (PufferScale){
        .height = height, .width = width, .small_height = small_height, .small_width = small_width};
    scale->rows = malloc(spans * sizeof *scale->rows);
    scale->weights = malloc(weights * sizeof *scale->weights);
    if (scale->rows == NULL || scale->weights == NULL) {
        puffer_scale_destroy(scale);
        return false;
    }
    scale->columns = scale->rows + small_height;
    uint16_t *next = puffer_scale_side(scale->rows, scale->weights, height, small_height);
    puffer_scale_side(scale->columns, next, width, small_width);
    return true;
}

/* Adds `weight` times a row of the image. */
static inline void puffer_scale_add(uint16_t *restrict sums, const uint8_t *restrict row, uint16_t weight,
                                    int32_t count) {
    for (int32_t i = 0; i < count; i++) sums[i] = (uint16_t)(sums[i] + weight * row[i]);
}

/* The next pixel to the right is `pixel_stride` bytes away, the next channel `colour_stride` bytes. */
static inline void puffer_scale_row(const PufferScale *scale, const uint16_t *sums, uint8_t *small,
                                    size_t pixel_stride, size_t colour_stride) {
    for (int32_t x = 0; x < scale->small_width; x++, small += pixel_stride) {
        const PufferSpan *span = &scale->columns[x];
        const uint16_t *sum = sums + 3 * (size_t)span->first;
        uint32_t red = 32768, green = 32768, blue = 32768;
        for (int32_t i = 0; i < span->count; i++, sum += 3) {
            const uint32_t weight = span->weights[i];
            red += weight * sum[0];
            green += weight * sum[1];
            blue += weight * sum[2];
        }
        small[0] = (uint8_t)(red >> 16);
        small[colour_stride] = (uint8_t)(green >> 16);
        small[2 * colour_stride] = (uint8_t)(blue >> 16);
    }
}

/* `sums` has room for one row of the image. The small image is [height][width][3] or [3][height][width]. */
static inline void puffer_scale_picture(const PufferScale *scale, const uint8_t *picture, uint16_t *sums,
                                        uint8_t *small, bool channels_first) {
    const int32_t count = 3 * scale->width;
    const size_t row_bytes = (size_t)scale->small_width * (channels_first ? 1 : 3);
    const size_t colour_stride = channels_first ? row_bytes * (size_t)scale->small_height : 1;
    for (int32_t y = 0; y < scale->small_height; y++) {
        const PufferSpan *span = &scale->rows[y];
        memset(sums, 0, (size_t)count * sizeof *sums);
        uint16_t weight = 0; /* of equal rows, which most rows of a drawing are */
        for (int32_t i = 0; i < span->count; i++) {
            const uint8_t *row = picture + (size_t)(span->first + i) * (size_t)count;
            weight = (uint16_t)(weight + span->weights[i]);
            if (i + 1 < span->count && memcmp(row, row + count, (size_t)count) == 0) continue;
            puffer_scale_add(sums, row, weight, count);
            weight = 0;
        }
        puffer_scale_row(scale, sums, small + (size_t)y * row_bytes, channels_first ? 1 : 3, colour_stride);
    }
}

/* Scales one [height][width][3] image to another size. Returns false if there is no memory. */
static inline bool puffer_scale_once(const uint8_t *picture, int32_t height, int32_t width, uint8_t *small,
                                     int32_t small_height, int32_t small_width) {
    PufferScale scale;
    if (!puffer_scale_create(&scale, height, width, small_height, small_width)) return false;
    uint16_t *sums = malloc(3 * (size_t)width * sizeof *sums);
    if (sums != NULL) puffer_scale_picture(&scale, picture, sums, small, false);
    free(sums);
    puffer_scale_destroy(&scale);
    return sums != NULL;
}

/* ---- Observations --------------------------------------------------------------------------------- */

static inline PufferScratch *puffer_take_scratch(struct PufferPixels *pixels) {
    for (int32_t i = 0;; i = (i + 1) % pixels->num_scratch_buffers) {
        if (!atomic_flag_test_and_set_explicit(&pixels->scratch_buffers[i].taken, memory_order_acquire)) {
            return &pixels->scratch_buffers[i];
        }
    }
}

/* Draws game `index` for each of its agents, into the agent's row. */
static inline void puffer_draw_rows(const PufferBatch *batch, int32_t index, uint8_t *rows) {
    const PufferScale *scale = &batch->pixels->scale;
    const int32_t agents = batch->spec.agents;
    const size_t row_bytes = 3 * (size_t)scale->small_height * (size_t)scale->small_width;
    uint8_t *row = rows + (size_t)index * (size_t)agents * row_bytes;
    PufferScratch *scratch = puffer_take_scratch(batch->pixels);
    for (int32_t agent = 0; agent < agents; agent++, row += row_bytes) {
        PufferCanvas canvas = {scratch->picture, scale->width, scale->height, agent};
        batch->type->draw(puffer_game(batch, index), &canvas);
        puffer_scale_picture(scale, scratch->picture, scratch->sums, row, true);
    }
    atomic_flag_clear_explicit(&scratch->taken, memory_order_release);
}

static inline void puffer_draw_final_rows(const PufferBatch *batch, int32_t index) {
    puffer_draw_rows(batch, index, batch->pixels->final_rows);
}

/* Stores the images after the last step of agents that ended while their game continues. */
static inline void puffer_keep_rows(const PufferBatch *batch, int32_t index) {
    const struct PufferPixels *pixels = batch->pixels;
    const size_t agents = (size_t)batch->spec.agents, first = (size_t)index * agents;
    const size_t row_bytes = 3 * (size_t)pixels->scale.small_height * (size_t)pixels->scale.small_width;
    for (size_t row = first; row < first + agents; row++) {
        if (!batch->terminals[row] && !batch->truncations[row]) continue;
        memcpy(pixels->final_rows + row * row_bytes, pixels->rows + row * row_bytes, row_bytes);
    }
}

/* Called after a reset or step of games [begin, end). */
static inline void puffer_draw_games(const PufferBatch *batch, int32_t begin, int32_t end) {
    if (batch->pixels == NULL) return;
    for (int32_t i = begin; i < end; i++) {
        puffer_draw_rows(batch, i, batch->pixels->rows);
        const bool goes_on = puffer_game(batch, i)->episode_length > 0;
        if (batch->spec.agents_end && goes_on) puffer_keep_rows(batch, i);
    }
}

static inline void puffer_pixels_destroy(PufferBatch *batch) {
    struct PufferPixels *pixels = batch->pixels;
    if (pixels == NULL) return;
    for (int32_t i = 0; i < pixels->num_scratch_buffers; i++) {
        free(pixels->scratch_buffers[i].picture);
        free(pixels->scratch_buffers[i].sums);
    }
    free(pixels->scratch_buffers);
    puffer_scale_destroy(&pixels->scale);
    free(pixels);
    free(batch->observations); /* the batch's own observations */
    free(batch->final_observations);
    batch->pixels = NULL;
    batch->observations = batch->final_observations = NULL;
}

static inline bool puffer_make_scratch_buffers(struct PufferPixels *pixels, int32_t num_scratch_buffers) {
    const size_t row = 3 * (size_t)pixels->scale.width;
    pixels->scratch_buffers = calloc((size_t)num_scratch_buffers, sizeof *pixels->scratch_buffers);
    if (pixels->scratch_buffers == NULL) return false;
    pixels->num_scratch_buffers = num_scratch_buffers;
    for (int32_t i = 0; i < num_scratch_buffers; i++) {
        PufferScratch *scratch = &pixels->scratch_buffers[i];
        atomic_flag_clear(&scratch->taken);
        scratch->picture = malloc(row * (size_t)pixels->scale.height);
        scratch->sums = malloc(row * sizeof *scratch->sums);
        if (scratch->picture == NULL || scratch->sums == NULL) return false;
    }
    return true;
}

/* Makes the agents of `batch` observe images of this size, drawn by up to `threads` threads. Returns false if
 * there is no memory. In this case the batch must be destroyed. */
static inline bool puffer_pixels_create(PufferBatch *batch, int32_t height, int32_t width, int32_t threads) {
    struct PufferPixels *pixels = calloc(1, sizeof *pixels);
    if (pixels == NULL) return false;
    batch->pixels = pixels;
    batch->keep_picture = puffer_draw_final_rows;
    batch->observations = malloc((size_t)batch->num_games * batch->observation_bytes);
    batch->final_observations = malloc((size_t)batch->num_games * batch->observation_bytes);
    return batch->observations != NULL && batch->final_observations != NULL &&
           puffer_scale_create(&pixels->scale, batch->spec.picture_height, batch->spec.picture_width, height,
                               width) &&
           puffer_make_scratch_buffers(pixels, threads);
}

#endif
