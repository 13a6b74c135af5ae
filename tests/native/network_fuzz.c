/* Networks of random sizes give the numbers of the plainest loops, on every kernel that this processor has;
 * and no array is read or written beyond its end, however many threads share the rows. Takes the number of
 * networks, and a seed.
 */
#include <stdio.h>

#include "puffer_network_task.h"

enum { MOST = 70, ROWS = 80 };

static uint64_t state;

static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static float number(void) {
    return (float)draw(2001) / 1000 - 1;
}

static void check(bool holds, const char *what) {
    if (holds) return;
    printf("%s\n", what);
    exit(1);
}

/* A matrix of random numbers, and the same as rows of an array of exactly its size. */
static float *random_matrix(PufferMatrix *matrix, int inputs, int outputs) {
    float *weights = malloc(sizeof(float) * inputs * outputs + 1);
    int32_t *places = malloc(sizeof(int32_t) * inputs + 1);
    for (int i = 0; i < inputs * outputs; i++) weights[i] = number() / sqrtf((float)inputs);
    for (int i = 0; i < inputs; i++) places[i] = i;
    check(puffer_matrix_init(matrix, inputs, outputs), "no memory");
    puffer_matrix_pack(matrix, weights, inputs, places);
    for (int o = 0; o < outputs; o++) ((float *)matrix->bias)[o] = number();
    free(places);
    return weights;
}

static float product(const float *weights, const float *x, int inputs, int output) {
    double sum = 0;
    for (int k = 0; k < inputs; k++) sum += (double)weights[(long)output * inputs + k] * x[k];
    return (float)sum;
}

/* Sizes and weights of a trunk, as plain rows. */
typedef struct {
    int size;
    float *dense, *chosen, *gates, *recurrent, *decoder;
} Trunk;

/* A network of one layer after labels and floats, perhaps a memory, a mask, and a second trunk for the value;
 * and its weights as plain rows. */
typedef struct {
    PufferNetwork net;
    PufferNetworkTask task;
    int floats, cells, values, actions, gates;
    Trunk trunks[2];
} Perceptron;

static void make_trunk(const Perceptron *p, Trunk *plain, PufferTrunk *trunk, int outputs) {
    const PufferMemory memory = p->net.memory;
    plain->size = 1 + (int)draw(MOST);
    trunk->num_layers = 1;
    PufferLayer *layer = &trunk->layers[0];
    plain->dense = random_matrix(&layer->matrix, p->floats, plain->size);
    if (p->cells) {
        plain->chosen = random_matrix(&trunk->labels, p->values * p->cells, plain->size);
        memcpy((float *)layer->matrix.bias, trunk->labels.bias, plain->size * sizeof(float));
    }
    layer->activation = (PufferActivation)draw(5);
    if (draw(2)) {
        check(puffer_layer_add_norm(layer), "no memory");
        for (int i = 0; i < plain->size; i++)
            ((float *)layer->scale)[i] = number(), ((float *)layer->shift)[i] = number();
    }
    const int gates = p->gates * plain->size;
    if (memory) plain->gates = random_matrix(&trunk->gates[0], plain->size, gates);
    if (memory == PUFFER_LSTM || memory == PUFFER_GRU)
        plain->recurrent = random_matrix(&trunk->recurrent, plain->size, gates);
    if (memory == PUFFER_LSTM) memset((float *)trunk->recurrent.bias, 0, sizeof(float) * gates);
    plain->decoder = random_matrix(&trunk->decoder, plain->size, outputs);
}

static void make_perceptron(Perceptron *p, const char *kernels) {
    memset(p, 0, sizeof(*p));
    p->floats = (int)draw(20), p->cells = (int)draw(20), p->values = 1 + (int)draw(5);
    p->actions = 1 + (int)draw(40);
    if (p->floats + p->cells == 0) p->floats = 1;
    PufferNetwork *net = &p->net;
    const int bytes = p->floats * 4;
    net->row_bytes = bytes + p->cells + p->actions;
    net->num_inputs = 2;
    PufferInput *inputs = puffer_zeros(2, sizeof(PufferInput));
    net->inputs = inputs;
    inputs[0] = (PufferInput){PUFFER_LABELS, 'b', bytes, p->cells, 1, -2, p->values};
    inputs[1] = (PufferInput){PUFFER_SCALED, 'f', 0, p->floats, 0.5f, 0, 0};
    if (draw(2)) net->mask = (PufferInput){PUFFER_SCALED, '?', bytes + p->cells, p->actions, 1, 0, 0};
    net->memory = (PufferMemory)draw(4);
    p->gates = net->memory == PUFFER_LSTM ? 4 : 3;
    net->num_trunks = 1 + (int)draw(2);
    for (int t = 0; t < net->num_trunks; t++)
        make_trunk(p, &p->trunks[t], &net->trunks[t],
                   net->num_trunks == 1 ? p->actions + 1 : (t == 0 ? p->actions : 1));
    net->memory_layers = net->memory != PUFFER_NO_MEMORY;
    puffer_network_init(net);
    check(puffer_network_task_init(&p->task, net, puffer_kernels(kernels), 1 + (int)draw(3)) == 0,
          "no memory, or no threads");
    p->task.task.helper_ns = 0; /* helpers come to the smallest of tasks */
}

static void free_perceptron(Perceptron *p) {
    puffer_network_task_free(&p->task);
    puffer_network_free(&p->net);
    for (int t = 0; t < 2; t++) {
        float *arrays[] = {p->trunks[t].dense, p->trunks[t].chosen, p->trunks[t].gates,
                           p->trunks[t].recurrent, p->trunks[t].decoder};
        for (int i = 0; i < 5; i++) free(arrays[i]);
    }
}

static void draw_observation(const Perceptron *p, uint8_t *at) {
    for (int i = 0; i < p->floats; i++, at += 4) memcpy(at, &(float){number()}, 4);
    for (int i = 0; i < p->cells; i++)
        *at++ = (uint8_t)(draw(p->values + 3) - 3); /* some are none of the labels */
    for (int i = 0; i < p->actions; i++) *at++ = (uint8_t)draw(2);
}

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

static float activate(PufferActivation activation, float x) {
    switch (activation) {
        case PUFFER_RELU:
            return x < 0 ? 0 : x;
        case PUFFER_TANH:
            return tanhf(x);
        case PUFFER_SILU:
            return x * sigmoid(x);
        case PUFFER_ELU:
            return x > 0 ? x : expm1f(x);
        default:
            return x / 2 * (1 + erff(x * 0.70710678f));
    }
}

static void finish(const PufferLayer *layer, int size, float *hidden) {
    double mean = 0, variance = 0;
    for (int j = 0; j < size; j++) mean += (double)hidden[j] / size;
    for (int j = 0; j < size; j++) variance += (hidden[j] - mean) * (hidden[j] - mean) / size;
    for (int j = 0; j < size; j++) {
        if (layer->scale)
            hidden[j] =
                (float)((hidden[j] - mean) / sqrt(variance + 1e-5)) * layer->scale[j] + layer->shift[j];
        hidden[j] = activate(layer->activation, hidden[j]);
    }
}

static void first_layer(const Perceptron *p, int t, const uint8_t *observation, float *hidden) {
    const Trunk *plain = &p->trunks[t];
    const PufferLayer *layer = &p->net.trunks[t].layers[0];
    float x[20], one_hot[100];
    memcpy(x, observation, p->floats * 4);
    for (int i = 0; i < p->floats; i++) x[i] *= 0.5f;
    for (int v = 0; v < p->values; v++)
        for (int i = 0; i < p->cells; i++)
            one_hot[v * p->cells + i] = (int8_t)observation[p->floats * 4 + i] == v - 1;
    for (int j = 0; j < plain->size; j++) {
        hidden[j] = layer->matrix.bias[j] + product(plain->dense, x, p->floats, j);
        if (p->cells) hidden[j] += product(plain->chosen, one_hot, p->values * p->cells, j);
    }
    finish(layer, plain->size, hidden);
}

/* The equations of the memory; h and c are updated, and the output takes the place of what comes in. */
static void remember(const Perceptron *p, int t, float *hidden, float *h, float *c) {
    const Trunk *plain = &p->trunks[t];
    const PufferTrunk *trunk = &p->net.trunks[t];
    const int size = plain->size, gates = trunk->gates[0].outputs;
    const PufferMemory memory = p->net.memory;
    float x[4 * MOST], own[4 * MOST];
    for (int j = 0; j < gates; j++) {
        x[j] = trunk->gates[0].bias[j] + product(plain->gates, hidden, size, j);
        own[j] = plain->recurrent ? trunk->recurrent.bias[j] + product(plain->recurrent, h, size, j) : 0;
    }
    for (int j = 0; j < size; j++) {
        float first = sigmoid(x[j] + own[j]);
        if (memory == PUFFER_LSTM) {
            c[j] = sigmoid(x[size + j] + own[size + j]) * c[j] +
                   first * tanhf(x[2 * size + j] + own[2 * size + j]);
            h[j] = hidden[j] = tanhf(c[j]) * sigmoid(x[3 * size + j] + own[3 * size + j]);
        } else if (memory == PUFFER_GRU) {
            float z = sigmoid(x[size + j] + own[size + j]);
            h[j] = hidden[j] = (1 - z) * tanhf(x[2 * size + j] + first * own[2 * size + j]) + z * h[j];
        } else {
            float r = sigmoid(x[2 * size + j]);
            h[j] = (1 - first) * h[j] + first * x[size + j];
            hidden[j] = r * h[j] + (1 - r) * hidden[j];
        }
    }
}

static void check_row(const Perceptron *p, int t, const uint8_t *observation, const float *params,
                      float value, float *h, float *c) {
    float hidden[MOST];
    first_layer(p, t, observation, hidden);
    if (p->net.memory) remember(p, t, hidden, h, c);
    const PufferMatrix *decoder = &p->net.trunks[t].decoder;
    for (int o = 0; o < decoder->outputs; o++) {
        float expected = decoder->bias[o] + product(p->trunks[t].decoder, hidden, p->trunks[t].size, o);
        bool is_param = t == 0 && o < p->actions;
        float got = is_param ? params[o] : value;
        bool is_forbidden = is_param && p->net.mask.count && !observation[p->floats * 4 + p->cells + o];
        check(is_forbidden ? got == -1e9f : fabsf(got - expected) < 1e-5f, "outputs are those of the loops");
    }
}

static float *array(int count) {
    return malloc(sizeof(float) * count + 1);
}

static void fuzz_perceptron(const char *kernels) {
    Perceptron p;
    make_perceptron(&p, kernels);
    const int rows = (int)draw(ROWS), arrays = p.net.num_trunks * puffer_trunk_memories(&p.net);
    uint8_t *observations = malloc((size_t)rows * p.net.row_bytes + 1);
    float *params = array(rows * p.actions), *values = array(rows), *memory[4], *expected[4];
    int sizes[4];
    for (int m = 0; m < arrays; m++) {
        sizes[m] = rows * p.trunks[m / puffer_trunk_memories(&p.net)].size;
        memory[m] = array(sizes[m]), expected[m] = array(sizes[m]);
        for (int i = 0; i < sizes[m]; i++) memory[m][i] = expected[m][i] = number();
    }
    for (int row = 0; row < rows; row++) draw_observation(&p, observations + row * p.net.row_bytes);
    PufferNetworkTask *task = &p.task;
    task->task.num_items = rows, task->observations = observations, task->params = params,
    task->values = values;
    for (int m = 0; m < arrays; m++) task->memory[m] = memory[m];
    check(puffer_pool_run(&task->task) == 0, "no threads");
    for (int t = 0; t < p.net.num_trunks; t++)
        for (int row = 0; row < rows; row++) {
            const int each = puffer_trunk_memories(&p.net), size = p.trunks[t].size;
            float *h = each ? expected[t * each] + row * size : NULL;
            float *c = each == 2 ? expected[t * each + 1] + row * size : NULL;
            check_row(&p, t, observations + row * p.net.row_bytes, params + row * p.actions, values[row], h,
                      c);
        }
    for (int m = 0; m < arrays; m++) {
        for (int i = 0; i < sizes[m]; i++)
            check(fabsf(expected[m][i] - memory[m][i]) < 1e-5f, "the memory is that of the equations");
        free(memory[m]);
        free(expected[m]);
    }
    free_perceptron(&p);
    free(params);
    free(values);
    free(observations);
}

/* Runs of floats that a matrix takes from an image, as a convolution does. */
static void fuzz_patches(const char *kernels) {
    int runs = 1 + (int)draw(5), length = 1 + (int)draw(9), outputs = 16 * (1 + (int)draw(5));
    int per_line = 1 + (int)draw(9), lines = 1 + (int)draw(9), step = 1 + (int)draw(4);
    int width = (per_line - 1) * step + length, height = lines - 1 + runs;
    PufferMatrix matrix;
    int32_t offsets[5];
    for (int run = 0; run < runs; run++) offsets[run] = run * width;
    float *weights = random_matrix(&matrix, runs * length, outputs);
    float *image = malloc(sizeof(float) * width * height),
          *y = malloc(sizeof(float) * per_line * lines * outputs);
    for (int i = 0; i < width * height; i++) image[i] = number();
    PufferRows source = {image, offsets, runs, length, per_line, step, width};
    puffer_kernels(kernels)->product(&matrix, &source, per_line * lines, y, outputs, false, false);
    for (int line = 0; line < lines; line++)
        for (int at = 0; at < per_line; at++) {
            float patch[45];
            for (int run = 0; run < runs; run++)
                memcpy(patch + run * length, image + (line + run) * width + at * step,
                       sizeof(float) * length);
            for (int o = 0; o < outputs; o++) {
                float expected = matrix.bias[o] + product(weights, patch, runs * length, o);
                check(fabsf(expected - y[(line * per_line + at) * outputs + o]) < 1e-5f,
                      "patches are those of the loops");
            }
        }
    free(weights);
    free(image);
    free(y);
    puffer_matrix_free(&matrix);
}

static void check_functions(void) {
    for (float x = -100; x <= 100; x += 0.01f) {
        check(fabsf(puffer_sigmoid(x) - 1 / (1 + expf(-x))) < 3e-7f, "the sigmoid is within 3e-7");
        check(fabsf(puffer_tanh(x) - tanhf(x)) < 3e-7f, "the tanh is within 3e-7");
        check(fabsf(puffer_elu(x) - (x > 0 ? x : expm1f(x))) < 3e-7f, "the elu is within 3e-7");
        const float silu = x / (1 + expf(-x)), gelu = x / 2 * (1 + erff(x * 0.70710678f));
        check(fabsf(puffer_silu(x) - silu) < 1e-6f * fmaxf(1, fabsf(x)), "the silu is within 1e-6");
        check(fabsf(puffer_gelu(x) - gelu) < 1e-6f * fmaxf(1, fabsf(x)), "the gelu is within 1e-6");
    }
    check(isnan(puffer_silu(NAN)) && isnan(puffer_elu(NAN)) && isnan(puffer_gelu(NAN)), "NaN stays");
    check(isnan(puffer_sigmoid(NAN)) && isnan(puffer_tanh(NAN)), "NaN stays");
    check(puffer_sigmoid(INFINITY) == 1 && puffer_tanh(-INFINITY) == -1,
          "infinity is where the functions end");
    check(puffer_half(0x3C00) == 1 && puffer_half(0xC248) == -3.140625f && puffer_half(0x7BFF) == 65504,
          "halves");
    check(puffer_half(0x0001) == 0x1p-24f && puffer_half(0x83FF) == -1023 * 0x1p-24f, "small halves");
    check(isinf(puffer_half(0xFC00)) && isnan(puffer_half(0x7E00)), "halves that are no numbers");
}

int main(int argc, char **argv) {
    const char *names[] = {"any", "avx2", "avx512"};
    int networks = argc > 1 ? atoi(argv[1]) : 100;
    state = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    check_functions();
    check(puffer_kernels("none") == NULL, "a name of no kernels is known as such");
    for (int i = 0; i < 3; i++)
        for (int n = 0; n < networks && puffer_kernels(names[i]) != NULL; n++) {
            fuzz_perceptron(names[i]);
            fuzz_patches(names[i]);
        }
    return 0;
}
