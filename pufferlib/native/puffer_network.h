/* Inference of a policy: computes the parameters of the action distribution and the value of observations.
 *
 *   observation -> image -> convolutions -> linear -+
 *               -> numbers, labels -----------------+-> linear layers -> memory -> decoder -> params, values
 *
 * Every part before the decoder is optional. The code needs only libc and libm, so that a trained policy fits
 * in one C file. The rows of a call are processed in blocks whose activations stay in the cache. The result
 * of a row does not depend on the other rows and is bit-identical.
 *
 * Rows of floats are padded to whole panels. The padding is never read. */
#ifndef PUFFER_NETWORK_H
#define PUFFER_NETWORK_H

#include "puffer_kernels.h"

enum {
    PUFFER_BLOCK = 32,       /* rows that are processed together */
    PUFFER_MAX_LAYERS = 16,  /* maximum number of linear layers, and of convolutions */
    PUFFER_MAX_MEMORIES = 8, /* maximum number of recurrent state arrays */
};

/* ---- Parts ------------------------------------------------------------------------------------------ */

/* A convolution with ReLU. Its outputs have their channels last. */
typedef struct {
    PufferMatrix matrix;
    const int32_t *offsets;
    int runs, length, step, line_step, out_height, out_width;
} PufferConvolution;

typedef struct {
    int row_bytes; /* size of an observation */
    const PufferInput *inputs;
    int num_inputs;
    PufferInput image; /* (channels, height, width) if there are convolutions */
    PufferConvolution convolutions[PUFFER_MAX_LAYERS];
    int num_convolutions;
    PufferMatrix image_layer;
    PufferMatrix labels; /* columns of the first layer selected by labels, and bias; 0 outputs: no labels */
    PufferMatrix layers[PUFFER_MAX_LAYERS];
    int num_layers;
    PufferMemory memory;
    int memory_layers;                       /* several for stacked minimal GRUs, otherwise one */
    PufferMatrix gates[PUFFER_MAX_MEMORIES]; /* gates from the input of each layer */
    PufferMatrix recurrent;                  /* gates from the memory */
    PufferMatrix decoder;                    /* the last output is the value */
    const float *log_std;                    /* for continuous actions, otherwise NULL */
    PufferInput mask;                        /* mask of legal actions; count 0 if there is none */
    int width;                               /* floats per row between the layers */
} PufferNetwork;

/* Activations of one thread, and the kernels that it calls. */
typedef struct {
    const PufferKernels *kernels;
    float *x, *y, *flat, *pixels[2];
    int32_t *chosen; /* labels */
} PufferScratch;

/* ---- Forward ------------------------------------------------------------------------------------------ */

/* y (+)= W x + b for plain rows of floats. */
static inline void puffer_linear(const PufferNetwork *net, const PufferScratch *scratch,
                                 const PufferMatrix *matrix, const float *x, long x_stride, float *y,
                                 bool adds, bool relu, int rows) {
    static const int32_t start = 0;
    PufferRows source = {x, &start, 1, matrix->inputs, INT32_MAX, x_stride, 0};
    scratch->kernels->product(matrix, &source, rows, y, net->width, adds, relu);
}

/* Applies all convolutions to the image of one observation, and writes a row of floats. */
static inline void puffer_convolve(const PufferNetwork *net, const PufferScratch *scratch,
                                   const uint8_t *observation, float *flat) {
    float *from = scratch->pixels[0], *to = scratch->pixels[1];
    scratch->kernels->to_floats(from, observation, &net->image);
    for (int i = 0; i < net->num_convolutions; i++) {
        const PufferConvolution *conv = &net->convolutions[i];
        bool is_last = i == net->num_convolutions - 1;
        PufferRows source = {from,       conv->offsets,  conv->runs, conv->length, conv->out_width,
                             conv->step, conv->line_step};
        float *y = is_last ? flat : to;
        scratch->kernels->product(&conv->matrix, &source, conv->out_height * conv->out_width, y,
                                  conv->matrix.outputs, false, true);
        to = from;
        from = y;
    }
}

/* Appends the column numbers of the labels of one array to `chosen`, without branches. Returns the new number
 * of columns. */
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

/* Applies the first layer to the numbers of the observations, or copies them if there is none, and writes to
 * x from `column` on. */
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
                scratch->kernels->to_floats(to, observations, input);
                to += input->count;
            }
        }
        if (net->labels.outputs)
            scratch->kernels->lookup(&net->labels, scratch->chosen, chosen,
                                     scratch->y + (long)row * net->width, net->layers[0].inputs == 0);
    }
}

/* Applies all linear layers to the numbers in x, or to the outputs of the convolutions. Returns the outputs
 * of the last layer. */
static inline float *puffer_layers(const PufferNetwork *net, const PufferScratch *scratch, int rows) {
    float *x = scratch->x, *y = scratch->y;
    for (int i = 0; i < net->num_layers; i++) {
        bool adds = i == 0 && net->labels.outputs > 0;
        if (net->layers[i].inputs)
            puffer_linear(net, scratch, &net->layers[i], x, net->width, y, adds, true, rows);
        float *outputs = y;
        y = x;
        x = outputs;
    }
    return x;
}

/* Lowers the logits of illegal actions so much that they are never chosen. */
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

/* Computes one step of the memory from `hidden`, and returns the new hidden rows. It may overwrite `hidden`
 * and the other buffers. */
static inline PufferHidden puffer_remember(const PufferNetwork *net, const PufferScratch *scratch,
                                           float *hidden, float *gates, float *const *memory, int rows) {
    const int size = net->decoder.inputs;
    const long width = net->width;
    for (int layer = 0; layer < net->memory_layers; layer++) {
        puffer_linear(net, scratch, &net->gates[layer], hidden, width, gates, false, false, rows);
        if (net->memory == PUFFER_LSTM)
            puffer_linear(net, scratch, &net->recurrent, memory[0], size, gates, true, false, rows);
        if (net->memory == PUFFER_GRU)
            puffer_linear(net, scratch, &net->recurrent, memory[0], size, hidden, false, false, rows);
        for (int row = 0; row < rows; row++) {
            float *c = net->memory == PUFFER_LSTM ? memory[1] + (long)row * size : NULL;
            scratch->kernels->remember(net->memory, gates + row * width, hidden + row * width,
                                       memory[layer] + (long)row * size, c, size);
        }
    }
    PufferHidden shown = {hidden, width};
    if (net->memory != PUFFER_MINGRU) shown.first = memory[0], shown.stride = size;
    return shown;
}

/* Computes parameters and values from the outputs of the decoder, and masks illegal actions. */
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

/* Processes up to one block of rows. See puffer_network_forward. */
static inline void puffer_block(const PufferNetwork *net, const PufferScratch *scratch,
                                const uint8_t *observations, int rows, float *const *memory, float *params,
                                float *values) {
    if (net->num_convolutions) {
        const int flat = net->image_layer.inputs;
        for (int row = 0; row < rows; row++)
            puffer_convolve(net, scratch, observations + (long)row * net->row_bytes,
                            scratch->flat + (long)row * flat);
        puffer_linear(net, scratch, &net->image_layer, scratch->flat, flat, scratch->x, false, true, rows);
    }
    puffer_read(net, scratch, observations, rows, net->image_layer.outputs);
    float *hidden = puffer_layers(net, scratch, rows),
          *other = hidden == scratch->x ? scratch->y : scratch->x;
    PufferHidden shown = {hidden, net->width};
    if (net->memory) {
        shown = puffer_remember(net, scratch, hidden, other, memory, rows);
        if (shown.first != hidden) other = hidden;
    }
    puffer_linear(net, scratch, &net->decoder, shown.first, shown.stride, other, false, false, rows);
    puffer_heads(net, observations, rows, other, params, values);
}

/* Computes one step for all rows.
 *
 * observations: rows of row_bytes bytes. memory: arrays (rows, size), updated in place: h and c for an LSTM,
 * otherwise h. params: (rows, num_params): logits, or means and logarithms of standard deviations. values:
 * (rows). */
static inline void puffer_network_forward(const PufferNetwork *net, const PufferScratch *scratch,
                                          const uint8_t *observations, long rows, float *const *memory,
                                          int num_memories, float *params, float *values) {
    const int outputs = net->decoder.outputs - 1, num_params = net->log_std ? 2 * outputs : outputs;
    float *now[PUFFER_MAX_MEMORIES] = {NULL};
    for (long row = 0; row < rows; row += PUFFER_BLOCK) {
        for (int i = 0; i < num_memories; i++) now[i] = memory[i] + row * net->decoder.inputs;
        puffer_block(net, scratch, observations + row * net->row_bytes,
                     rows - row < PUFFER_BLOCK ? (int)(rows - row) : PUFFER_BLOCK, now,
                     params + row * num_params, values + row);
    }
}

#endif
