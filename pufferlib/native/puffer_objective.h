/* The objective of PPO on a minibatch, and its derivatives, in one pass over its steps.
 *
 * pufferlib/train/ppo.py states the same in torch, term by term.
 */

#ifndef PUFFER_OBJECTIVE_H
#define PUFFER_OBJECTIVE_H

#include <math.h>
#include <stdint.h>

#include "puffer_math.h"

typedef struct {
    float clip_coef, vf_clip_coef, vf_coef, ent_coef;
    int norm_adv;
} PufferCoefficients;

/* Steps of a minibatch: arrays of `steps` floats. What was estimated when an action was chosen is old. */
typedef struct {
    int64_t steps;
    const uint8_t *mask; /* 0 where a step does not count; NULL where all do */
    const float *log_probs, *entropies, *values;
    const float *old_log_probs, *old_values, *advantages, *returns;
} PufferSteps;

typedef struct {
    double total, policy, value, entropy, approx_kl, clip_fraction;
} PufferFigures;

/* Mean, and 1 / (deviation + 1e-8), of the advantages that count. */
static void puffer_moments(const PufferSteps *batch, int64_t count, float *mean, float *scale) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < batch->steps; i++) {
        if (!batch->mask || batch->mask[i]) sum += batch->advantages[i];
    }
    const double centre = sum / (double)count;
    for (int64_t i = 0; i < batch->steps; i++) {
        const double distance = batch->advantages[i] - centre;
        if (!batch->mask || batch->mask[i]) squares += distance * distance;
    }
    *mean = (float)centre;
    *scale = (float)(1 / (sqrt(squares / (double)count) + 1e-8));
}

/* Means over the steps that count, and the derivatives of the total by log_probs and values; that by each entropy is
 * -ent_coef / count, or 0 where a step does not count. Returns how many count. */
static int64_t puffer_objective(const PufferSteps *batch, const PufferCoefficients *with, PufferFigures *figures,
                                float *d_log_probs, float *d_values) {
    int64_t count = batch->steps;
    if (batch->mask) {
        count = 0;
        for (int64_t i = 0; i < batch->steps; i++) count += batch->mask[i] != 0;
    }
    const int64_t divisor = count ? count : 1;
    float mean = 0, scale = 1;
    if (with->norm_adv) puffer_moments(batch, divisor, &mean, &scale);
    const float share = 1.0f / (float)divisor, low = 1 - with->clip_coef, high = 1 + with->clip_coef;
    double policy = 0, value = 0, entropy = 0, approx_kl = 0;
    int64_t clipped = 0;
    for (int64_t i = 0; i < batch->steps; i++) {
        d_log_probs[i] = puffer_exp(batch->log_probs[i] - batch->old_log_probs[i]); /* the ratios, for now */
    }
    for (int64_t i = 0; i < batch->steps; i++) {
        if (batch->mask && !batch->mask[i]) {
            d_log_probs[i] = d_values[i] = 0;
            continue;
        }
        const float ratio = d_log_probs[i], advantage = (batch->advantages[i] - mean) * scale;
        const float bounded = ratio < low ? low : (ratio > high ? high : ratio);
        const float free_gain = advantage * ratio, bounded_gain = advantage * bounded;
        policy -= free_gain < bounded_gain ? free_gain : bounded_gain;
        d_log_probs[i] = free_gain <= bounded_gain ? -free_gain * share : 0; /* the bound has no slope */
        approx_kl += ratio - 1 - (batch->log_probs[i] - batch->old_log_probs[i]);
        clipped += fabsf(ratio - 1) > with->clip_coef;

        const float distance = batch->values[i] - batch->returns[i];
        float error = distance * distance, slope = distance;
        if (with->vf_clip_coef > 0) {
            const float limit = with->vf_clip_coef, moved = batch->values[i] - batch->old_values[i];
            const float step = moved < -limit ? -limit : (moved > limit ? limit : moved);
            const float other = batch->old_values[i] + step - batch->returns[i];
            if (other * other > error) {
                error = other * other;
                slope = step == moved ? other : 0;
            }
        }
        value += 0.5 * error;
        d_values[i] = with->vf_coef * slope * share;
        entropy += batch->entropies[i];
    }
    const double each = 1.0 / (double)divisor;
    figures->policy = policy * each;
    figures->value = value * each;
    figures->entropy = entropy * each;
    figures->approx_kl = approx_kl * each;
    figures->clip_fraction = (double)clipped * each;
    figures->total = figures->policy + with->vf_coef * figures->value - with->ent_coef * figures->entropy;
    return count;
}

#endif
