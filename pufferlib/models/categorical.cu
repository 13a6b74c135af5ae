// Sampling from a categorical distribution on a GPU, one thread per row, like
// native/puffer_categorical.h on a CPU.

// For each component, chooses the first value whose cumulative probability exceeds the noise, and computes the log
// probability of the whole action. Rows of `params` are `stride` numbers apart.
extern "C" __global__ void draw(const float *params, const float *noise, long long *actions, float *log_probs,
                                const int *sizes, int components, int stride, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *logits = params + (long long)row * stride;
    float log_prob = 0;
    for (int part = 0; part < components; part++) {
        long long at = (long long)row * components + part;
        int size = sizes[part], chosen = 0;
        float most = logits[0], sum = 0, reached = 0;
        for (int value = 1; value < size; value++) most = fmaxf(most, logits[value]);
        for (int value = 0; value < size; value++) sum += expf(logits[value] - most);
        for (int value = 0; value < size - 1; value++) {
            reached += expf(logits[value] - most);
            if (reached <= noise[at] * sum) chosen = value + 1;
        }
        actions[at] = chosen;
        log_prob += logits[chosen] - most - logf(sum);
        logits += size;
    }
    log_probs[row] = log_prob;
}
