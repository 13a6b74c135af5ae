/* Functions of floats that loops can be vectorised over, unlike those of libm. */

#ifndef PUFFER_MATH_H
#define PUFFER_MATH_H

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

#endif
