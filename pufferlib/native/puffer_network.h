/* Runs a policy: observations in, parameters of the action distribution and values out.
 *
 *   observation -> image -> convolutions -> linear -+
 *               -> numbers, labels -----------------+-> linear layers -> memory -> decoder -> params, values
 *
 * Any of the parts before the decoder may be missing. It needs nothing but libc and libm, so that a trained
 * policy fits in one C file. Matrices are products of small tiles whose sums stay in registers; the rows of a
 * call are worked on in blocks whose activations stay in the cache. A row gives the same bytes whichever rows
 * are beside it. The kernels exist for AVX-512, for AVX2, and for any machine with vectors of four floats.
 *
 * Rows of floats in here are padded to whole panels: what lies in the padding is never read.
 */
#ifndef PUFFER_NETWORK_H
#define PUFFER_NETWORK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PUFFER_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define PUFFER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PUFFER_UNROLL _Pragma("GCC unroll 16")
#endif

enum {
    PUFFER_LANES = 16,       /* outputs of a panel, in which weights are packed */
    PUFFER_BLOCK = 32,       /* rows of a call that go through the network together */
    PUFFER_MAX_LAYERS = 16,  /* linear layers, and convolutions */
    PUFFER_MAX_MEMORIES = 2, /* arrays that remember */
};

/* ---- Parts ------------------------------------------------------------------------------------------ */

/* y = W x + b, with W transposed in panels: weights[panel][input][lane]. */
typedef struct {
    int inputs, outputs;
    float *weights, *bias;
} PufferMatrix;

/* Rows of numbers that a matrix is multiplied by. Each consists of runs of consecutive floats: one for a
 * plain row, several for the patch of an image under a convolution. */
typedef struct {
    const float *first;
    const int32_t *offsets; /* of the runs, from the start of the row */
    int runs, length;       /* floats of a run */
    int per_line;           /* rows before the next one is in another line of the image */
    long step, line_step;   /* floats between neighbouring rows, and between lines */
} PufferRows;

/* A convolution, whose outputs have their channels last, with ReLU. */
typedef struct {
    PufferMatrix matrix;
    int32_t *offsets;
    int runs, length, step, line_step, out_height, out_width;
} PufferConvolution;

/* How the numbers of one array in an observation become floats. */
typedef enum { PUFFER_SCALED, PUFFER_LOGARITHMS, PUFFER_LABELS } PufferEncoding;

typedef struct {
    PufferEncoding encoding;
    char type;             /* its letter in Python's struct module: ? b B h H i I q Q e f d */
    int32_t offset, count; /* bytes from the start of the observation; numbers */
    float scale;           /* of scaled ones */
    int64_t low;           /* of labels: the value that has none */
    int32_t values; /* of labels: values above the lowest; label v * count + i says that number i is low + 1 +
                       v */
} PufferInput;

typedef enum { PUFFER_NO_MEMORY, PUFFER_LSTM, PUFFER_GRU, PUFFER_MINGRU } PufferMemory;

/* What differs from processor to processor. */
typedef struct {
    void (*product)(const PufferMatrix *, const PufferRows *, int rows, float *y, long stride, bool adds,
                    bool relu);
    void (*lookup)(const PufferMatrix *, const int32_t *chosen, int count, float *y, bool relu);
    void (*to_floats)(float *to, const uint8_t *from, const PufferInput *input);
    void (*remember)(PufferMemory, const float *gates, float *more, float *h, float *c, int size);
} PufferKernels;

typedef struct {
    const PufferKernels *kernels;
    int row_bytes; /* of an observation */
    PufferInput *inputs;
    int num_inputs;
    PufferInput image; /* (channels, height, width) if there are convolutions */
    PufferConvolution convolutions[PUFFER_MAX_LAYERS];
    int num_convolutions;
    PufferMatrix image_layer;
    PufferMatrix
        labels; /* the columns of the first layer that labels choose, and its bias; outputs 0 without */
    PufferMatrix layers[PUFFER_MAX_LAYERS];
    int num_layers;
    PufferMemory memory;
    PufferMatrix gates, recurrent; /* of the memory: what it takes from its input, and from itself */
    PufferMatrix decoder;          /* its last output is the value */
    float *log_std;                /* of continuous actions, else NULL */
    PufferInput mask;              /* of the actions that are allowed; count 0 without */
    int width;                     /* floats of a row between the layers */
} PufferNetwork;

/* Where one thread keeps what is between the layers. */
typedef struct {
    float *x, *y, *flat, *pixels[2];
    int32_t *chosen; /* labels */
} PufferScratch;

/* Rows padded to whole panels. */
PUFFER_INLINE int puffer_padded(int floats) {
    return (floats + PUFFER_LANES - 1) / PUFFER_LANES * PUFFER_LANES;
}

/* ---- Kernels ---------------------------------------------------------------------------------------- */

typedef float PufferLanes16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float PufferLanes8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float PufferLanes4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t PufferBits16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t PufferBits8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t PufferBits4 __attribute__((vector_size(16), aligned(4), may_alias));

/* Tile of tall rows and wide panels, whose sums fit in the registers; only the first `rows` are there. Keeps
 * NaN, which a comparison with 0 from the other side would lose. */
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

/* A layer of a row whose inputs are labels: the sum of the columns that are chosen, four panels at a time. */
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

/* e^x within 2e-7 of it, for x in [-80, 80] and for NaN: 2^n by the bits of a float, the rest by its series.
 */
PUFFER_INLINE float puffer_exp(float x) {
    const float magic =
        12582912; /* 1.5 * 2^23: what is added to it is rounded to an integer, in the last bits */
    x = x < -80 ? -80 : x;
    x = x > 80 ? 80 : x;
    float rounded = x * 1.44269504f + magic;
    float n = rounded - magic;
    float rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float series = 1.98412698e-4f;
    series = series * rest + 1.38888889e-3f;
    series = series * rest + 8.33333333e-3f;
    series = series * rest + 4.16666667e-2f;
    series = series * rest + 1.66666667e-1f;
    series = series * rest + 0.5f;
    series = series * rest * rest + rest + 1;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof(bits));
    bits = (bits + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof(power));
    return series * power;
}

PUFFER_INLINE float puffer_sigmoid(float x) {
    return 1 / (1 + puffer_exp(-x));
}

PUFFER_INLINE float puffer_tanh(float x) {
    return 2 * puffer_sigmoid(2 * x) - 1;
}

/* One row of an LSTM; gates: i, f, g, o after one another. */
PUFFER_INLINE void puffer_lstm_row(const float *restrict gates, float *restrict h, float *restrict c,
                                   int size) {
    for (int j = 0; j < size; j++) {
        float i = puffer_sigmoid(gates[j]), f = puffer_sigmoid(gates[size + j]);
        float g = puffer_tanh(gates[2 * size + j]), o = puffer_sigmoid(gates[3 * size + j]);
        c[j] = f * c[j] + i * g;
        h[j] = o * puffer_tanh(c[j]);
    }
}

/* One row of a GRU; gates: r, z, n from its input, and the same from its memory. */
PUFFER_INLINE void puffer_gru_row(const float *restrict gates, const float *restrict own, float *restrict h,
                                  int size) {
    for (int j = 0; j < size; j++) {
        float r = puffer_sigmoid(gates[j] + own[j]), z = puffer_sigmoid(gates[size + j] + own[size + j]);
        float n = puffer_tanh(gates[2 * size + j] + r * own[2 * size + j]);
        h[j] = n + z * (h[j] - n);
    }
}

/* One row of a minimal GRU; gates: z, n, r. Its output takes the place of its input x. */
PUFFER_INLINE void puffer_mingru_row(const float *restrict gates, float *restrict x, float *restrict h,
                                     int size) {
    for (int j = 0; j < size; j++) {
        float z = puffer_sigmoid(gates[j]), n = gates[size + j], r = puffer_sigmoid(gates[2 * size + j]);
        h[j] = h[j] + z * (n - h[j]);
        x[j] = x[j] + r * (h[j] - x[j]);
    }
}

PUFFER_INLINE float puffer_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF;
    if (rest < 0x0400) return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    uint32_t bits = sign | (rest >= 0x7C00 ? 0x7F800000 | rest << 13 : (rest << 13) + 0x38000000);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Runs the statement with `value`, number i of an array of C's `Type`, for each i. */
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

PUFFER_INLINE void puffer_input_to_floats(float *restrict to, const uint8_t *restrict from,
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

/* Kernels for one kind of processor. A full tile has `tall` rows of `wide` panels; a lone row has `flat`
 * panels. */
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
                                                        puffer_to_floats_##name, puffer_remember_##name};

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

/* The kernels of a name, "avx512", "avx2" or "any", or the best for NULL; NULL if this processor has not
 * those. */
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

/* ---- Making a network --------------------------------------------------------------------------------- */

PUFFER_INLINE int puffer_larger(int a, int b) { return a > b ? a : b; }

/* Zeros, aligned to a line of the cache; NULL if there is no memory. */
static inline void *puffer_zeros(size_t count, size_t size) {
    size_t bytes = (count * size + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

static inline bool puffer_matrix_init(PufferMatrix *matrix, int inputs, int outputs) {
    matrix->inputs = inputs;
    matrix->outputs = outputs;
    matrix->weights = puffer_zeros((size_t)puffer_padded(outputs) * inputs, sizeof(float));
    matrix->bias = puffer_zeros(puffer_padded(outputs), sizeof(float));
    return matrix->weights != NULL && matrix->bias != NULL;
}

/* Copies weights: that of output o for input k is at weights[o * stride + places[k]]. */
static inline void puffer_matrix_pack(PufferMatrix *matrix, const float *weights, long stride,
                                      const int32_t *places) {
    float *to = matrix->weights;
    for (int first = 0; first < matrix->outputs; first += PUFFER_LANES) {
        int lanes = matrix->outputs - first < PUFFER_LANES ? matrix->outputs - first : PUFFER_LANES;
        for (int k = 0; k < matrix->inputs; k++, to += PUFFER_LANES)
            for (int lane = 0; lane < lanes; lane++) to[lane] = weights[(first + lane) * stride + places[k]];
    }
}

/* Chooses the kernels, by name or the best for NULL, once all parts are there; false if this processor has
 * not those. */
static inline bool puffer_network_init(PufferNetwork *net, const char *kernels) {
    int width = net->image_layer.outputs;
    for (int i = 0; i < net->num_inputs; i++)
        if (net->inputs[i].encoding != PUFFER_LABELS) width += net->inputs[i].count;
    for (int i = 0; i < net->num_layers; i++) width = puffer_larger(width, net->layers[i].outputs);
    net->width = puffer_padded(puffer_larger(width, puffer_larger(net->gates.outputs, net->decoder.outputs)));
    net->kernels = puffer_kernels(kernels);
    return net->kernels != NULL;
}

/* False if there is no memory. */
static inline bool puffer_scratch_init(PufferScratch *scratch, const PufferNetwork *net) {
    int labels = 1,
        pixels = net->image.count; /* one label more, since it is written before it is known to count */
    for (int i = 0; i < net->num_inputs; i++)
        if (net->inputs[i].encoding == PUFFER_LABELS) labels += net->inputs[i].count;
    for (int i = 0; i < net->num_convolutions; i++) {
        const PufferConvolution *conv = &net->convolutions[i];
        pixels = puffer_larger(pixels, conv->out_height * conv->out_width * conv->matrix.outputs);
    }
    scratch->x = puffer_zeros((size_t)PUFFER_BLOCK * net->width, sizeof(float));
    scratch->y = puffer_zeros((size_t)PUFFER_BLOCK * net->width, sizeof(float));
    scratch->flat = puffer_zeros((size_t)PUFFER_BLOCK * net->image_layer.inputs, sizeof(float));
    for (int i = 0; i < 2; i++) scratch->pixels[i] = puffer_zeros(pixels, sizeof(float));
    scratch->chosen = puffer_zeros(labels, sizeof(int32_t));
    return scratch->x && scratch->y && scratch->flat && scratch->pixels[0] && scratch->pixels[1] &&
           scratch->chosen;
}

static inline void puffer_scratch_free(PufferScratch *scratch) {
    void *arrays[] = {scratch->x,         scratch->y,         scratch->flat,
                      scratch->pixels[0], scratch->pixels[1], scratch->chosen};
    for (int i = 0; i < 6; i++) free(arrays[i]);
}

static inline void puffer_matrix_free(PufferMatrix *matrix) {
    free(matrix->weights);
    free(matrix->bias);
}

static inline void puffer_network_free(PufferNetwork *net) {
    for (int i = 0; i < PUFFER_MAX_LAYERS; i++) {
        puffer_matrix_free(&net->layers[i]);
        puffer_matrix_free(&net->convolutions[i].matrix);
        free(net->convolutions[i].offsets);
    }
    PufferMatrix *matrices[] = {&net->image_layer, &net->labels, &net->gates, &net->recurrent, &net->decoder};
    for (int i = 0; i < 5; i++) puffer_matrix_free(matrices[i]);
    free(net->inputs);
    free(net->log_std);
    memset(net, 0, sizeof(*net));
}

/* ---- Forward ------------------------------------------------------------------------------------------ */

/* y (+)= W x + b for plain rows of floats. */
static inline void puffer_linear(const PufferNetwork *net, const PufferMatrix *matrix, const float *x,
                                 long x_stride, float *y, bool adds, bool relu, int rows) {
    static const int32_t start = 0;
    PufferRows source = {x, &start, 1, matrix->inputs, INT32_MAX, x_stride, 0};
    net->kernels->product(matrix, &source, rows, y, net->width, adds, relu);
}

/* The image of one observation, through all convolutions, to a row of floats. */
static inline void puffer_convolve(const PufferNetwork *net, const PufferScratch *scratch,
                                   const uint8_t *observation, float *flat) {
    float *from = scratch->pixels[0], *to = scratch->pixels[1];
    net->kernels->to_floats(from, observation, &net->image);
    for (int i = 0; i < net->num_convolutions; i++) {
        const PufferConvolution *conv = &net->convolutions[i];
        bool is_last = i == net->num_convolutions - 1;
        PufferRows source = {from,       conv->offsets,  conv->runs, conv->length, conv->out_width,
                             conv->step, conv->line_step};
        float *y = is_last ? flat : to;
        net->kernels->product(&conv->matrix, &source, conv->out_height * conv->out_width, y,
                              conv->matrix.outputs, false, true);
        to = from;
        from = y;
    }
}

/* The labels of one array: numbers of the columns that it chooses, branch-free. Returns how many there are
 * now. */
static inline int puffer_choose(const PufferInput *input, const uint8_t *from, int base, int32_t *chosen,
                                int found) {
    const int count = input->count;
    const uint64_t first = (uint64_t)input->low + 1, values = (uint64_t)input->values;
    from += input->offset;
    switch (input->type) {
        PUFFER_EACH_INTEGER({
            uint64_t label = (uint64_t)value - first;
            chosen[found] = base + (int32_t)(label * (uint64_t)count) + i;
            found += label < values;
        });
    }
    return found;
}

/* The first layer, or its inputs if there is none: the numbers of the observations into x from `column` on.
 */
static inline void puffer_read(const PufferNetwork *net, const PufferScratch *scratch,
                               const uint8_t *observations, int rows, int column) {
    for (int row = 0; row < rows; row++, observations += net->row_bytes) {
        float *to = scratch->x + (long)row * net->width + column;
        int chosen = 0, base = 0;
        for (int i = 0; i < net->num_inputs; i++) {
            const PufferInput *input = &net->inputs[i];
            if (input->encoding == PUFFER_LABELS) {
                chosen = puffer_choose(input, observations, base, scratch->chosen, chosen);
                base += input->values * input->count;
            } else {
                net->kernels->to_floats(to, observations, input);
                to += input->count;
            }
        }
        if (net->labels.outputs)
            net->kernels->lookup(&net->labels, scratch->chosen, chosen, scratch->y + (long)row * net->width,
                                 net->layers[0].inputs == 0);
    }
}

/* From the numbers in x, or the outputs of the image, through all linear layers; returns the last one's
 * outputs. */
static inline float *puffer_layers(const PufferNetwork *net, const PufferScratch *scratch, int rows) {
    float *x = scratch->x, *y = scratch->y;
    for (int i = 0; i < net->num_layers; i++) {
        bool adds = i == 0 && net->labels.outputs > 0;
        if (net->layers[i].inputs) puffer_linear(net, &net->layers[i], x, net->width, y, adds, true, rows);
        float *outputs = y;
        y = x;
        x = outputs;
    }
    return x;
}

/* Logits of what the observation forbids become so low that it is never chosen. */
static inline void puffer_forbid(const PufferInput *mask, const uint8_t *from, float *params) {
    const int count = mask->count;
    from += mask->offset;
    switch (mask->type) {
        PUFFER_EACH_INTEGER(params[i] = value == 0 ? -1e9f : params[i]);
        case 'e':
            PUFFER_EACH(uint16_t, params[i] = (value & 0x7FFF) == 0 ? -1e9f : params[i]);
        case 'f':
            PUFFER_EACH(float, params[i] = value == 0 ? -1e9f : params[i]);
        case 'd':
            PUFFER_EACH(double, params[i] = value == 0 ? -1e9f : params[i]);
    }
}

/* Rows of floats between two parts. */
typedef struct {
    float *first;
    long stride;
} PufferHidden;

/* One step of the memory: from `hidden`, whose place it may use, and the rest of the buffers, to what it
 * shows. */
static inline PufferHidden puffer_remember(const PufferNetwork *net, float *hidden, float *gates,
                                           float *const *memory, int rows) {
    const int size = net->decoder.inputs;
    const long width = net->width;
    puffer_linear(net, &net->gates, hidden, width, gates, false, false, rows);
    if (net->memory == PUFFER_LSTM)
        puffer_linear(net, &net->recurrent, memory[0], size, gates, true, false, rows);
    if (net->memory == PUFFER_GRU)
        puffer_linear(net, &net->recurrent, memory[0], size, hidden, false, false, rows);
    for (int row = 0; row < rows; row++) {
        float *c = net->memory == PUFFER_LSTM ? memory[1] + (long)row * size : NULL;
        net->kernels->remember(net->memory, gates + row * width, hidden + row * width,
                               memory[0] + (long)row * size, c, size);
    }
    if (net->memory == PUFFER_MINGRU) return (PufferHidden){hidden, width};
    return (PufferHidden){memory[0], size};
}

/* Parameters and values of rows from the outputs of the decoder, without what the observations forbid. */
static inline void puffer_heads(const PufferNetwork *net, const uint8_t *observations, int rows,
                                const float *decoded, float *params, float *values) {
    const int outputs = net->decoder.outputs - 1, num_params = net->log_std ? 2 * outputs : outputs;
    for (int row = 0; row < rows; row++) {
        memcpy(params, decoded, outputs * sizeof(float));
        if (net->log_std) memcpy(params + outputs, net->log_std, outputs * sizeof(float));
        if (net->mask.count) puffer_forbid(&net->mask, observations, params);
        values[row] = decoded[outputs];
        observations += net->row_bytes;
        decoded += net->width;
        params += num_params;
    }
}

/* Up to a block of rows; see puffer_network_forward. */
static inline void puffer_block(const PufferNetwork *net, const PufferScratch *scratch,
                                const uint8_t *observations, int rows, float *const *memory, float *params,
                                float *values) {
    if (net->num_convolutions) {
        const int flat = net->image_layer.inputs;
        for (int row = 0; row < rows; row++)
            puffer_convolve(net, scratch, observations + (long)row * net->row_bytes,
                            scratch->flat + (long)row * flat);
        puffer_linear(net, &net->image_layer, scratch->flat, flat, scratch->x, false, true, rows);
    }
    puffer_read(net, scratch, observations, rows, net->image_layer.outputs);
    float *hidden = puffer_layers(net, scratch, rows),
          *other = hidden == scratch->x ? scratch->y : scratch->x;
    PufferHidden shown = {hidden, net->width};
    if (net->memory) {
        shown = puffer_remember(net, hidden, other, memory, rows);
        if (shown.first != hidden) other = hidden;
    }
    puffer_linear(net, &net->decoder, shown.first, shown.stride, other, false, false, rows);
    puffer_heads(net, observations, rows, other, params, values);
}

/* One step of all rows.
 *
 * observations: rows of row_bytes. memory: arrays (rows, size) of the memory, for an LSTM h and c, else h;
 * updated. params: (rows, num_params): logits, or means and logarithms of standard deviations. values:
 * (rows).
 */
static inline void puffer_network_forward(const PufferNetwork *net, const PufferScratch *scratch,
                                          const uint8_t *observations, long rows, float *const *memory,
                                          int num_memories, float *params, float *values) {
    const int outputs = net->decoder.outputs - 1, num_params = net->log_std ? 2 * outputs : outputs;
    float *now[PUFFER_MAX_MEMORIES];
    for (long row = 0; row < rows; row += PUFFER_BLOCK) {
        for (int i = 0; i < num_memories; i++) now[i] = memory[i] + row * net->decoder.inputs;
        puffer_block(net, scratch, observations + row * net->row_bytes,
                     rows - row < PUFFER_BLOCK ? (int)(rows - row) : PUFFER_BLOCK, now,
                     params + row * num_params, values + row);
    }
}

#endif
