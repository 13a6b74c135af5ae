/* Rows of independent categorical choices: drawn from their logits, weighed, and differentiated.
 *
 * A row has one number of logits for each value of each part; the parts lie one after another. Rows of logits
 * are `stride` floats apart, all else is contiguous. A logit of -1e9 has probability 0.
 */

#ifndef PUFFER_CATEGORICAL_H
#define PUFFER_CATEGORICAL_H

#include <math.h>
#include <stdint.h>

#include "puffer_math.h"

#define PUFFER_BLOCK \
    1024 /* floats of exponentials that are worked on at once; they stay in the first cache */

typedef struct {
    int *sizes; /* values of each part */
    int parts;
    int logits;     /* of a row: the sum of the sizes */
    float *scratch; /* PUFFER_BLOCK floats, or those of one row if that is more */
} PufferCategorical;

/* Rows of a block. */
static inline int64_t puffer_block_rows(const PufferCategorical *choice) {
    return choice->logits < PUFFER_BLOCK ? PUFFER_BLOCK / choice->logits : 1;
}

/* e^x of each logit: 0 where it is so far below the largest that it is forbidden. */
PUFFER_VECTORIZED static void puffer_weigh(float *logits, int64_t count) {
    for (int64_t i = 0; i < count; i++) logits[i] = logits[i] < -87 ? 0 : puffer_exp(logits[i]);
}

PUFFER_VECTORIZED static void puffer_logarithms(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = puffer_log(x[i]);
}

/* Exponentials of `rows` rows, each part's largest logit subtracted, into scratch. */
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

/* One action for each part of each row, and the logarithm of the probability of them together.
 * `noise` is uniform in [0, 1), one number for each part: the action is the first whose cumulated probability
 * exceeds it. Returns whether all logits were numbers. */
static int puffer_draw(const PufferCategorical *choice, const float *logits, int64_t stride, int64_t rows,
                       const float *noise, int64_t *actions, float *log_probs) {
    const int64_t block = puffer_block_rows(choice);
    int finite = 1;
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t count = rows - first < block ? rows - first : block;
        puffer_exponentials(choice, logits + first * stride, stride, count);
        const float *weights = choice->scratch;
        float *chances =
            choice->scratch; /* of the actions; they take the place of weights that are done with */
        for (int64_t row = 0; row < count; row++) {
            for (int k = 0; k < choice->parts; k++) {
                const int size = choice->sizes[k];
                float sum = 0, reached = 0;
                for (int j = 0; j < size; j++) sum += weights[j];
                const float target = sum * *noise++;
                int chosen =
                    0; /* counted, not searched for: a branch would be guessed wrong half of the time */
                for (int j = 0; j < size; j++) {
                    reached += weights[j];
                    chosen += reached <= target;
                }
                finite &= sum > 0; /* NaN is not */
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

/* Logarithm of the probability of each row's actions, NaN where one is out of range, and its entropy in nats.
 */
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

/* Derivative by the logits, contiguous rows, of what has `d_log_probs` and `d_entropies` by those of
 * puffer_evaluate: dx_j = d_log_prob (1[j chosen] - p_j) - d_entropy p_j (log p_j + entropy of the part). */
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
                            mean = weighed * inverse; /* of the shifted logits: log p + log sum */
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
