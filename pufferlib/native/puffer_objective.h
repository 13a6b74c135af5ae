/* The PPO objective of a minibatch and its derivatives, in one pass over the steps.
 *
 * pufferlib/training/ppo.py defines the same objective in torch, term by term. */

#ifndef PUFFER_OBJECTIVE_H
#define PUFFER_OBJECTIVE_H

#include <math.h>
#include <stdint.h>

#include "puffer_math.h"

typedef struct {
    float clip_coef, vf_clip_coef, vf_coef, ent_coef;
    int norm_adv;
} PufferCoefficients;

/* Steps of a minibatch: arrays of `steps` floats. "old" values were computed when the action was chosen. */
typedef struct {
    int64_t steps;
    const uint8_t *mask;  /* 0 if a step does not count; NULL: all steps count */
    const float *weights; /* weights of the steps in the means; NULL: equal weights */
    const float *log_probs, *entropies, *values;
    const float *old_log_probs, *old_values, *advantages, *returns;
} PufferSteps;

typedef struct {
    double total, policy, value, entropy, approx_kl, clip_fraction;
} PufferFigures;

PUFFER_VECTORIZED static void puffer_ratios(float *log_ratios, int64_t count) {
    for (int64_t i = 0; i < count; i++) log_ratios[i] = puffer_exp(log_ratios[i]);
}

static inline float puffer_weight(const PufferSteps *batch, int64_t i) {
    return batch->mask && !batch->mask[i] ? 0 : batch->weights ? batch->weights[i] : 1;
}

/* Mean of the advantages, and 1 / (standard deviation + 1e-8). */
static void puffer_moments(const PufferSteps *batch, double total, float *mean, float *scale) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < batch->steps; i++) sum += (double)puffer_weight(batch, i) * batch->advantages[i];
    const double centre = sum / total;
    for (int64_t i = 0; i < batch->steps; i++) {
        const double distance = batch->advantages[i] - centre;
        squares += (double)puffer_weight(batch, i) * distance * distance;
    }
    *mean = (float)centre;
    *scale = (float)(1 / (sqrt(squares / total) + 1e-8));
}

/* Computes weighted means over the steps that count, and the derivatives of the total with respect to
 * log_probs, entropies and values. */
static void puffer_objective(const PufferSteps *batch, const PufferCoefficients *with, PufferFigures *figures,
                             float *d_log_probs, float *d_entropies, float *d_values) {
    int64_t count = 0, clipped = 0;
    double total = 0, policy = 0, value = 0, entropy = 0, approx_kl = 0;
    for (int64_t i = 0; i < batch->steps; i++) {
        total += puffer_weight(batch, i);
        count += !batch->mask || batch->mask[i];
        d_log_probs[i] = batch->log_probs[i] - batch->old_log_probs[i];
    }
    puffer_ratios(d_log_probs, batch->steps); /* later overwritten by their derivatives */
    total = total != 0 ? total : 1;
    float mean = 0, scale = 1;
    if (with->norm_adv) puffer_moments(batch, total, &mean, &scale);
    const float low = 1 - with->clip_coef, high = 1 + with->clip_coef, limit = with->vf_clip_coef;
    for (int64_t i = 0; i < batch->steps; i++) {
        if (batch->mask && !batch->mask[i]) {
            d_log_probs[i] = d_entropies[i] = d_values[i] = 0;
            continue;
        }
        const float weight = puffer_weight(batch, i), share = weight / (float)total;
        const float ratio = d_log_probs[i], advantage = (batch->advantages[i] - mean) * scale;
        const float bounded = ratio < low ? low : (ratio > high ? high : ratio);
        const float free_gain = advantage * ratio, bounded_gain = advantage * bounded;
        policy -= weight * (free_gain < bounded_gain ? free_gain : bounded_gain);
        d_log_probs[i] = free_gain <= bounded_gain ? -free_gain * share : 0; /* the bound has no slope */
        approx_kl += ratio - 1 - (batch->log_probs[i] - batch->old_log_probs[i]);
        clipped += fabsf(ratio - 1) > with->clip_coef;

        float error = batch->values[i] - batch->returns[i], slope = error;
        if (limit > 0) {
            const float moved = batch->values[i] - batch->old_values[i];
            const float step = moved < -limit ? -limit : (moved > limit ? limit : moved);
            const float other = batch->old_values[i] + step - batch->returns[i];
            if (other * other > error * error) {
                error = other;
                slope = step == moved ? other : 0;
            }
        }
        value += 0.5 * weight * error * error;
        d_values[i] = with->vf_coef * slope * share;
        entropy += weight * batch->entropies[i];
        d_entropies[i] = -with->ent_coef * share;
    }
    const double each = 1.0 / (double)(count ? count : 1);
    figures->policy = policy / total;
    figures->value = value / total;
    figures->entropy = entropy / total;
    figures->approx_kl = approx_kl * each;
    figures->clip_fraction = (double)clipped * each;
    figures->total = figures->policy + with->vf_coef * figures->value - with->ent_coef * figures->entropy;
}

#endif
