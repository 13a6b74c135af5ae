/* Gradients of multilayer perceptrons over a minibatch, and steps of Adam.
 *
 * A network has one or two trunks: linear layers with activations, then a linear decoder. Products use the
 * kernels of puffer_kernels.h. Labels of observations select columns of the first layer, which takes a fraction
 * of the work of a product. Rows of floats are padded to whole panels. The padding of weights, outputs and
 * gradients is 0. */
#ifndef PUFFER_PERCEPTRON_H
#define PUFFER_PERCEPTRON_H

#include "puffer_network_build.h"

enum { PUFFER_PASS = 128 }; /* rows that go through all layers together */

/* A parameter, its gradient, and the state of Adam. */
typedef struct {
    int rows, columns;
    float *weights, *first, *second, *step; /* torch's memory, without padding */
    float *gradient;                        /* rows of `stride` floats */
    long stride;
} PufferParameter;

typedef struct {
    PufferParameter weight, bias;
    PufferLayer forward;   /* from inputs to outputs, with the activation */
    PufferMatrix backward; /* from the gradient of outputs to that of inputs */
    float *outputs;        /* of all rows of the minibatch */
} PufferLearner;

/* The last layer of a trunk is the decoder, which has no activation. */
typedef struct {
    PufferLearner layers[PUFFER_MAX_LAYERS + 1];
    int num_layers;
    PufferMatrix labels;   /* columns of the first layer for labels; 0 outputs: no labels */
    float *label_gradient; /* of these columns, one row for each */
    float *float_gradient; /* of the other columns */
} PufferLearnerTrunk;

typedef struct {
    const PufferKernels *kernels;
    int row_bytes; /* size of an observation */
    PufferInput *inputs;
    int num_inputs, num_floats, num_labels, max_chosen;
    int32_t *float_places, *label_places; /* columns of the first layer in torch's order */
    PufferLearnerTrunk trunks[PUFFER_MAX_TRUNKS];
    PufferParameter log_std; /* one row; no columns: the deviations are not parameters */
    int num_trunks, num_params;
    float scale; /* by which the last step multiplied the gradients */

    long capacity;           /* rows for which there is memory */
    float *x;                /* floats of the observations */
    int32_t *chosen, *found; /* labels of each row, and their number */
    float *delta[2];         /* gradients of outputs of a pass */
    float *turned, *panels;  /* the same transposed, and inputs of a layer in panels */
    float *zeros;            /* a bias */
    int32_t *ones, *strides; /* places of weights: 0, 1, 2, ..., and multiples of a stride */
} PufferPerceptron;

/* Coefficients of Adam. */
typedef struct {
    float rate, beta1, beta2, epsilon;
} PufferAdam;

/* Number of floats that a layer reads. The first layer may also read labels. */
PUFFER_INLINE int puffer_inputs(const PufferLearner *layer) {
    return layer->forward.matrix.inputs;
}

PUFFER_INLINE int puffer_outputs(const PufferLearner *layer) {
    return layer->weight.rows;
}

/* ---- Memory ------------------------------------------------------------------------------------------- */

static inline bool puffer_parameter_init(PufferParameter *parameter, int rows, int columns) {
    parameter->rows = rows;
    parameter->columns = columns;
    parameter->stride = puffer_padded(columns);
    parameter->gradient = puffer_zeros((size_t)rows * parameter->stride, sizeof(float));
    return parameter->gradient != NULL;
}

/* Adds a layer that reads `floats` of the `inputs` of torch's layer. */
static inline bool puffer_learner_init(PufferLearner *layer, int floats, int inputs, int outputs,
                                       PufferActivation activation) {
    layer->forward.activation = activation;
    return puffer_parameter_init(&layer->weight, outputs, inputs) &&
           puffer_parameter_init(&layer->bias, 1, outputs) &&
           puffer_matrix_init(&layer->forward.matrix, floats, outputs) &&
           puffer_matrix_init(&layer->backward, outputs, floats);
}

static inline bool puffer_labels_init(PufferPerceptron *net, PufferLearnerTrunk *trunk) {
    const int outputs = puffer_outputs(&trunk->layers[0]), padded = puffer_padded(outputs);
    trunk->label_gradient = puffer_zeros((size_t)net->num_labels * padded, sizeof(float));
    trunk->float_gradient = puffer_zeros((size_t)outputs * puffer_padded(net->num_floats), sizeof(float));
    return puffer_matrix_init(&trunk->labels, net->num_labels, outputs) && trunk->label_gradient &&
           trunk->float_gradient;
}

/* Allocates the buffers of a pass, after all layers were added. */
static inline bool puffer_perceptron_init(PufferPerceptron *net) {
    int width = puffer_larger(net->num_floats, net->num_params + 1);
    for (int t = 0; t < net->num_trunks; t++) {
        if (net->num_labels && !puffer_labels_init(net, &net->trunks[t])) return false;
        for (int i = 0; i < net->trunks[t].num_layers; i++)
            width = puffer_larger(width, puffer_outputs(&net->trunks[t].layers[i]));
    }
    const size_t padded = (size_t)puffer_padded(width), places = padded + PUFFER_PASS;
    net->kernels = puffer_kernels(NULL);
    for (int i = 0; i < 2; i++) net->delta[i] = puffer_zeros(PUFFER_PASS * padded, sizeof(float));
    net->turned = puffer_zeros(PUFFER_PASS * padded, sizeof(float));
    net->panels = puffer_zeros(PUFFER_PASS * padded, sizeof(float));
    net->zeros = puffer_zeros(padded, sizeof(float));
    net->ones = puffer_zeros(places, sizeof(int32_t));
    net->strides = puffer_zeros(places, sizeof(int32_t));
    if (!net->delta[0] || !net->delta[1] || !net->turned || !net->panels || !net->zeros || !net->ones ||
        !net->strides)
        return false;
    for (size_t i = 0; i < places; i++) net->ones[i] = (int32_t)i;
    return true;
}

/* Makes room for the outputs of all layers for `rows` rows. Returns false if there is no memory. */
static inline bool puffer_perceptron_reserve(PufferPerceptron *net, long rows) {
    if (rows <= net->capacity) return true;
    net->capacity = 0;
    free(net->x);
    free(net->chosen);
    free(net->found);
    net->x = puffer_zeros((size_t)rows * net->num_floats, sizeof(float));
    net->chosen = puffer_zeros((size_t)rows * net->max_chosen + 1, sizeof(int32_t)); /* one more is written */
    net->found = puffer_zeros(rows, sizeof(int32_t));
    if (!net->x || !net->chosen || !net->found) return false;
    for (int t = 0; t < net->num_trunks; t++)
        for (int i = 0; i < net->trunks[t].num_layers; i++) {
            PufferLearner *layer = &net->trunks[t].layers[i];
            free(layer->outputs);
            layer->outputs = puffer_zeros((size_t)rows * layer->bias.stride, sizeof(float));
            if (!layer->outputs) return false;
        }
    net->capacity = rows;
    return true;
}

static inline void puffer_perceptron_free(PufferPerceptron *net) {
    for (int t = 0; t < PUFFER_MAX_TRUNKS; t++) {
        puffer_matrix_free(&net->trunks[t].labels);
        free(net->trunks[t].label_gradient);
        free(net->trunks[t].float_gradient);
        for (int i = 0; i <= PUFFER_MAX_LAYERS; i++) {
            PufferLearner *layer = &net->trunks[t].layers[i];
            free(layer->weight.gradient);
            free(layer->bias.gradient);
            puffer_layer_free(&layer->forward);
            puffer_matrix_free(&layer->backward);
            free(layer->outputs);
        }
    }
    void *arrays[] = {net->inputs, net->float_places, net->label_places, net->log_std.gradient, net->x,
                      net->chosen, net->found,        net->delta[0],     net->delta[1],         net->turned,
                      net->panels, net->zeros,        net->ones,         net->strides};
    for (int i = 0; i < 14; i++) free(arrays[i]);
    memset(net, 0, sizeof(*net));
}

/* ---- Forward ------------------------------------------------------------------------------------------ */

static const int32_t puffer_start = 0;

/* y (+)= W x + b for rows of floats. */
static inline void puffer_multiply(const PufferPerceptron *net, const PufferMatrix *matrix, const float *x,
                                   long x_stride, int rows, float *y, long y_stride, bool adds, bool relu) {
    PufferRows source = {x, &puffer_start, 1, matrix->inputs, INT32_MAX, x_stride, 0};
    net->kernels->product(matrix, &source, rows, y, y_stride, adds, relu);
}

/* Sets places to 0, stride, 2 stride, ... */
static inline void puffer_set_strides(PufferPerceptron *net, int count, long stride) {
    for (int i = 0; i < count; i++) net->strides[i] = (int32_t)(i * stride);
}

/* Copies the current weights in the order that products need. */
static inline void puffer_pack_trunk(PufferPerceptron *net, PufferLearnerTrunk *trunk) {
    for (int i = 0; i < trunk->num_layers; i++) {
        PufferLearner *layer = &trunk->layers[i];
        const int inputs = layer->weight.columns, outputs = puffer_outputs(layer);
        const float *weights = layer->weight.weights;
        puffer_matrix_pack(&layer->forward.matrix, weights, inputs, i ? net->ones : net->float_places);
        memcpy((float *)layer->forward.matrix.bias, layer->bias.weights, outputs * sizeof(float));
        if (i == 0) continue; /* observations have no gradient */
        puffer_set_strides(net, outputs, inputs);
        puffer_matrix_pack(&layer->backward, weights, 1, net->strides);
    }
    if (!trunk->labels.outputs) return;
    const PufferLearner *first = &trunk->layers[0];
    puffer_matrix_pack(&trunk->labels, first->weight.weights, first->weight.columns, net->label_places);
    memcpy((float *)trunk->labels.bias, first->bias.weights, trunk->labels.outputs * sizeof(float));
}

/* Reads the floats and the labels of `count` observations, which are those from `row` on of the minibatch. */
static inline void puffer_read_rows(PufferPerceptron *net, const uint8_t *observations, long row, int count) {
    for (long end = row + count; row < end; row++) {
        const uint8_t *observation = observations + row * net->row_bytes;
        float *to = net->x + row * net->num_floats;
        int32_t *chosen = net->chosen + row * net->max_chosen;
        int found = 0, base = 0;
        for (int i = 0; i < net->num_inputs; i++) {
            const PufferInput *input = &net->inputs[i];
            if (input->encoding == PUFFER_LABELS) {
                found = puffer_choose(input, observation, base, chosen, found);
                base += input->values * input->count;
            } else {
                net->kernels->to_floats(to, observation, input);
                to += input->count;
            }
        }
        net->found[row] = found;
    }
}

/* Applies a layer to `count` rows, which are the rows from `row` on of the minibatch. With `labels`, the
 * outputs start with the columns that the labels choose. */
static inline void puffer_learner_forward(const PufferPerceptron *net, const PufferLearner *layer,
                                          const PufferMatrix *labels, bool is_last, const float *x,
                                          long x_stride, long row, int count) {
    const bool is_done = is_last || layer->forward.activation == PUFFER_RELU, has_relu = !is_last && is_done;
    const bool has_floats = puffer_inputs(layer) > 0 || !labels;
    const long stride = layer->bias.stride;
    float *y = layer->outputs + row * stride;
    for (int r = 0; labels && r < count; r++)
        net->kernels->lookup(labels, net->chosen + (row + r) * net->max_chosen, net->found[row + r],
                             y + r * stride, has_relu && !has_floats);
    if (has_floats)
        puffer_multiply(net, &layer->forward.matrix, x, x_stride, count, y, stride, labels != NULL, has_relu);
    if (!is_done) net->kernels->activate(&layer->forward, y, stride, count);
}

/* Returns the inputs of layer `i` from `row` on, and their stride. */
static inline const float *puffer_inputs_of(const PufferPerceptron *net, const PufferLearnerTrunk *trunk,
                                            int i, long row, long *stride) {
    *stride = i ? trunk->layers[i - 1].bias.stride : net->num_floats;
    return (i ? trunk->layers[i - 1].outputs : net->x) + row * *stride;
}

/* Computes the parameters of the action distribution, (rows, num_params), and the values, (rows), of
 * observations (rows, row_bytes). */
static inline void puffer_perceptron_forward(PufferPerceptron *net, const uint8_t *observations, long rows,
                                             float *params, float *values) {
    for (int t = 0; t < net->num_trunks; t++) puffer_pack_trunk(net, &net->trunks[t]);
    for (long row = 0; row < rows; row += PUFFER_PASS) {
        const int count = rows - row < PUFFER_PASS ? (int)(rows - row) : PUFFER_PASS;
        puffer_read_rows(net, observations, row, count);
        for (int t = 0; t < net->num_trunks; t++) {
            const PufferLearnerTrunk *trunk = &net->trunks[t];
            for (int i = 0; i < trunk->num_layers; i++) {
                long stride;
                const float *from = puffer_inputs_of(net, trunk, i, row, &stride);
                const PufferMatrix *labels = i == 0 && trunk->labels.outputs ? &trunk->labels : NULL;
                puffer_learner_forward(net, &trunk->layers[i], labels, i == trunk->num_layers - 1, from,
                                       stride, row, count);
            }
        }
    }
    const int decoded = net->num_params - net->log_std.columns;
    const PufferLearnerTrunk *last = &net->trunks[net->num_trunks - 1];
    const PufferLearner *actor = &net->trunks[0].layers[net->trunks[0].num_layers - 1];
    const PufferLearner *critic = &last->layers[last->num_layers - 1];
    for (long row = 0; row < rows; row++) {
        float *to = params + row * net->num_params;
        memcpy(to, actor->outputs + row * actor->bias.stride, decoded * sizeof(float));
        if (net->log_std.columns)
            memcpy(to + decoded, net->log_std.weights, net->log_std.columns * sizeof(float));
        values[row] = critic->outputs[row * critic->bias.stride + puffer_outputs(critic) - 1];
    }
}

/* ---- Backward ----------------------------------------------------------------------------------------- */

/* Multiplies gradients by the derivative of the activation, given its outputs. */
PUFFER_VECTORIZED static void puffer_multiply_slopes(PufferActivation activation, float *delta,
                                                     const float *outputs, long count) {
    if (activation == PUFFER_TANH)
        for (long i = 0; i < count; i++) delta[i] *= 1 - outputs[i] * outputs[i];
    else if (activation == PUFFER_ELU)
        for (long i = 0; i < count; i++) delta[i] *= outputs[i] > 0 ? 1 : outputs[i] + 1;
    else
        for (long i = 0; i < count; i++) delta[i] = outputs[i] > 0 ? delta[i] : 0;
}

PUFFER_VECTORIZED static void puffer_add_rows(float *sum, const float *rows, long stride, int count) {
    for (int row = 0; row < count; row++)
        for (long i = 0; i < stride; i++) sum[i] += rows[row * stride + i];
}

static inline void puffer_turn(float *to, const float *rows, long stride, int columns, int count) {
    for (int row = 0; row < count; row++)
        for (int i = 0; i < columns; i++) to[(long)i * count + row] = rows[row * stride + i];
}

PUFFER_VECTORIZED static void puffer_add_to_chosen(float *gradient, const int32_t *chosen, int found,
                                                   const float *delta, long stride) {
    for (int i = 0; i < found; i++) {
        float *to = gradient + chosen[i] * stride;
        for (long j = 0; j < stride; j++) to[j] += delta[j];
    }
}

/* Adds the gradients of weights for `count` rows, given the gradients of the layer's outputs. */
static inline void puffer_add_weight_gradients(PufferPerceptron *net, PufferLearner *layer, const float *x,
                                               long x_stride, const float *delta, int count,
                                               float *gradient) {
    const int outputs = puffer_outputs(layer);
    puffer_turn(net->turned, delta, layer->bias.stride, outputs, count);
    puffer_set_strides(net, count, x_stride);
    PufferMatrix rows = {count, puffer_inputs(layer), net->panels, net->zeros};
    puffer_matrix_pack(&rows, x, 1, net->strides);
    const int rest = rows.outputs % PUFFER_LANES;
    if (rest) /* the padding has numbers of another layer */
        for (int row = 0; row < count; row++) {
            float *panel = net->panels + ((long)(rows.outputs / PUFFER_LANES) * count + row) * PUFFER_LANES;
            memset(panel + rest, 0, (PUFFER_LANES - rest) * sizeof(float));
        }
    puffer_multiply(net, &rows, net->turned, count, outputs, gradient, puffer_padded(rows.outputs), true,
                    false);
}

/* Adds the gradients of layer `i` for `count` rows from `row` on, given the gradients of its outputs. */
static inline void puffer_add_gradients(PufferPerceptron *net, PufferLearnerTrunk *trunk, int i, long row,
                                        const float *delta, int count) {
    PufferLearner *layer = &trunk->layers[i];
    const long stride = layer->bias.stride;
    const bool has_labels = i == 0 && trunk->labels.outputs;
    long x_stride;
    const float *x = puffer_inputs_of(net, trunk, i, row, &x_stride);
    puffer_add_rows(layer->bias.gradient, delta, stride, count);
    if (puffer_inputs(layer))
        puffer_add_weight_gradients(net, layer, x, x_stride, delta, count,
                                    has_labels ? trunk->float_gradient : layer->weight.gradient);
    for (int r = 0; has_labels && r < count; r++)
        puffer_add_to_chosen(trunk->label_gradient, net->chosen + (row + r) * net->max_chosen,
                             net->found[row + r], delta + r * stride, stride);
}

/* Writes the gradients of floats and labels to those of the first layer, in torch's order. */
static inline void puffer_join_gradients(const PufferPerceptron *net, PufferLearnerTrunk *trunk) {
    const PufferLearner *first = &trunk->layers[0];
    const int floats = puffer_padded(net->num_floats);
    for (int o = 0; o < puffer_outputs(first); o++) {
        float *to = first->weight.gradient + o * first->weight.stride;
        for (int k = 0; k < net->num_floats; k++)
            to[net->float_places[k]] = trunk->float_gradient[(long)o * floats + k];
        for (int k = 0; k < net->num_labels; k++)
            to[net->label_places[k]] = trunk->label_gradient[k * first->bias.stride + o];
    }
}

/* Writes the gradients of the decoder's outputs. */
static inline void puffer_decoded_gradients(const PufferPerceptron *net, int trunk, const float *d_params,
                                            const float *d_values, int count) {
    const PufferLearnerTrunk *own = &net->trunks[trunk];
    const PufferLearner *decoder = &own->layers[own->num_layers - 1];
    const int decoded = trunk ? 0 : net->num_params - net->log_std.columns;
    const long stride = decoder->bias.stride;
    memset(net->delta[0], 0, count * stride * sizeof(float));
    for (int row = 0; row < count; row++) {
        float *to = net->delta[0] + row * stride;
        memcpy(to, d_params + (long)row * net->num_params, decoded * sizeof(float));
        if (puffer_outputs(decoder) > decoded) to[decoded] = d_values[row];
    }
}

static inline void puffer_clear_gradient(PufferParameter *parameter) {
    memset(parameter->gradient, 0, parameter->rows * parameter->stride * sizeof(float));
}

static inline void puffer_clear_gradients(const PufferPerceptron *net, PufferLearnerTrunk *trunk) {
    for (int i = 0; i < trunk->num_layers; i++) {
        puffer_clear_gradient(&trunk->layers[i].weight);
        puffer_clear_gradient(&trunk->layers[i].bias);
    }
    if (!trunk->labels.outputs) return;
    const long outputs = trunk->labels.outputs;
    memset(trunk->label_gradient, 0, net->num_labels * puffer_padded(trunk->labels.outputs) * sizeof(float));
    memset(trunk->float_gradient, 0, outputs * puffer_padded(net->num_floats) * sizeof(float));
}

/* Computes the gradients of all parameters after a forward pass over `rows` rows, given those of its results. */
static inline void puffer_perceptron_backward(PufferPerceptron *net, long rows, const float *d_params,
                                              const float *d_values) {
    for (int t = 0; t < net->num_trunks; t++) {
        PufferLearnerTrunk *trunk = &net->trunks[t];
        puffer_clear_gradients(net, trunk);
        for (long row = 0; row < rows; row += PUFFER_PASS) {
            const int count = rows - row < PUFFER_PASS ? (int)(rows - row) : PUFFER_PASS;
            puffer_decoded_gradients(net, t, d_params + row * net->num_params, d_values + row, count);
            float *delta = net->delta[0], *other = net->delta[1];
            for (int i = trunk->num_layers - 1; i >= 0; i--) {
                const PufferLearner *layer = &trunk->layers[i];
                puffer_add_gradients(net, trunk, i, row, delta, count);
                if (i == 0) break;
                long stride;
                const float *from = puffer_inputs_of(net, trunk, i, row, &stride);
                puffer_multiply(net, &layer->backward, delta, layer->bias.stride, count, other, stride, false,
                                false);
                puffer_multiply_slopes(trunk->layers[i - 1].forward.activation, other, from, count * stride);
                float *inputs = other;
                other = delta;
                delta = inputs;
            }
        }
        if (trunk->labels.outputs) puffer_join_gradients(net, trunk);
    }
    if (!net->log_std.columns) return;
    puffer_clear_gradient(&net->log_std);
    const int decoded = net->num_params - net->log_std.columns;
    for (long row = 0; row < rows; row++)
        for (int i = 0; i < net->log_std.columns; i++)
            net->log_std.gradient[i] += d_params[row * net->num_params + decoded + i];
}

/* ---- Adam --------------------------------------------------------------------------------------------- */

PUFFER_VECTORIZED static double puffer_sum_of_squares(const float *x, long count) {
    float sums[PUFFER_LANES] = {0}; /* count is a multiple of whole panels */
    for (long i = 0; i < count; i += PUFFER_LANES)
        for (int lane = 0; lane < PUFFER_LANES; lane++) sums[lane] += x[i + lane] * x[i + lane];
    double sum = 0;
    for (int lane = 0; lane < PUFFER_LANES; lane++) sum += sums[lane];
    return sum;
}

/* One step for a row: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015). `first` and `second`
 * divide out the bias of the moments. */
PUFFER_VECTORIZED static void puffer_adam_row(float *weights, float *means, float *squares,
                                              const float *gradient, int count, float scale,
                                              const PufferAdam *with, float first, float second) {
    const float beta1 = with->beta1, beta2 = with->beta2, epsilon = with->epsilon, rate = with->rate * first;
    for (int i = 0; i < count; i++) {
        const float slope = gradient[i] * scale;
        means[i] += (1 - beta1) * (slope - means[i]);
        squares[i] = beta2 * squares[i] + (1 - beta2) * slope * slope;
        weights[i] -= rate * means[i] / (sqrtf(squares[i]) * second + epsilon);
    }
}

static inline void puffer_adam(PufferParameter *parameter, float scale, const PufferAdam *with) {
    if (!parameter->columns) return;
    const double steps = *parameter->step += 1;
    const float first = (float)(1 / (1 - pow(with->beta1, steps)));
    const float second = (float)(1 / sqrt(1 - pow(with->beta2, steps)));
    for (int row = 0; row < parameter->rows; row++) {
        const long at = (long)row * parameter->columns;
        puffer_adam_row(parameter->weights + at, parameter->first + at, parameter->second + at,
                        parameter->gradient + row * parameter->stride, parameter->columns, scale, with, first,
                        second);
    }
}

static inline double puffer_gradient_squares(const PufferParameter *parameter) {
    return puffer_sum_of_squares(parameter->gradient, parameter->rows * parameter->stride);
}

/* Takes a step along the gradients. Gradients that are together longer than `longest` are scaled down to it,
 * unless it is 0. */
static inline void puffer_perceptron_step(PufferPerceptron *net, float longest, const PufferAdam *with) {
    double squares = net->log_std.columns ? puffer_gradient_squares(&net->log_std) : 0;
    for (int t = 0; t < net->num_trunks; t++)
        for (int i = 0; i < net->trunks[t].num_layers; i++)
            squares += puffer_gradient_squares(&net->trunks[t].layers[i].weight) +
                       puffer_gradient_squares(&net->trunks[t].layers[i].bias);
    const double scale = longest > 0 ? longest / (sqrt(squares) + 1e-6) : 1; /* as torch does */
    net->scale = scale < 1 ? (float)scale : 1;
    for (int t = 0; t < net->num_trunks; t++)
        for (int i = 0; i < net->trunks[t].num_layers; i++) {
            puffer_adam(&net->trunks[t].layers[i].weight, net->scale, with);
            puffer_adam(&net->trunks[t].layers[i].bias, net->scale, with);
        }
    puffer_adam(&net->log_std, net->scale, with);
}

#endif
