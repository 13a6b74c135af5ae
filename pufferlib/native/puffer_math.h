/* Functions of floats that loops can be vectorised over, unlike those of libm. */

#ifndef PUFFER_MATH_H
#define PUFFER_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* e^x to 2 units in the last place; exactly 0 below -87, where e^x leaves the normal floats, and infinity above 88.7.
 * e^x = 2^n e^r with r = x - n log 2 in [-log(2)/2, log(2)/2], where e^r is its Taylor polynomial; 2^n is written into
 * the exponent of a float, in two halves since n may be 128. */
static inline float puffer_exp(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves an integer in the low bits */
    const float bounded = x < -87.0f ? -87.0f : (x > 89.0f ? 89.0f : x);
    const float shifted = bounded * 1.44269504f + round;
    int32_t n;
    memcpy(&n, &shifted, sizeof n);
    n -= 0x4B400000;
    const float whole = shifted - round;
    const float r = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.3888889e-3f;
    p = p * r + 8.3333333e-3f;
    p = p * r + 4.1666667e-2f;
    p = p * r + 1.6666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const int32_t half = n >> 1;
    const int32_t low_bits = (half + 127) << 23, high_bits = (n - half + 127) << 23;
    float low, high;
    memcpy(&low, &low_bits, sizeof low);
    memcpy(&high, &high_bits, sizeof high);
    const float result = x < -87.0f ? 0.0f : p * low * high;
    return x == x ? result : x; /* NaN stays NaN */
}

/* Natural logarithm to 2 units in the last place, of normal floats; others that are not above 0 give NaN or -infinity.
 * x = 2^n m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)), a series in odd powers. */
static inline float puffer_log(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t n = (bits - 0x3F3504F3) >> 23; /* the bits of sqrt(1/2) */
    const int32_t mantissa = bits - n * (1 << 23);
    float m;
    memcpy(&m, &mantissa, sizeof m);
    const float s = (m - 1) / (m + 1), square = s * s;
    float p = 0.22222222f;
    p = p * square + 0.28571429f;
    p = p * square + 0.4f;
    p = p * square + 0.66666667f;
    p = p * square + 2.0f;
    const float whole = (float)n;
    const float result = whole * 0.693359375f + (p * s - whole * 2.12194440e-4f);
    return x > 0 ? result : (x == 0 ? -INFINITY : NAN);
}

/* Vectorised for what the machine has; without contraction all give the same bytes. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PUFFER_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PUFFER_WIDE
#endif

PUFFER_WIDE static void puffer_exp_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = puffer_exp(x[i]);
}

PUFFER_WIDE static void puffer_log_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = puffer_log(x[i]);
}

#endif
