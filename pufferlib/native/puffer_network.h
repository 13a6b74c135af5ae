/* Inference of a policy: computes the parameters of the action distribution and the value of observations.
 *
 *   observation -> image -> convolutions -> linear -+
 *               -> numbers, labels -----------------+-> layers -> memory -> decoder -> params, values
 *
 * Layers, memory and decoder are a trunk. A network has one trunk for params and values, or two trunks, the
 * first for params and the second for values. Image and memory are optional.
 *
 * The code needs only libc and libm, so that a trained policy fits in one C file. The rows of a call are
 * processed in blocks whose activations stay in the cache. The result of a row does not depend on the other
 * rows and is bit-identical.
 *
 * Rows of floats are padded to whole panels. The padding is never read. */
#ifndef PUFFER_NETWORK_H
#define PUFFER_NETWORK_H

#include "puffer_kernels.h"

enum {
    PUFFER_BLOCK = 32,       /* rows that are processed together */
    PUFFER_MAX_TRUNKS = 2,   /* one for params, one for values */
    PUFFER_MAX_LAYERS = 16,  /* maximum number of layers of a trunk, and of convolutions */
    PUFFER_MAX_MEMORIES = 8, /* maximum number of recurrent state arrays of all trunks */
    PUFFER_MIN_LOG_STD = -5, /* range of log standard deviations that the decoder computes */
    PUFFER_MAX_LOG_STD = 2,
};

/* ---- Parts ------------------------------------------------------------------------------------------ */

/* A convolution with ReLU. Its outputs have their channels last. */
typedef struct {
    PufferMatrix matrix;
    const int32_t *offsets;
    int runs, length, step, line_step, out_height, out_width;
} PufferConvolution;

typedef struct {
    PufferMatrix labels; /* columns of the first layer selected by labels, and bias; 0 outputs: no labels */
    PufferLayer layers[PUFFER_MAX_LAYERS];
    int num_layers;                          /* at least 1 with several trunks */
    PufferMatrix gates[PUFFER_MAX_MEMORIES]; /* gates from the input of each layer of the memory */
    PufferMatrix recurrent;                  /* gates from the memory */
    PufferMatrix decoder;
} PufferTrunk;

typedef struct {
    int row_bytes; /* size of an observation */
    const PufferInput *inputs;
    int num_inputs;
    PufferInput image; /* (channels, height, width) if there are convolutions */
    PufferConvolution convolutions[PUFFER_MAX_LAYERS];
    int num_convolutions;
    PufferMatrix image_layer;
    PufferTrunk trunks[PUFFER_MAX_TRUNKS]; /* the last output of the last decoder is the value */
    int num_trunks;
    PufferMemory memory;
    int memory_layers;    /* several for stacked minimal GRUs, one for other memories, otherwise 0 */
    const float *log_std; /* log standard deviations that do not depend on the observation, or NULL */
    int num_log_stds;     /* number of log standard deviations, which are the last params */
    PufferInput mask;     /* mask of legal actions; count 0 if there is none */
    int width;            /* floats per row between the layers */
} PufferNetwork;

/* Activations of one thread, and the kernels that it calls. */
typedef struct {
    const PufferKernels *kernels;
    float *x, *y[PUFFER_MAX_TRUNKS], *flat, *pixels[2];
    int32_t *chosen; /* labels */
} PufferScratch;

/* Number of outputs of the first decoder that are parameters of the action distribution. */
static inline int puffer_decoded_params(const PufferNetwork *net) {
    return net->trunks[0].decoder.outputs - (net->num_trunks == 1);
}

static inline int puffer_num_params(const PufferNetwork *net) {
    return puffer_decoded_params(net) + (net->log_std ? net->num_log_stds : 0);
}

/* Number of state arrays of each trunk. */
static inline int puffer_trunk_memories(const PufferNetwork *net) {
    return net->memory == PUFFER_LSTM ? 2 : net->memory_layers;
}

/* Points `to` at the state of a row. */
static inline void puffer_memory_of_row(const PufferNetwork *net, float *const *memory, long row,
                                        float **to) {
    const int each = puffer_trunk_memories(net);
    for (int i = 0; i < each * net->num_trunks; i++)
        to[i] = memory[i] + row * net->trunks[i / each].decoder.inputs;
}

/* ---- Forward ------------------------------------------------------------------------------------------ */

/* y (+)= W x + b for plain rows of floats. */
static inline void puffer_linear(const PufferNetwork *net, const PufferScratch *scratch,
                                 const PufferMatrix *matrix, const float *x, long x_stride, float *y,
                                 bool adds, bool relu, int rows) {
    static const int32_t start = 0;
    PufferRows source = {x, &start, 1, matrix->inputs, INT32_MAX, x_stride, 0};
    scratch->kernels->product(matrix, &source, rows, y, net->width, adds, relu);
}

/* Returns whether a layer has nothing left to do after a product with ReLU. */
static inline bool puffer_ends_with_product(const PufferLayer *layer) {
    return layer->activation == PUFFER_RELU && layer->scale == NULL;
}

/* Applies a layer. If `adds`, y contains a part of the sums. */
static inline void puffer_apply_layer(const PufferNetwork *net, const PufferScratch *scratch,
                                      const PufferLayer *layer, const float *x, float *y, bool adds,
                                      int rows) {
    const bool is_done = puffer_ends_with_product(layer);
    if (layer->matrix.inputs)
        puffer_linear(net, scratch, &layer->matrix, x, net->width, y, adds, is_done, rows);
    if (!is_done) scratch->kernels->activate(layer, y, net->width, rows);
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
        for (int t = 0; t < net->num_trunks; t++) {
            const PufferTrunk *trunk = &net->trunks[t];
            if (trunk->labels.outputs)
                scratch->kernels->lookup(
                    &trunk->labels, scratch->chosen, chosen, scratch->y[t] + (long)row * net->width,
                    trunk->layers[0].matrix.inputs == 0 && puffer_ends_with_product(&trunk->layers[0]));
        }
    }
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
static inline PufferHidden puffer_remember(const PufferNetwork *net, const PufferTrunk *trunk,
                                           const PufferScratch *scratch, float *hidden, float *gates,
                                           float *const *memory, int rows) {
    const int size = trunk->decoder.inputs;
    const long width = net->width;
    for (int layer = 0; layer < net->memory_layers; layer++) {
        puffer_linear(net, scratch, &trunk->gates[layer], hidden, width, gates, false, false, rows);
        if (net->memory == PUFFER_LSTM)
            puffer_linear(net, scratch, &trunk->recurrent, memory[0], size, gates, true, false, rows);
        if (net->memory == PUFFER_GRU)
            puffer_linear(net, scratch, &trunk->recurrent, memory[0], size, hidden, false, false, rows);
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

/* Applies the layers of a trunk after the first one, whose outputs are `hidden`, then the memory and the
 * decoder. Without layers, `hidden` is x. Returns the outputs of the decoder. */
static inline const float *puffer_decode(const PufferNetwork *net, const PufferTrunk *trunk,
                                         const PufferScratch *scratch, float *hidden, float *const *memory,
                                         int rows) {
    float *other = hidden == scratch->x ? scratch->y[0] : scratch->x;
    for (int i = 1; i < trunk->num_layers; i++) {
        puffer_apply_layer(net, scratch, &trunk->layers[i], hidden, other, false, rows);
        float *outputs = other;
        other = hidden;
        hidden = outputs;
    }
    PufferHidden shown = {hidden, net->width};
    if (net->memory) {
        shown = puffer_remember(net, trunk, scratch, hidden, other, memory, rows);
        if (shown.first != hidden) other = hidden;
    }
    puffer_linear(net, scratch, &trunk->decoder, shown.first, shown.stride, other, false, false, rows);
    return other;
}

/* Computes parameters from the outputs of the decoder, and masks illegal actions. */
static inline void puffer_write_params(const PufferNetwork *net, const uint8_t *observations, int rows,
                                       const float *decoded, float *params) {
    const int outputs = puffer_decoded_params(net), num_params = puffer_num_params(net);
    for (int row = 0; row < rows; row++) {
        memcpy(params, decoded, outputs * sizeof(float));
        if (net->log_std) memcpy(params + outputs, net->log_std, net->num_log_stds * sizeof(float));
        for (int i = net->log_std ? outputs : outputs - net->num_log_stds; i < outputs; i++) {
            params[i] = params[i] < (float)PUFFER_MIN_LOG_STD ? (float)PUFFER_MIN_LOG_STD : params[i];
            params[i] = params[i] > (float)PUFFER_MAX_LOG_STD ? (float)PUFFER_MAX_LOG_STD : params[i];
        }
        if (net->mask.count) puffer_forbid(&net->mask, observations, params);
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
    for (int t = 0; t < net->num_trunks; t++) { /* afterwards, no trunk needs the inputs in x */
        const PufferTrunk *trunk = &net->trunks[t];
        if (trunk->num_layers)
            puffer_apply_layer(net, scratch, &trunk->layers[0], scratch->x, scratch->y[t],
                               trunk->labels.outputs > 0, rows);
    }
    const int last = net->num_trunks - 1;
    for (int t = 0; t <= last; t++) {
        const PufferTrunk *trunk = &net->trunks[t];
        float *hidden = trunk->num_layers ? scratch->y[t] : scratch->x;
        float *const *own = memory + t * puffer_trunk_memories(net);
        const float *decoded = puffer_decode(net, trunk, scratch, hidden, own, rows);
        if (t == 0) puffer_write_params(net, observations, rows, decoded, params);
        for (int row = 0; t == last && row < rows; row++)
            values[row] = decoded[(long)row * net->width + trunk->decoder.outputs - 1];
    }
}

/* Computes one step for all rows.
 *
 * observations: rows of row_bytes bytes. memory: arrays (rows, size) of all trunks, updated in place: h and c
 * for an LSTM, otherwise h of each layer. params: (rows, num_params): logits, or means and logarithms of
 * standard deviations. values: (rows). */
static inline void puffer_network_forward(const PufferNetwork *net, const PufferScratch *scratch,
                                          const uint8_t *observations, long rows, float *const *memory,
                                          float *params, float *values) {
    const int num_params = puffer_num_params(net);
    float *now[PUFFER_MAX_MEMORIES] = {NULL};
    for (long row = 0; row < rows; row += PUFFER_BLOCK) {
        puffer_memory_of_row(net, memory, row, now);
        puffer_block(net, scratch, observations + row * net->row_bytes,
                     rows - row < PUFFER_BLOCK ? (int)(rows - row) : PUFFER_BLOCK, now,
                     params + row * num_params, values + row);
    }
}

#endif
