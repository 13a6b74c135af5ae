/* Float functions that compilers can vectorise, unlike those in libm. */

#ifndef PUFFER_MATH_H
#define PUFFER_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PUFFER_INLINE static inline __attribute__((always_inline))

/* Compiles a function for the widest vectors of the CPU, selected when the module is loaded. */
/* Older compilers than GCC 12 do not know these names, and other C libraries than glibc cannot select. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
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

/* e^x with a relative error of at most 1e-7 + 4e-8 |x|, for functions that are nearly constant where |x| is
 * large. It is faster than puffer_exp: log 2 has one part, and the polynomial is fitted to the smallest maximum
 * error. x is clamped to [-87, 87]. NaN stays NaN. */
PUFFER_INLINE float puffer_exp_roughly(float x) {
    const float shift = 12582912 + 127; /* the low bits are the exponent of the power of two */
    x = x < -87 ? -87 : x;
    x = x > 87 ? 87 : x;
    const float shifted = x * 1.44269504f + shift, power = shifted - shift, rest = x - power * 0.693147181f;
    float series = 0.00829031f;
    series = series * rest + 0.04189794f;
    series = series * rest + 0.16667636f;
    series = series * rest + 0.49999149f;
    series = series * rest + 0.99999971f;
    series = series * rest + 1;
    return series * puffer_bits_to_float(puffer_float_to_bits(shifted) << 23);
}

PUFFER_INLINE float puffer_sigmoid(float x) {
    return 1 / (1 + puffer_exp_roughly(-x));
}

PUFFER_INLINE float puffer_tanh(float x) {
    return 1 - 2 / (1 + puffer_exp_roughly(2 * x));
}

/* x times the sigmoid of x, in a form that compilers vectorize. */
PUFFER_INLINE float puffer_silu(float x) {
    const float half = 0.5f * x;
    return half + half * puffer_tanh(half);
}

PUFFER_INLINE float puffer_elu(float x) {
    return x > 0 ? x : puffer_exp_roughly(x) - 1;
}

/* x times the probability that a standard normal number is below x, with an absolute error of at most 1e-6.
 * The error function of x / sqrt(2) is an odd fraction of two polynomials, which are fitted to the smallest
 * maximum error of the result on [0, 5.2]. */
PUFFER_INLINE float puffer_gelu(float x) {
    float size = fabsf(x);
    size = size > 5.2f ? 5.2f : size;
    const float square = size * size, half = 0.5f * size;
    float above = 1.45650284e-05f;
    above = above * square + 0.000789591909f;
    above = above * square + 0.0120203921f;
    above = above * square + 0.113135546f;
    above = above * square + 0.797880645f;
    float below = 6.09268096e-07f;
    below = below * square + 0.000143375852f;
    below = below * square + 0.00315028511f;
    below = below * square + 0.0415024975f;
    below = below * square + 0.308439811f;
    below = below * square + 1;
    return (x > 0 ? x : 0) - half + half * (size * above / below);
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
