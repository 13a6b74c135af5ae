/* Float functions that compilers can vectorise, unlike those in libm. */

#ifndef PUFFER_MATH_H
#define PUFFER_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PUFFER_INLINE static inline __attribute__((always_inline))

/* Compiles a function for the widest vectors of the CPU, selected when the module is loaded. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PUFFER_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PUFFER_VECTORIZED
#endif

PUFFER_INLINE float puffer_bits_to_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

PUFFER_INLINE uint32_t puffer_float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* e^x with a relative error of at most 2e-7. x is clamped to [-87, 87]. NaN stays NaN. */
PUFFER_INLINE float puffer_exp(float x) {
    const float shift = 12582912; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    x = x < -87 ? -87 : x;
    x = x > 87 ? 87 : x;
    float shifted = x * 1.44269504f + shift, power = shifted - shift;
    float rest = x - power * 0.693359375f + power * 2.12194440e-4f; /* log 2 in two parts */
    float series = 1.0f / 720; /* Taylor series: |rest| is at most 0.35 */
    series = series * rest + 1.0f / 120;
    series = series * rest + 1.0f / 24;
    series = series * rest + 1.0f / 6;
    series = series * rest + 0.5f;
    series = series * rest + 1;
    series = series * rest + 1;
    return series * puffer_bits_to_float((puffer_float_to_bits(shifted) << 23) + 0x3f800000);
}

PUFFER_INLINE float puffer_sigmoid(float x) {
    return 1 / (1 + puffer_exp(-x));
}

PUFFER_INLINE float puffer_tanh(float x) {
    return 1 - 2 / (1 + puffer_exp(2 * x));
}

/* x times the sigmoid of x, in a form that compilers vectorize with one division. */
PUFFER_INLINE float puffer_silu(float x) {
    const float half = 0.5f * x;
    return half + half * puffer_tanh(half);
}

PUFFER_INLINE float puffer_elu(float x) {
    return x > 0 ? x : puffer_exp(x) - 1;
}

/* x times the probability that a standard normal number is below x, with an absolute error of at most 5e-7.
 * The error function is formula 7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964). */
PUFFER_INLINE float puffer_gelu(float x) {
    const float size = fabsf(x), z = size * 0.70710678f, t = 1 / (1 + 0.3275911f * z);
    float series = 1.061405429f;
    series = series * t - 1.453152027f;
    series = series * t + 1.421413741f;
    series = series * t - 0.284496736f;
    series = series * t + 0.254829592f;
    const float beyond = series * t * puffer_exp(-z * z); /* 1 - erf z */
    return (x > 0 ? x : 0) - 0.5f * size * beyond;
}

/* Natural logarithm of a normal float, with a relative error of at most 2e-7. Returns -infinity for 0 and NaN
 * for negative numbers. x = 2^n m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)), a
 * series in odd powers. */
PUFFER_INLINE float puffer_log(float x) {
    const int32_t bits = (int32_t)puffer_float_to_bits(x), n = (bits - 0x3F3504F3) >> 23; /* of sqrt(1/2) */
    const float m = puffer_bits_to_float((uint32_t)(bits - n * (1 << 23))), s = (m - 1) / (m + 1),
                square = s * s;
    float series = 2.0f / 9;
    series = series * square + 2.0f / 7;
    series = series * square + 2.0f / 5;
    series = series * square + 2.0f / 3;
    series = series * square + 2;
    const float whole = (float)n, result = whole * 0.693359375f + (series * s - whole * 2.12194440e-4f);
    return x > 0 ? result : x == 0 ? -INFINITY : NAN;
}

#endif
