/* Memory of networks: weights packed for the kernels, and buffers for activations.
 *
 * A network whose weights are constants in a program, as `puffer export` writes them, needs none of this. */
#ifndef PUFFER_NETWORK_BUILD_H
#define PUFFER_NETWORK_BUILD_H

#include <stdlib.h>

#include "puffer_network.h"

/* Returns zeroed memory, aligned to a cache line, or NULL if there is none. */
static inline void *puffer_zeros(size_t count, size_t size) {
    size_t bytes = (count * size + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

/* ---- Matrices ----------------------------------------------------------------------------------------- */

static inline bool puffer_matrix_init(PufferMatrix *matrix, int inputs, int outputs) {
    matrix->inputs = inputs;
    matrix->outputs = outputs;
    matrix->weights = puffer_zeros((size_t)puffer_padded(outputs) * inputs, sizeof(float));
    matrix->bias = puffer_zeros(puffer_padded(outputs), sizeof(float));
    return matrix->weights != NULL && matrix->bias != NULL;
}

/* Copies weights. The weight of output o for input k is at weights[o * stride + places[k]]. */
static inline void puffer_matrix_pack(PufferMatrix *matrix, const float *weights, long stride,
                                      const int32_t *places) {
    float *to = (float *)matrix->weights;
    for (int first = 0; first < matrix->outputs; first += PUFFER_LANES) {
        int lanes = matrix->outputs - first < PUFFER_LANES ? matrix->outputs - first : PUFFER_LANES;
        for (int k = 0; k < matrix->inputs; k++, to += PUFFER_LANES)
            for (int lane = 0; lane < lanes; lane++) to[lane] = weights[(first + lane) * stride + places[k]];
    }
}

/* Sets the bias to the sum of `count` vectors. */
static inline void puffer_matrix_set_bias(PufferMatrix *matrix, const float *const *biases, int count) {
    float *to = (float *)matrix->bias;
    for (int o = 0; o < matrix->outputs; o++) {
        to[o] = 0;
        for (int i = 0; i < count; i++) to[o] += biases[i][o];
    }
}

static inline void puffer_matrix_free(PufferMatrix *matrix) {
    free((void *)matrix->weights);
    free((void *)matrix->bias);
}

/* Adds layer normalization to a layer. */
static inline bool puffer_layer_add_norm(PufferLayer *layer) {
    layer->scale = puffer_zeros(puffer_padded(layer->matrix.outputs), sizeof(float));
    layer->shift = puffer_zeros(puffer_padded(layer->matrix.outputs), sizeof(float));
    return layer->scale != NULL && layer->shift != NULL;
}

static inline void puffer_layer_free(PufferLayer *layer) {
    puffer_matrix_free(&layer->matrix);
    free((void *)layer->scale);
    free((void *)layer->shift);
}

/* ---- Networks ----------------------------------------------------------------------------------------- */

static inline int puffer_larger(int a, int b) {
    return a > b ? a : b;
}

/* Sets the number of floats per row between the layers, after all parts were added. */
static inline void puffer_network_init(PufferNetwork *net) {
    int width = net->image_layer.outputs;
    for (int i = 0; i < net->num_inputs; i++)
        if (net->inputs[i].encoding != PUFFER_LABELS) width += net->inputs[i].count;
    for (int t = 0; t < net->num_trunks; t++) {
        const PufferTrunk *trunk = &net->trunks[t];
        for (int i = 0; i < trunk->num_layers; i++)
            width = puffer_larger(width, trunk->layers[i].matrix.outputs);
        width = puffer_larger(width, puffer_larger(trunk->gates[0].outputs, trunk->decoder.outputs));
    }
    net->width = puffer_padded(width);
}

static inline void puffer_trunk_free(PufferTrunk *trunk) {
    for (int i = 0; i < PUFFER_MAX_LAYERS; i++) puffer_layer_free(&trunk->layers[i]);
    for (int i = 0; i < PUFFER_MAX_MEMORIES; i++) puffer_matrix_free(&trunk->gates[i]);
    PufferMatrix *matrices[] = {&trunk->labels, &trunk->recurrent, &trunk->decoder};
    for (int i = 0; i < 3; i++) puffer_matrix_free(matrices[i]);
}

static inline void puffer_network_free(PufferNetwork *net) {
    for (int i = 0; i < PUFFER_MAX_LAYERS; i++) {
        puffer_matrix_free(&net->convolutions[i].matrix);
        free((void *)net->convolutions[i].offsets);
    }
    puffer_matrix_free(&net->image_layer);
    for (int t = 0; t < PUFFER_MAX_TRUNKS; t++) puffer_trunk_free(&net->trunks[t]);
    free((void *)net->inputs);
    free((void *)net->log_std);
    memset(net, 0, sizeof(*net));
}

/* Allocates buffers for a block of rows. Returns false if there is no memory. */
static inline bool puffer_scratch_init(PufferScratch *scratch, const PufferNetwork *net,
                                       const PufferKernels *kernels) {
    int labels = 1,
        pixels = net->image.count; /* one label more, since it is written before it is known to count */
    for (int i = 0; i < net->num_inputs; i++)
        if (net->inputs[i].encoding == PUFFER_LABELS) labels += net->inputs[i].count;
    for (int i = 0; i < net->num_convolutions; i++) {
        const PufferConvolution *conv = &net->convolutions[i];
        pixels = puffer_larger(pixels, conv->out_height * conv->out_width * conv->matrix.outputs);
    }
    scratch->kernels = kernels;
    scratch->x = puffer_zeros((size_t)PUFFER_BLOCK * net->width, sizeof(float));
    bool is_complete = true;
    for (int t = 0; t < net->num_trunks; t++) {
        scratch->y[t] = puffer_zeros((size_t)PUFFER_BLOCK * net->width, sizeof(float));
        is_complete = is_complete && scratch->y[t];
    }
    scratch->flat = puffer_zeros((size_t)PUFFER_BLOCK * net->image_layer.inputs, sizeof(float));
    for (int i = 0; i < 2; i++) scratch->pixels[i] = puffer_zeros(pixels, sizeof(float));
    scratch->chosen = puffer_zeros(labels, sizeof(int32_t));
    return is_complete && scratch->x && scratch->flat && scratch->pixels[0] && scratch->pixels[1] &&
           scratch->chosen;
}

static inline void puffer_scratch_free(PufferScratch *scratch) {
    void *arrays[] = {scratch->x,         scratch->y[0],      scratch->y[1],  scratch->flat,
                      scratch->pixels[0], scratch->pixels[1], scratch->chosen};
    for (int i = 0; i < 7; i++) free(arrays[i]);
}

#endif
