/* Independent categorical distributions: sampling, log probabilities, entropy, and derivatives.
 *
 * A row has one logit for each value of each component, and components are stored one after another. Rows of
 * logits are `stride` floats apart. All other arrays are contiguous. A logit of -1e9 has probability 0. */

#ifndef PUFFER_CATEGORICAL_H
#define PUFFER_CATEGORICAL_H

#include <math.h>
#include <stdint.h>

#include "puffer_math.h"

#define PUFFER_BLOCK \
    1024 /* number of exponentials that are processed at once, so that they stay in the L1 cache */

typedef struct {
    int *sizes; /* number of values of each component */
    int parts;
    int logits;     /* logits per row: the sum of the sizes */
    float *scratch; /* PUFFER_BLOCK floats, or one row if that is larger */
} PufferCategorical;

/* Number of rows in a block. */
static inline int64_t puffer_block_rows(const PufferCategorical *choice) {
    return choice->logits < PUFFER_BLOCK ? PUFFER_BLOCK / choice->logits : 1;
}

/* Replaces each logit by e^x, or by 0 if it is so far below the largest that its value is masked. */
PUFFER_VECTORIZED static void puffer_weigh(float *logits, int64_t count) {
    for (int64_t i = 0; i < count; i++) logits[i] = logits[i] < -87 ? 0 : puffer_exp(logits[i]);
}

PUFFER_VECTORIZED static void puffer_logarithms(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = puffer_log(x[i]);
}

/* Writes the exponentials of `rows` rows to scratch, with each component's largest logit subtracted. */
static void puffer_exponentials(const PufferCategorical *choice, const float *logits, int64_t stride,
                                int64_t rows) {
    float *shifted = choice->scratch;
    for (int64_t row = 0; row < rows; row++, logits += stride) {
        const float *part = logits;
        for (int k = 0; k < choice->parts; part += choice->sizes[k], k++) {
            float most = part[0];
            for (int j = 1; j < choice->sizes[k]; j++) most = part[j] > most ? part[j] : most;
            for (int j = 0; j < choice->sizes[k]; j++) *shifted++ = part[j] - most;
        }
    }
    puffer_weigh(choice->scratch, rows * choice->logits);
}

/* Samples an action for each component of each row and computes the log probability of the whole action.
 * `noise` is uniform in [0, 1), one number per component. The action is the first one whose cumulative
 * probability exceeds it. Returns whether all logits were numbers. */
static int puffer_draw(const PufferCategorical *choice, const float *logits, int64_t stride, int64_t rows,
                       const float *noise, int64_t *actions, float *log_probs) {
    const int64_t block = puffer_block_rows(choice);
    int finite = 1;
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t count = rows - first < block ? rows - first : block;
        puffer_exponentials(choice, logits + first * stride, stride, count);
        const float *weights = choice->scratch;
        float *chances =
            choice->scratch; /* probabilities of the actions; they overwrite weights that are not needed */
        for (int64_t row = 0; row < count; row++) {
            for (int k = 0; k < choice->parts; k++) {
                const int size = choice->sizes[k];
                float sum = 0, reached = 0;
                for (int j = 0; j < size; j++) sum += weights[j];
                const float target = sum * *noise++;
                int chosen =
                    0; /* counts instead of searching: a branch would be mispredicted half of the time */
                for (int j = 0; j < size; j++) {
                    reached += weights[j];
                    chosen += reached <= target;
                }
                finite &= sum > 0; /* false for NaN */
                *actions++ = chosen;
                *chances++ = weights[chosen] / sum;
                weights += size;
            }
        }
        puffer_logarithms(choice->scratch, count * choice->parts);
        chances = choice->scratch;
        for (int64_t row = first; row < first + count; row++) {
            log_probs[row] = 0;
            for (int k = 0; k < choice->parts; k++) log_probs[row] += *chances++;
        }
    }
    return finite;
}

/* Log probability of each row's actions (NaN if one is out of range), and entropy in nats. */
static void puffer_evaluate(const PufferCategorical *choice, const float *logits, int64_t stride,
                            int64_t rows, const int64_t *actions, float *log_probs, float *entropies) {
    const int64_t block = puffer_block_rows(choice);
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t count = rows - first < block ? rows - first : block;
        puffer_exponentials(choice, logits + first * stride, stride, count);
        const float *weights = choice->scratch;
        for (int64_t row = first; row < first + count; row++) {
            const float *part = logits + row * stride;
            float log_prob = 0, entropy = 0;
            for (int k = 0; k < choice->parts; k++) {
                const int64_t size = choice->sizes[k], chosen = *actions++;
                float most = part[0], sum = 0, weighed = 0;
                for (int j = 1; j < size; j++) most = part[j] > most ? part[j] : most;
                for (int j = 0; j < size; j++) {
                    sum += weights[j];
                    weighed += weights[j] * (part[j] - most);
                }
                const float log_sum = logf(sum);
                log_prob += chosen >= 0 && chosen < size ? part[chosen] - most - log_sum : NAN;
                entropy += log_sum - weighed / sum;
                part += size, weights += size;
            }
            log_probs[row] = log_prob, entropies[row] = entropy;
        }
    }
}

/* Derivative with respect to the logits (contiguous rows), given the derivatives with respect to both results
 * of puffer_evaluate: dx_j = d_log_prob (1[j chosen] - p_j) - d_entropy p_j (log p_j + entropy of the
 * component). */
static void puffer_differentiate(const PufferCategorical *choice, const float *logits, int64_t stride,
                                 int64_t rows, const int64_t *actions, const float *d_log_probs,
                                 const float *d_entropies, float *d_logits) {
    const int64_t block = puffer_block_rows(choice);
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t count = rows - first < block ? rows - first : block;
        puffer_exponentials(choice, logits + first * stride, stride, count);
        const float *weights = choice->scratch;
        for (int64_t row = first; row < first + count; row++) {
            const float *part = logits + row * stride;
            const float d_log_prob = d_log_probs[row], d_entropy = d_entropies[row];
            for (int k = 0; k < choice->parts; k++) {
                const int size = choice->sizes[k];
                float most = part[0], sum = 0, weighed = 0;
                for (int j = 1; j < size; j++) most = part[j] > most ? part[j] : most;
                for (int j = 0; j < size; j++) {
                    sum += weights[j];
                    weighed += weights[j] * (part[j] - most);
                }
                const float inverse = 1 / sum,
                            mean = weighed * inverse; /* mean of the shifted logits: log p + log sum */
                for (int j = 0; j < size; j++) {
                    d_logits[j] = -weights[j] * inverse * (d_log_prob + d_entropy * (part[j] - most - mean));
                }
                if (*actions >= 0 && *actions < size) d_logits[*actions] += d_log_prob;
                actions++;
                part += size, weights += size, d_logits += size;
            }
        }
    }
}

#endif
