/* Element-wise arithmetic of recurrent networks, in one pass over the rows of a step, forward and backward.
 *
 * The matrix products are computed by torch. Gates are floats, or bfloat16 if the products are. Arithmetic
 * and memory always use floats. Unlike in environments, the last bits of results may differ between machines,
 * as with torch's products. */
#ifndef PUFFER_RECURRENT_H
#define PUFFER_RECURRENT_H

#include <stddef.h>
#include <stdint.h>

#include "puffer_math.h"

/* The elements of a row do not depend on one another, so the compiler may vectorise the loop. */
#if defined(__GNUC__) && !defined(__clang__)
#define PUFFER_APART _Pragma("GCC ivdep")
#else
#define PUFFER_APART
#endif

/* bfloat16 is the upper half of a float. */
static inline float puffer_from_bfloat16(uint16_t value) {
    return puffer_bits_to_float((uint32_t)value << 16);
}

/* Rounds to nearest, ties to even. */
static inline uint16_t puffer_to_bfloat16(float value) {
    uint32_t bits = puffer_float_to_bits(value);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Loads and stores of product inputs and outputs, as float or bfloat16. */
static inline float puffer_load(int is_half, const void *array, ptrdiff_t i) {
    return is_half ? puffer_from_bfloat16(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

static inline void puffer_store(int is_half, void *array, ptrdiff_t i, float value) {
    if (is_half)
        ((uint16_t *)array)[i] = puffer_to_bfloat16(value);
    else
        ((float *)array)[i] = value;
}

/* One step of an LSTM or a GRU, or several of a MinGRU. Arrays are (rows, size). Gates are (rows, number of
 * gates * size). void arrays hold floats, or bfloat16 if is_half. Names that begin with d are derivatives of
 * the loss. */
typedef struct PufferStep {
    ptrdiff_t rows, size;
    ptrdiff_t batch; /* rows per step, if there are several steps */
    int is_half;
    /* Rows whose episode starts with this step (their memory before it is 0), and rows whose episode starts
     * with the next step. NULL: none. */
    const uint8_t *starts, *starts_next;
    const float *bias;   /* bias of the gates; for a GRU only the part from the input */
    void *gates;         /* forward: products, replaced by the activations; backward: activations */
    const float *memory; /* before the step */
    float *memory_next;  /* after the step; for a GRU also its output */
    float *output;
    void *next; /* the output as input of the next step's product, or NULL after the last step */
    const float *doutput;
    const void *dnext; /* from the product of the next step; 0 after the last step */
    float *dmemory;    /* derivative of the memory after the step, replaced by the one before it */
    void *dgates;
    float *dbias; /* accumulated */
    /* For a GRU: */
    void *hidden;   /* products of the memory with the weights; backward: dhidden */
    void *hidden_n; /* the part that goes into n, with its bias */
    const float *bias_hidden;
    float *dbias_hidden; /* for n only, (size,), since the other parts equal dbias; accumulated */
    /* For a MinGRU: */
    const void *input;
    void *dinput; /* the part that bypasses the gates */
} PufferStep;

static inline int puffer_begins(const uint8_t *starts, ptrdiff_t row) {
    return starts != NULL && starts[row];
}

/* Returns the address of element `at` of an array of floats or bfloat16. */
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

/* The gates are z, n and r: h' = (1 - z) * h + z * n, output = r * h' + (1 - r) * input. With several steps
 * of `batch` rows each, memory_next holds the memory of the next step. */
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

/* One loop for each number type, compiled for the vectors of several CPUs. */
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
