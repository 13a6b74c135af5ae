/* Discounted sums over later steps, from which advantages are computed, for all agents of a rollout. */

#ifndef PUFFER_ADVANTAGE_H
#define PUFFER_ADVANTAGE_H

#include <math.h>
#include <stdint.h>

#include "puffer_math.h"

/* x[t] += decay[t] * x[t + 1], from the second-to-last step to the first. Both arrays are (steps, agents).
 * Products are not rounded before they are added, as in a loop over torch's addcmul. The bits are the same. */
PUFFER_VECTORIZED static void puffer_sum_backwards(float *x, const float *decay, int64_t steps,
                                                   int64_t agents) {
    for (int64_t i = (steps - 1) * agents - 1; i >= 0; i--) x[i] = fmaf(decay[i], x[i + agents], x[i]);
}

#endif
