/* Independent normal distributions: log probabilities, entropy, and derivatives.
 *
 * A row of params has the means of all components, then their log standard deviations. Rows of params are `stride`
 * floats apart. All other arrays are contiguous. */

#ifndef PUFFER_GAUSSIAN_H
#define PUFFER_GAUSSIAN_H

#include "puffer_math.h"

#define PUFFER_HALF_LOG_TAU   0.918938533f /* log(2 pi) / 2 */
#define PUFFER_HALF_LOG_TAU_E 1.418938533f /* log(2 pi e) / 2 */

/* Writes the log probability of each row's actions, and the entropy of each row. */
PUFFER_VECTORIZED static void puffer_gaussian_evaluate(int size, const float *params, int64_t stride,
                                                       int64_t rows, const float *actions, float *log_probs,
                                                       float *entropies) {
    for (int64_t row = 0; row < rows; row++, params += stride, actions += size) {
        const float *log_std = params + size;
        float log_prob = 0, entropy = 0;
        for (int i = 0; i < size; i++) {
            const float scaled = (actions[i] - params[i]) * puffer_exp(-log_std[i]);
            log_prob -= 0.5f * scaled * scaled + log_std[i] + PUFFER_HALF_LOG_TAU;
            entropy += log_std[i] + PUFFER_HALF_LOG_TAU_E;
        }
        log_probs[row] = log_prob;
        entropies[row] = entropy;
    }
}

/* Writes the derivative with respect to the params, given the derivatives of the log probability and the entropy
 * of each row. With z = (x - mean) / std, the derivative of the log probability is z / std for the mean, and
 * z^2 - 1 for log std. That of the entropy is 0 and 1. */
PUFFER_VECTORIZED static void puffer_gaussian_differentiate(int size, const float *params, int64_t stride,
                                                            int64_t rows, const float *actions,
                                                            const float *d_log_probs,
                                                            const float *d_entropies, float *d_params) {
    for (int64_t row = 0; row < rows; row++, params += stride, actions += size, d_params += 2 * size) {
        const float *log_std = params + size;
        const float d_log_prob = d_log_probs[row], d_entropy = d_entropies[row];
        for (int i = 0; i < size; i++) {
            const float inverse = puffer_exp(-log_std[i]), scaled = (actions[i] - params[i]) * inverse;
            d_params[i] = scaled * inverse * d_log_prob;
            d_params[size + i] = (scaled * scaled - 1) * d_log_prob + d_entropy;
        }
    }
}

#endif
