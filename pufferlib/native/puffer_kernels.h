/* Matrix products and other loops over floats for neural networks, selected for the CPU at run time.
 *
 * A product is computed in small tiles whose sums stay in registers. There are kernels for AVX-512, for AVX2,
 * and for any CPU with vectors of four floats. A function table holds the kernels of one kind. */
#ifndef PUFFER_KERNELS_H
#define PUFFER_KERNELS_H

#include <stdbool.h>

#include "puffer_math.h"

#if defined(__clang__)
#define PUFFER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PUFFER_UNROLL _Pragma("GCC unroll 16")
#endif

enum { PUFFER_LANES = 16 }; /* outputs per panel of packed weights */

/* ---- Matrices ----------------------------------------------------------------------------------------- */

/* y = W x + b, with W transposed in panels: weights[panel][input][lane]. */
typedef struct {
    int inputs, outputs;
    const float *weights, *bias;
} PufferMatrix;

/* Rows of numbers that a matrix is multiplied by. Each row consists of runs of consecutive floats: one run
 * for a plain row, several for the image patch under a convolution. */
typedef struct {
    const float *first;
    const int32_t *offsets; /* of the runs, from the start of the row */
    int runs, length;       /* floats per run */
    int per_line;           /* rows per line of the image */
    long step, line_step;   /* floats between neighbouring rows, and between lines */
} PufferRows;

/* Number of floats rounded up to whole panels. */
PUFFER_INLINE int puffer_padded(int floats) {
    return (floats + PUFFER_LANES - 1) / PUFFER_LANES * PUFFER_LANES;
}

/* ---- Layers ------------------------------------------------------------------------------------------- */

typedef enum { PUFFER_RELU, PUFFER_TANH, PUFFER_SILU, PUFFER_ELU, PUFFER_GELU } PufferActivation;

/* A product, layer normalization, and an activation. */
typedef struct {
    PufferMatrix matrix;
    PufferActivation activation;
    const float *scale, *shift; /* of the normalization, padded to whole panels; NULL: none */
} PufferLayer;

/* ---- Observations and memory -------------------------------------------------------------------------- */

/* Conversion of the numbers of one observation array to floats. */
typedef enum { PUFFER_SCALED, PUFFER_LOGARITHMS, PUFFER_LABELS } PufferEncoding;

typedef struct {
    PufferEncoding encoding;
    char type;             /* format character of Python's struct module: ? b B h H i I q Q e f d */
    int32_t offset, count; /* bytes from the start of the observation, and number of elements */
    float scale;           /* for PUFFER_SCALED */
    int64_t low;           /* for PUFFER_LABELS: the lowest value, which has no label */
    int32_t values; /* PUFFER_LABELS: values above the lowest; label v * count + i: number i is low + 1 + v */
} PufferInput;

typedef enum { PUFFER_NO_MEMORY, PUFFER_LSTM, PUFFER_GRU, PUFFER_MINGRU } PufferMemory;

/* Functions that differ between CPUs. */
typedef struct {
    void (*product)(const PufferMatrix *, const PufferRows *, int rows, float *y, long stride, bool adds,
                    bool relu);
    void (*lookup)(const PufferMatrix *, const int32_t *chosen, int count, float *y, bool relu);
    void (*activate)(const PufferLayer *, float *x, long stride, int rows);
    void (*to_floats)(float *to, const uint8_t *from, const PufferInput *input);
    void (*remember)(PufferMemory, const float *gates, float *more, float *h, float *c, int size);
} PufferKernels;

/* ---- Kernels ---------------------------------------------------------------------------------------- */

typedef float PufferLanes16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float PufferLanes8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float PufferLanes4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t PufferBits16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t PufferBits8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t PufferBits4 __attribute__((vector_size(16), aligned(4), may_alias));

/* A tile of several rows and panels whose sums fit in registers. Only the first `rows` exist. The comparison
 * with 0 is written so that NaN is preserved. */
#define PUFFER_TILE(LANES)                                                                                  \
    PUFFER_INLINE void puffer_tile_##LANES(const PufferMatrix *matrix, int panel, const PufferRows *source, \
                                           int row, int rows, float *y, long stride, bool adds, bool relu,  \
                                           const int tall, const int wide) {                                \
        typedef PufferLanes##LANES Vector;                                                                  \
        typedef PufferBits##LANES Bits;                                                                     \
        enum { PARTS = PUFFER_LANES / LANES };                                                              \
        const long next_panel = (long)matrix->inputs * PUFFER_LANES;                                        \
        const float *w = matrix->weights + panel * next_panel, *x[8];                                       \
        float *to[8];                                                                                       \
        Vector sum[8][16], column[16];                                                                      \
        PUFFER_UNROLL for (int r = 0; r < tall; r++) {                                                      \
            int at = row + (r < rows ? r : rows - 1);                                                       \
            x[r] = source->first + at / source->per_line * source->line_step +                              \
                   at % source->per_line * source->step;                                                    \
            to[r] = y + at * stride + panel * PUFFER_LANES;                                                 \
            const float *start = adds ? to[r] : matrix->bias + panel * PUFFER_LANES;                        \
            PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) sum[r][c] =                                \
                *(const Vector *)(start + c * LANES);                                                       \
        }                                                                                                   \
        for (int run = 0; run < source->runs; run++) {                                                      \
            const long begin = source->offsets[run], end = begin + source->length;                          \
            for (long k = begin; k < end; k++, w += PUFFER_LANES) {                                         \
                PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) column[c] =                            \
                    *(const Vector *)(w + c / PARTS * next_panel + c % PARTS * LANES);                      \
                PUFFER_UNROLL for (int r = 0; r < tall; r++)                                                \
                    PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) sum[r][c] += x[r][k] * column[c];  \
            }                                                                                               \
        }                                                                                                   \
        PUFFER_UNROLL for (int r = 0; r < tall; r++) {                                                      \
            PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) {                                          \
                if (relu) sum[r][c] = (Vector)((Bits)sum[r][c] & ~(Bits)(sum[r][c] < 0));                   \
                if (r < rows) *(Vector *)(to[r] + c * LANES) = sum[r][c];                                   \
            }                                                                                               \
        }                                                                                                   \
    }

/* A layer whose inputs are labels: the sum of the selected columns, four panels at a time. */
#define PUFFER_LOOKUP(LANES)                                                                               \
    PUFFER_INLINE void puffer_lookup_##LANES(const PufferMatrix *matrix, int panel, const int32_t *chosen, \
                                             int count, float *y, bool relu, const int wide) {             \
        typedef PufferLanes##LANES Vector;                                                                 \
        typedef PufferBits##LANES Bits;                                                                    \
        enum { PARTS = PUFFER_LANES / LANES };                                                             \
        const long next_panel = (long)matrix->inputs * PUFFER_LANES;                                       \
        const float *w = matrix->weights + panel * next_panel;                                             \
        Vector sum[16];                                                                                    \
        PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) sum[c] =                                      \
            *(const Vector *)(matrix->bias + panel * PUFFER_LANES + c * LANES);                            \
        for (int i = 0; i < count; i++) {                                                                  \
            const float *column = w + (long)chosen[i] * PUFFER_LANES;                                      \
            PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) sum[c] +=                                 \
                *(const Vector *)(column + c / PARTS * next_panel + c % PARTS * LANES);                    \
        }                                                                                                  \
        PUFFER_UNROLL for (int c = 0; c < PARTS * wide; c++) {                                             \
            if (relu) sum[c] = (Vector)((Bits)sum[c] & ~(Bits)(sum[c] < 0));                               \
            *(Vector *)(y + panel * PUFFER_LANES + c * LANES) = sum[c];                                    \
        }                                                                                                  \
    }

/* Runs the statement for each of the first `count` elements of x, rounded up to whole panels. Loops of a
 * constant length are vectorized at any level of optimization. */
#define PUFFER_EACH_LANE(count, statement)                    \
    for (int panel = 0; panel < count; panel += PUFFER_LANES) \
        for (int lane = 0, i = panel; lane < PUFFER_LANES; lane++, i++) statement

/* Sum of all lanes, which are overwritten. */
PUFFER_INLINE float puffer_sum_lanes(float *lanes) {
    PUFFER_UNROLL for (int half = PUFFER_LANES / 2; half > 0; half /= 2)
        PUFFER_UNROLL for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

enum { PUFFER_NORM_ROWS = 16 }; /* rows of a block, which are normalized at the same time */

/* Layer normalization of up to PUFFER_NORM_ROWS rows, whose padding is 0: Ba et al., "Layer Normalization"
 * (2016). Sums, squares and results have loops of their own, because the rows of one loop are computed at the
 * same time. */
PUFFER_INLINE void puffer_norm_block(const PufferLayer *layer, float *__restrict x, long stride, int rows) {
    const int size = layer->matrix.outputs;
    const float share = 1 / (float)size;
    float means[PUFFER_NORM_ROWS], inverses[PUFFER_NORM_ROWS] = {0};
    for (int row = 0; row < rows; row++) {
        const float *__restrict from = x + row * stride;
        float sums[PUFFER_LANES] = {0};
        PUFFER_EACH_LANE(size, sums[lane] += from[i]);
        means[row] = puffer_sum_lanes(sums) * share;
    }
    for (int row = 0; row < rows; row++) {
        float *__restrict of_row = x + row * stride, squares[PUFFER_LANES] = {0};
        const float mean = means[row];
        for (int i = size; i < puffer_padded(size); i++) of_row[i] = mean; /* adds nothing to the squares */
        PUFFER_EACH_LANE(size, squares[lane] += (of_row[i] - mean) * (of_row[i] - mean));
        inverses[row] = puffer_sum_lanes(squares) * share;
    }
    for (int row = 0; row < PUFFER_NORM_ROWS; row++) inverses[row] = 1 / sqrtf(inverses[row] + 1e-5f);
    for (int row = 0; row < rows; row++) {
        float *__restrict of_row = x + row * stride;
        const float mean = means[row], inverse = inverses[row];
        PUFFER_EACH_LANE(size, of_row[i] = (of_row[i] - mean) * inverse * layer->scale[i] + layer->shift[i]);
    }
}

/* Runs the statement for each element of `rows` rows, rounded up to whole panels. */
#define PUFFER_EACH_ELEMENT(statement)                  \
    for (int row = 0; row < rows; row++, x += stride) { \
        PUFFER_EACH_LANE(size, statement);              \
    }                                                   \
    break

/* Normalization of all rows, then activation of all rows. The comparison of ReLU preserves NaN. */
PUFFER_INLINE void puffer_activate_rows(const PufferLayer *layer, float *__restrict x, long stride,
                                        int rows) {
    const int size = layer->matrix.outputs;
    if (layer->scale)
        for (int row = 0; row < rows; row += PUFFER_NORM_ROWS)
            puffer_norm_block(layer, x + row * stride, stride,
                              rows - row < PUFFER_NORM_ROWS ? rows - row : PUFFER_NORM_ROWS);
    switch (layer->activation) {
        case PUFFER_RELU:
            PUFFER_EACH_ELEMENT(x[i] = x[i] < 0 ? 0 : x[i]);
        case PUFFER_TANH:
            PUFFER_EACH_ELEMENT(x[i] = puffer_tanh(x[i]));
        case PUFFER_SILU:
            PUFFER_EACH_ELEMENT(x[i] = puffer_silu(x[i]));
        case PUFFER_ELU:
            PUFFER_EACH_ELEMENT(x[i] = puffer_elu(x[i]));
        case PUFFER_GELU:
            PUFFER_EACH_ELEMENT(x[i] = puffer_gelu(x[i]));
    }
}

/* One row of an LSTM. Gates are stored in the order i, f, g, o. */
PUFFER_INLINE void puffer_lstm_row(const float *__restrict gates, float *__restrict h, float *__restrict c,
                                   int size) {
    for (int j = 0; j < size; j++) {
        float i = puffer_sigmoid(gates[j]), f = puffer_sigmoid(gates[size + j]);
        float g = puffer_tanh(gates[2 * size + j]), o = puffer_sigmoid(gates[3 * size + j]);
        c[j] = f * c[j] + i * g;
        h[j] = o * puffer_tanh(c[j]);
    }
}

/* One row of a GRU. Gates are stored in the order r, z, n, once from the input and once from the memory. */
PUFFER_INLINE void puffer_gru_row(const float *__restrict gates, const float *__restrict own,
                                  float *__restrict h, int size) {
    for (int j = 0; j < size; j++) {
        float r = puffer_sigmoid(gates[j] + own[j]), z = puffer_sigmoid(gates[size + j] + own[size + j]);
        float n = puffer_tanh(gates[2 * size + j] + r * own[2 * size + j]);
        h[j] = n + z * (h[j] - n);
    }
}

/* One row of a minimal GRU. Gates are stored in the order z, n, r. The output overwrites the input x. */
PUFFER_INLINE void puffer_mingru_row(const float *__restrict gates, float *__restrict x, float *__restrict h,
                                     int size) {
    for (int j = 0; j < size; j++) {
        float z = puffer_sigmoid(gates[j]), n = gates[size + j], r = puffer_sigmoid(gates[2 * size + j]);
        h[j] = h[j] + z * (n - h[j]);
        x[j] = x[j] + r * (h[j] - x[j]);
    }
}

PUFFER_INLINE float puffer_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF;
    if (rest < 0x0400) return (sign ? -1.0f : 1.0f) * (float)rest * 5.9604644775390625e-8f;
    uint32_t bits = sign | (rest >= 0x7C00 ? 0x7F800000 | rest << 13 : (rest << 13) + 0x38000000);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Runs the statement for each i with `value`, element i of an array of the C type `Type`. */
#define PUFFER_EACH(Type, statement)                           \
    for (int i = 0; i < count; i++) {                          \
        Type value;                                            \
        memcpy(&value, from + i * sizeof(Type), sizeof(Type)); \
        statement;                                             \
    }                                                          \
    break

/* Runs the statement for each of `count` numbers at `from`. */
#define PUFFER_EACH_INTEGER(statement)    \
    case 'b':                             \
        PUFFER_EACH(int8_t, statement);   \
    case '?':                             \
    case 'B':                             \
        PUFFER_EACH(uint8_t, statement);  \
    case 'h':                             \
        PUFFER_EACH(int16_t, statement);  \
    case 'H':                             \
        PUFFER_EACH(uint16_t, statement); \
    case 'i':                             \
        PUFFER_EACH(int32_t, statement);  \
    case 'I':                             \
        PUFFER_EACH(uint32_t, statement); \
    case 'q':                             \
        PUFFER_EACH(int64_t, statement);  \
    case 'Q':                             \
        PUFFER_EACH(uint64_t, statement)

PUFFER_INLINE void puffer_input_to_floats(float *__restrict to, const uint8_t *__restrict from,
                                          const PufferInput *input) {
    const int count = input->count;
    const float scale = input->scale;
    from += input->offset;
    switch (input->type) {
        PUFFER_EACH_INTEGER(to[i] = (float)value * scale);
        case 'e':
            PUFFER_EACH(uint16_t, to[i] = puffer_half(value) * scale);
        case 'f':
            PUFFER_EACH(float, to[i] = value * scale);
        case 'd':
            PUFFER_EACH(double, to[i] = (float)value * scale);
    }
    if (input->encoding == PUFFER_LOGARITHMS)
        for (int i = 0; i < count; i++) to[i] = copysignf(log1pf(fabsf(to[i])), to[i]);
}

/* Kernels for one kind of CPU. A full tile has `tall` rows of `wide` panels. A single row has `flat` ones. */
#define PUFFER_KERNELS(name, TARGET, LANES, tall, wide, flat)                                                \
    TARGET static void puffer_product_##name(const PufferMatrix *matrix, const PufferRows *source, int rows, \
                                             float *y, long stride, bool adds, bool relu) {                  \
        const int panels = puffer_padded(matrix->outputs) / PUFFER_LANES, lone = rows % tall == 1;           \
        int panel = 0;                                                                                       \
        for (; panel + wide <= panels; panel += wide)                                                        \
            for (int row = 0; row < rows - lone; row += tall)                                                \
                puffer_tile_##LANES(matrix, panel, source, row, rows - row, y, stride, adds, relu, tall,     \
                                    wide);                                                                   \
        for (; panel < panels; panel++)                                                                      \
            for (int row = 0; row < rows - lone; row += tall)                                                \
                puffer_tile_##LANES(matrix, panel, source, row, rows - row, y, stride, adds, relu, tall, 1); \
        if (!lone) return;                                                                                   \
        for (panel = 0; panel + flat <= panels; panel += flat)                                               \
            puffer_tile_##LANES(matrix, panel, source, rows - 1, 1, y, stride, adds, relu, 1, flat);         \
        for (; panel < panels; panel++)                                                                      \
            puffer_tile_##LANES(matrix, panel, source, rows - 1, 1, y, stride, adds, relu, 1, 1);            \
    }                                                                                                        \
    TARGET static void puffer_lookup_##name(const PufferMatrix *matrix, const int32_t *chosen, int count,    \
                                            float *y, bool relu) {                                           \
        const int panels = puffer_padded(matrix->outputs) / PUFFER_LANES;                                    \
        int panel = 0;                                                                                       \
        for (; panel + flat <= panels; panel += flat)                                                        \
            puffer_lookup_##LANES(matrix, panel, chosen, count, y, relu, flat);                              \
        for (; panel < panels; panel++) puffer_lookup_##LANES(matrix, panel, chosen, count, y, relu, 1);     \
    }                                                                                                        \
    TARGET static void puffer_activate_##name(const PufferLayer *layer, float *x, long stride, int rows) {   \
        puffer_activate_rows(layer, x, stride, rows);                                                        \
    }                                                                                                        \
    TARGET static void puffer_to_floats_##name(float *to, const uint8_t *from, const PufferInput *input) {   \
        puffer_input_to_floats(to, from, input);                                                             \
    }                                                                                                        \
    TARGET static void puffer_remember_##name(PufferMemory memory, const float *gates, float *more,          \
                                              float *h, float *c, int size) {                                \
        if (memory == PUFFER_LSTM) puffer_lstm_row(gates, h, c, size);                                       \
        if (memory == PUFFER_GRU) puffer_gru_row(gates, more, h, size);                                      \
        if (memory == PUFFER_MINGRU) puffer_mingru_row(gates, more, h, size);                                \
    }                                                                                                        \
    static const PufferKernels puffer_kernels_##name = {puffer_product_##name, puffer_lookup_##name,         \
                                                        puffer_activate_##name, puffer_to_floats_##name,     \
                                                        puffer_remember_##name};

PUFFER_TILE(4)
PUFFER_LOOKUP(4)
PUFFER_KERNELS(any, , 4, 2, 1, 2)
#if defined(__x86_64__)
PUFFER_TILE(8)
PUFFER_LOOKUP(8)
PUFFER_KERNELS(avx2, __attribute__((target("avx2,fma"))), 8, 4, 1, 4)
PUFFER_TILE(16)
PUFFER_LOOKUP(16)
PUFFER_KERNELS(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), 16, 8, 2, 4)
#endif

/* Returns the kernels named "avx512", "avx2" or "any", or the best ones for NULL. Returns NULL if this CPU
 * does not support them. */
static inline const PufferKernels *puffer_kernels(const char *name) {
#if defined(__x86_64__)
    bool is_new = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
    if (is_new && (name == NULL || strcmp(name, "avx512") == 0)) return &puffer_kernels_avx512;
    bool is_recent = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (is_recent && (name == NULL || strcmp(name, "avx2") == 0)) return &puffer_kernels_avx2;
#endif
    return name == NULL || strcmp(name, "any") == 0 ? &puffer_kernels_any : NULL;
}

#endif
