// Element-wise arithmetic of recurrent networks on a GPU, for the arrays of native/puffer_recurrent.h.
//
// One thread computes one element of one row: one step of an LSTM or a GRU, or all steps of a MinGRU, whose memory it
// keeps in a register. `flags` indicates which optional arrays are present, and whether gates are bfloat16.

enum { HALF = 1, STARTS = 2, STARTS_NEXT = 4, NEXT = 8 };

__device__ static float load(int flags, const void *array, long long i) {
    if (!(flags & HALF)) return ((const float *)array)[i];
    return __uint_as_float((unsigned)((const unsigned short *)array)[i] << 16);
}

__device__ static void store(int flags, void *array, long long i, float value) {
    unsigned bits = __float_as_uint(value);
    if (!(flags & HALF))
        ((float *)array)[i] = value;
    else  // round to nearest, ties to even
        ((unsigned short *)array)[i] = (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

__device__ static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Factor applied to the memory before a step: 0 where an episode starts, otherwise 1.
__device__ static float kept(int flags, int which, const bool *starts, long long row) {
    return (flags & which) && starts[row] ? 0.0f : 1.0f;
}

extern "C" __global__ void lstm_forward(void *gates, const float *bias, const float *memory, float *memory_next,
                                        float *output, void *next, const bool *starts, const bool *starts_next,
                                        int rows, int size, int flags) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / size, j = at % size;
    if (row >= rows) return;
    long long gate = 4 * row * size + j;
    float i = sigmoid(load(flags, gates, gate) + bias[j]);
    float f = sigmoid(load(flags, gates, gate + size) + bias[j + size]);
    float g = tanhf(load(flags, gates, gate + 2 * size) + bias[j + 2 * size]);
    float o = sigmoid(load(flags, gates, gate + 3 * size) + bias[j + 3 * size]);
    float after = f * (memory[at] * kept(flags, STARTS, starts, row)) + i * g;
    float shown = o * tanhf(after);
    memory_next[at] = after;
    output[at] = shown;
    store(flags, gates, gate, i);
    store(flags, gates, gate + size, f);
    store(flags, gates, gate + 2 * size, g);
    store(flags, gates, gate + 3 * size, o);
    if (flags & NEXT) store(flags, next, at, shown * kept(flags, STARTS_NEXT, starts_next, row));
}

extern "C" __global__ void lstm_backward(const void *gates, const float *memory, const float *memory_next,
                                         const float *doutput, const void *dnext, float *dmemory, void *dgates,
                                         const bool *starts, const bool *starts_next, int rows, int size, int flags) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / size, j = at % size;
    if (row >= rows) return;
    long long gate = 4 * row * size + j;
    float i = load(flags, gates, gate), f = load(flags, gates, gate + size);
    float g = load(flags, gates, gate + 2 * size), o = load(flags, gates, gate + 3 * size);
    float keep = kept(flags, STARTS, starts, row), shown = tanhf(memory_next[at]);
    float dshown = doutput[at] + kept(flags, STARTS_NEXT, starts_next, row) * load(flags, dnext, at);
    float dafter = dmemory[at] + dshown * o * (1 - shown * shown);
    dmemory[at] = dafter * f * keep;
    store(flags, dgates, gate, dafter * g * i * (1 - i));
    store(flags, dgates, gate + size, dafter * (memory[at] * keep) * f * (1 - f));
    store(flags, dgates, gate + 2 * size, dafter * i * (1 - g * g));
    store(flags, dgates, gate + 3 * size, dshown * shown * o * (1 - o));
}

extern "C" __global__ void gru_forward(void *gates, const void *hidden, const float *bias, const float *bias_hidden,
                                       const float *memory, float *output, void *hidden_n, void *next,
                                       const bool *starts, const bool *starts_next, int rows, int size, int flags) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / size, j = at % size;
    if (row >= rows) return;
    long long gate = 3 * row * size + j;
    float r = sigmoid(load(flags, gates, gate) + bias[j] + load(flags, hidden, gate) + bias_hidden[j]);
    float z = sigmoid(load(flags, gates, gate + size) + bias[j + size] + load(flags, hidden, gate + size) +
                      bias_hidden[j + size]);
    float from_h = load(flags, hidden, gate + 2 * size) + bias_hidden[j + 2 * size];
    float n = tanhf(load(flags, gates, gate + 2 * size) + bias[j + 2 * size] + r * from_h);
    float shown = n + z * (memory[at] * kept(flags, STARTS, starts, row) - n);
    output[at] = shown;
    store(flags, gates, gate, r);
    store(flags, gates, gate + size, z);
    store(flags, gates, gate + 2 * size, n);
    store(flags, hidden_n, at, from_h);
    if (flags & NEXT) store(flags, next, at, shown * kept(flags, STARTS_NEXT, starts_next, row));
}

extern "C" __global__ void gru_backward(const void *gates, const void *hidden_n, const float *memory,
                                        const float *doutput, const void *dnext, float *dmemory, void *dgates,
                                        void *dhidden, const bool *starts, const bool *starts_next, int rows, int size,
                                        int flags) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / size, j = at % size;
    if (row >= rows) return;
    long long gate = 3 * row * size + j;
    float r = load(flags, gates, gate), z = load(flags, gates, gate + size), n = load(flags, gates, gate + 2 * size);
    float keep = kept(flags, STARTS, starts, row);
    float dafter = doutput[at] + dmemory[at] + kept(flags, STARTS_NEXT, starts_next, row) * load(flags, dnext, at);
    float dn = dafter * (1 - z) * (1 - n * n);
    float dr = dn * load(flags, hidden_n, at) * r * (1 - r), dz = dafter * (memory[at] * keep - n) * z * (1 - z);
    dmemory[at] = dafter * z * keep;
    store(flags, dgates, gate, dr);
    store(flags, dgates, gate + size, dz);
    store(flags, dgates, gate + 2 * size, dn);
    store(flags, dhidden, gate, dr);
    store(flags, dhidden, gate + size, dz);
    store(flags, dhidden, gate + 2 * size, dn * r);
}

extern "C" __global__ void mingru_forward(void *gates, const float *bias, const void *input, const float *memory,
                                          float *memory_next, float *output, const bool *starts, int steps, int rows,
                                          int size, int flags) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = at / size, j = at % size;
    if (row >= rows) return;
    float before = memory[at];
    for (int step = 0; step < steps; step++, row += rows, at += (long long)rows * size) {
        long long gate = 3 * row * size + j;
        float z = sigmoid(load(flags, gates, gate) + bias[j]);
        float n = load(flags, gates, gate + size) + bias[j + size];
        float r = sigmoid(load(flags, gates, gate + 2 * size) + bias[j + 2 * size]);
        float passed = load(flags, input, at);
        before *= kept(flags, STARTS, starts, row);
        before += z * (n - before);
        memory_next[at] = before;
        output[at] = passed + r * (before - passed);
        store(flags, gates, gate, z);
        store(flags, gates, gate + size, n);
        store(flags, gates, gate + 2 * size, r);
    }
}

extern "C" __global__ void mingru_backward(const void *gates, const void *input, const float *memory,
                                           const float *memory_next, const float *doutput, float *dmemory,
                                           void *dgates, void *dinput, const bool *starts, int steps, int rows,
                                           int size, int flags) {
    long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x, j = column % size;
    if (column / size >= rows) return;
    float dafter = dmemory[column];
    for (int step = steps - 1; step >= 0; step--) {
        long long row = column / size + (long long)step * rows, at = row * size + j, gate = 3 * row * size + j;
        float z = load(flags, gates, gate), n = load(flags, gates, gate + size);
        float r = load(flags, gates, gate + 2 * size), keep = kept(flags, STARTS, starts, row);
        dafter += doutput[at] * r;
        store(flags, dgates, gate, dafter * (n - memory[at] * keep) * z * (1 - z));
        store(flags, dgates, gate + size, dafter * z);
        store(flags, dgates, gate + 2 * size,
              doutput[at] * (memory_next[at] - load(flags, input, at)) * r * (1 - r));
        store(flags, dinput, at, doutput[at] * (1 - r));
        dafter *= (1 - z) * keep;
    }
    dmemory[column] = dafter;
}
