/* The element-wise arithmetic of recurrent networks, one pass over the rows of a step, forward and backward.
 *
 * The matrix products around it are torch's. Gates are floats, or bfloat16 where the products are: then all
 * arithmetic and the memory are floats still. Unlike what the environments compute, results may differ in
 * their last bits between machines, as those of torch's products do.
 */
#ifndef PUFFER_RECURRENT_H
#define PUFFER_RECURRENT_H

#include <stddef.h>
#include <stdint.h>

#include "puffer_math.h"

/* Before a loop over the elements of a row: none of them is another's. */
#if defined(__GNUC__) && !defined(__clang__)
#define PUFFER_APART _Pragma("GCC ivdep")
#else
#define PUFFER_APART
#endif

/* bfloat16 is the upper half of a float. */
static inline float puffer_from_bfloat16(uint16_t value) {
    return puffer_bits_to_float((uint32_t)value << 16);
}

/* The nearest one, of two equally near the even one. */
static inline uint16_t puffer_to_bfloat16(float value) {
    uint32_t bits = puffer_float_to_bits(value);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* What goes into products and comes out of them, as both kinds of numbers. */
static inline float puffer_load(int is_half, const void *array, ptrdiff_t i) {
    return is_half ? puffer_from_bfloat16(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

static inline void puffer_store(int is_half, void *array, ptrdiff_t i, float value) {
    if (is_half)
        ((uint16_t *)array)[i] = puffer_to_bfloat16(value);
    else
        ((float *)array)[i] = value;
}

/* One step of an LSTM or a GRU, or some of a MinGRU. Arrays are (rows, size), gates (rows, gates of the cell
 * * size); those of void are floats or, if is_half, bfloat16. Names that begin with d are derivatives of the
 * loss. */
typedef struct PufferStep {
    ptrdiff_t rows, size;
    ptrdiff_t batch; /* rows of one step, where there are several */
    int is_half;
    /* Rows that begin an episode with this step, whose memory before it is 0, and those that do with the step
     * after it; NULL: none. */
    const uint8_t *starts, *starts_next;
    const float *bias; /* of the gates; of a GRU that of its input's part */
    void *gates; /* forward: what the products give, and in its place what becomes of it; backward: the latter
                  */
    const float *memory; /* before the step */
    float *memory_next;  /* after it; of a GRU that is its output */
    float *output;
    void *next; /* the output as the product of the next step takes it, or NULL after the last */
    const float *doutput;
    const void *dnext; /* from the product of the next step; 0 after the last */
    float *dmemory;    /* of the memory after the step; in its place, of that before it */
    void *dgates;
    float *dbias; /* is added to */
    /* Of a GRU. */
    void *hidden;   /* products of the memory with the weights; backward: dhidden */
    void *hidden_n; /* of which what goes into n, with its bias */
    const float *bias_hidden;
    float *dbias_hidden; /* of n's part only, (size,), since the others are those of dbias; is added to */
    /* Of a MinGRU. */
    const void *input;
    void *dinput; /* that passes by the gates */
} PufferStep;

static inline int puffer_begins(const uint8_t *starts, ptrdiff_t row) {
    return starts != NULL && starts[row];
}

/* Element ``at`` of an array of floats, or of bfloat16. */
static inline void *puffer_at(int is_half, const void *array, ptrdiff_t at) {
    return (char *)(uintptr_t)array + at * (ptrdiff_t)(is_half ? sizeof(uint16_t) : sizeof(float));
}

static inline void puffer_pass_on(const PufferStep *step, int is_half, ptrdiff_t row) {
    if (step->next == NULL) return;
    ptrdiff_t size = step->size;
    const float *output = step->output + row * size;
    void *next = puffer_at(is_half, step->next, row * size);
    float kept = puffer_begins(step->starts_next, row) ? 0 : 1;
    PUFFER_APART
    for (ptrdiff_t j = 0; j < size; j++) puffer_store(is_half, next, j, kept * output[j]);
}

/* The gates are i, f, g and o: c' = f * c + i * g, output = o * tanh(c'). */
PUFFER_INLINE void puffer_lstm_forward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    const float *bias = step->bias;
    for (ptrdiff_t row = 0; row < step->rows; row++) {
        void *gates = puffer_at(is_half, step->gates, 4 * row * size);
        const float *memory = step->memory + row * size;
        float *memory_next = step->memory_next + row * size, *output = step->output + row * size;
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float i = puffer_sigmoid(puffer_load(is_half, gates, j) + bias[j]);
            float f = puffer_sigmoid(puffer_load(is_half, gates, j + size) + bias[j + size]);
            float g = puffer_tanh(puffer_load(is_half, gates, j + 2 * size) + bias[j + 2 * size]);
            float o = puffer_sigmoid(puffer_load(is_half, gates, j + 3 * size) + bias[j + 3 * size]);
            float after = f * (memory[j] * kept) + i * g;
            memory_next[j] = after;
            output[j] = o * puffer_tanh(after);
            puffer_store(is_half, gates, j, i);
            puffer_store(is_half, gates, j + size, f);
            puffer_store(is_half, gates, j + 2 * size, g);
            puffer_store(is_half, gates, j + 3 * size, o);
        }
        puffer_pass_on(step, is_half, row);
    }
}

PUFFER_INLINE void puffer_lstm_backward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    float *dbias = step->dbias;
    for (ptrdiff_t row = 0; row < step->rows; row++) {
        const void *gates = puffer_at(is_half, step->gates, 4 * row * size);
        void *dgates = puffer_at(is_half, step->dgates, 4 * row * size);
        const float *memory = step->memory + row * size, *memory_next = step->memory_next + row * size;
        const float *doutput = step->doutput + row * size;
        float *dmemory = step->dmemory + row * size;
        const void *dnext = puffer_at(is_half, step->dnext, row * size);
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        float kept_next = puffer_begins(step->starts_next, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float i = puffer_load(is_half, gates, j), f = puffer_load(is_half, gates, j + size);
            float g = puffer_load(is_half, gates, j + 2 * size),
                  o = puffer_load(is_half, gates, j + 3 * size);
            float shown = puffer_tanh(memory_next[j]);
            float dshown = doutput[j] + kept_next * puffer_load(is_half, dnext, j);
            float dafter = dmemory[j] + dshown * o * (1 - shown * shown);
            float di = dafter * g * i * (1 - i), df = dafter * (memory[j] * kept) * f * (1 - f);
            float dg = dafter * i * (1 - g * g), dout = dshown * shown * o * (1 - o);
            dmemory[j] = dafter * f * kept;
            puffer_store(is_half, dgates, j, di);
            puffer_store(is_half, dgates, j + size, df);
            puffer_store(is_half, dgates, j + 2 * size, dg);
            puffer_store(is_half, dgates, j + 3 * size, dout);
            dbias[j] += di;
            dbias[j + size] += df;
            dbias[j + 2 * size] += dg;
            dbias[j + 3 * size] += dout;
        }
    }
}

/* The gates are r, z and n: output = (1 - z) * n + z * h. */
PUFFER_INLINE void puffer_gru_forward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    const float *bias = step->bias, *bias_hidden = step->bias_hidden;
    for (ptrdiff_t row = 0; row < step->rows; row++) {
        void *gates = puffer_at(is_half, step->gates, 3 * row * size);
        const void *hidden = puffer_at(is_half, step->hidden, 3 * row * size);
        void *hidden_n = puffer_at(is_half, step->hidden_n, row * size);
        const float *memory = step->memory + row * size;
        float *output = step->output + row * size;
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float r = puffer_sigmoid(puffer_load(is_half, gates, j) + bias[j] +
                                     puffer_load(is_half, hidden, j) + bias_hidden[j]);
            float z = puffer_sigmoid(puffer_load(is_half, gates, j + size) + bias[j + size] +
                                     puffer_load(is_half, hidden, j + size) + bias_hidden[j + size]);
            float from_h = puffer_load(is_half, hidden, j + 2 * size) + bias_hidden[j + 2 * size];
            float n =
                puffer_tanh(puffer_load(is_half, gates, j + 2 * size) + bias[j + 2 * size] + r * from_h);
            output[j] = n + z * (memory[j] * kept - n);
            puffer_store(is_half, gates, j, r);
            puffer_store(is_half, gates, j + size, z);
            puffer_store(is_half, gates, j + 2 * size, n);
            puffer_store(is_half, hidden_n, j, from_h);
        }
        puffer_pass_on(step, is_half, row);
    }
}

PUFFER_INLINE void puffer_gru_backward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    float *dbias = step->dbias, *dbias_hidden = step->dbias_hidden;
    for (ptrdiff_t row = 0; row < step->rows; row++) {
        const void *gates = puffer_at(is_half, step->gates, 3 * row * size);
        const void *hidden_n = puffer_at(is_half, step->hidden_n, row * size);
        void *dgates = puffer_at(is_half, step->dgates, 3 * row * size);
        void *dhidden = puffer_at(is_half, step->hidden, 3 * row * size);
        const float *memory = step->memory + row * size, *doutput = step->doutput + row * size;
        float *dmemory = step->dmemory + row * size;
        const void *dnext = puffer_at(is_half, step->dnext, row * size);
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        float kept_next = puffer_begins(step->starts_next, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float r = puffer_load(is_half, gates, j), z = puffer_load(is_half, gates, j + size);
            float n = puffer_load(is_half, gates, j + 2 * size);
            float dafter = doutput[j] + dmemory[j] + kept_next * puffer_load(is_half, dnext, j);
            float dn = dafter * (1 - z) * (1 - n * n), dfrom_h = dn * r;
            float dr = dn * puffer_load(is_half, hidden_n, j) * r * (1 - r);
            float dz = dafter * (memory[j] * kept - n) * z * (1 - z);
            dmemory[j] = dafter * z * kept;
            puffer_store(is_half, dgates, j, dr);
            puffer_store(is_half, dgates, j + size, dz);
            puffer_store(is_half, dgates, j + 2 * size, dn);
            puffer_store(is_half, dhidden, j, dr);
            puffer_store(is_half, dhidden, j + size, dz);
            puffer_store(is_half, dhidden, j + 2 * size, dfrom_h);
            dbias[j] += dr;
            dbias[j + size] += dz;
            dbias[j + 2 * size] += dn;
            dbias_hidden[j] += dfrom_h;
        }
    }
}

/* The gates are z, n and r: h' = (1 - z) * h + z * n, output = r * h' + (1 - r) * input. Several steps may
 * follow one another, `batch` rows each: then memory_next is where the next step has its memory. */
PUFFER_INLINE void puffer_mingru_forward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    const float *bias = step->bias;
    for (ptrdiff_t row = 0; row < step->rows; row++) {
        void *gates = puffer_at(is_half, step->gates, 3 * row * size);
        const void *input = puffer_at(is_half, step->input, row * size);
        const float *memory = step->memory + row * size;
        float *memory_next = step->memory_next + row * size, *output = step->output + row * size;
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float z = puffer_sigmoid(puffer_load(is_half, gates, j) + bias[j]);
            float n = puffer_load(is_half, gates, j + size) + bias[j + size];
            float r = puffer_sigmoid(puffer_load(is_half, gates, j + 2 * size) + bias[j + 2 * size]);
            float passed = puffer_load(is_half, input, j), before = memory[j] * kept;
            float after = before + z * (n - before);
            memory_next[j] = after;
            output[j] = passed + r * (after - passed);
            puffer_store(is_half, gates, j, z);
            puffer_store(is_half, gates, j + size, n);
            puffer_store(is_half, gates, j + 2 * size, r);
        }
    }
}

PUFFER_INLINE void puffer_mingru_backward_rows(const PufferStep *step, int is_half) {
    ptrdiff_t size = step->size;
    float *dbias = step->dbias;
    for (ptrdiff_t row = step->rows - 1; row >= 0; row--) {
        const void *gates = puffer_at(is_half, step->gates, 3 * row * size);
        const void *input = puffer_at(is_half, step->input, row * size);
        void *dgates = puffer_at(is_half, step->dgates, 3 * row * size);
        void *dinput = puffer_at(is_half, step->dinput, row * size);
        const float *memory = step->memory + row * size, *memory_next = step->memory_next + row * size;
        const float *doutput = step->doutput + row * size;
        float *dmemory = step->dmemory + row % step->batch * size;
        float kept = puffer_begins(step->starts, row) ? 0 : 1;
        PUFFER_APART
        for (ptrdiff_t j = 0; j < size; j++) {
            float z = puffer_load(is_half, gates, j), n = puffer_load(is_half, gates, j + size);
            float r = puffer_load(is_half, gates, j + 2 * size);
            float dafter = dmemory[j] + doutput[j] * r;
            float dr = doutput[j] * (memory_next[j] - puffer_load(is_half, input, j)) * r * (1 - r);
            float dz = dafter * (n - memory[j] * kept) * z * (1 - z), dn = dafter * z;
            dmemory[j] = dafter * (1 - z) * kept;
            puffer_store(is_half, dgates, j, dz);
            puffer_store(is_half, dgates, j + size, dn);
            puffer_store(is_half, dgates, j + 2 * size, dr);
            puffer_store(is_half, dinput, j, doutput[j] * (1 - r));
            dbias[j] += dz;
            dbias[j + size] += dn;
            dbias[j + 2 * size] += dr;
        }
    }
}

/* One loop for each kind of numbers, and each for the vectors of several machines. */
#define PUFFER_CELL(name)                                        \
    PUFFER_VECTORIZED static void name(const PufferStep *step) { \
        if (step->is_half)                                       \
            name##_rows(step, 1);                                \
        else                                                     \
            name##_rows(step, 0);                                \
    }
PUFFER_CELL(puffer_lstm_forward)
PUFFER_CELL(puffer_lstm_backward)
PUFFER_CELL(puffer_gru_forward)
PUFFER_CELL(puffer_gru_backward)
PUFFER_CELL(puffer_mingru_forward)
PUFFER_CELL(puffer_mingru_backward)
#undef PUFFER_CELL

#endif
