/* Bit-exact reimplementation of NumPy functions, for games that must match an environment in Python: the
 * random numbers of `numpy.random.default_rng(seed)`, and squares. The generator has two parts: SeedSequence,
 * which spreads a seed over the state (based on O'Neill's seed_seq of 2015), and PCG64 (O'Neill 2014, XSL RR
 * 128/64). Sines and cosines come from the C library, which NumPy and Python's math module call too. */
#ifndef PUFFER_NUMPY_H
#define PUFFER_NUMPY_H

#include <math.h>
#include <stdint.h>

#define PUFFER_PI 3.141592653589793

/* 128-bit integers as two 64-bit halves, low half first, so that games stay aligned to 8 bytes. */
typedef struct {
    uint64_t state[2], increment[2];
    uint32_t half,
        has_half; /* upper half of the last word that was drawn for a 32-bit number, if it is unused */
} PufferGenerator;

__extension__ typedef unsigned __int128 PufferWide;

static inline PufferWide puffer_wide(uint64_t high, uint64_t low) {
    return (PufferWide)high << 64 | low;
}

static inline void puffer_store_wide(uint64_t halves[2], PufferWide value) {
    halves[0] = (uint64_t)value;
    halves[1] = (uint64_t)(value >> 64);
}

/* ---- SeedSequence --------------------------------------------------------------------------------- */

enum { PUFFER_POOL_WORDS = 4 };

/* Hashes a word, and updates `constant` for the next word. */
static inline uint32_t puffer_hash_word(uint32_t word, uint32_t *constant, uint32_t factor) {
    word ^= *constant;
    *constant *= factor;
    word *= *constant;
    return word ^ word >> 16;
}

static inline uint32_t puffer_mix_words(uint32_t one, uint32_t other) {
    const uint32_t mixed = one * 0xCA01F9DDu - other * 0x4973F715u;
    return mixed ^ mixed >> 16;
}

/* Mixes a seed so that every bit affects every word of the pool. */
static inline void puffer_fill_pool(uint32_t pool[PUFFER_POOL_WORDS], uint64_t seed) {
    const uint32_t words[PUFFER_POOL_WORDS] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, factor = 0x931E8875u;
    uint32_t constant = 0x43B0D7E5u;
    for (int32_t i = 0; i < PUFFER_POOL_WORDS; i++) pool[i] = puffer_hash_word(words[i], &constant, factor);
    for (int32_t from = 0; from < PUFFER_POOL_WORDS; from++) {
        for (int32_t to = 0; to < PUFFER_POOL_WORDS; to++) {
            if (to != from)
                pool[to] = puffer_mix_words(pool[to], puffer_hash_word(pool[from], &constant, factor));
        }
    }
}

/* ---- PCG64 -------------------------------------------------------------------------------------------- */

static inline PufferWide puffer_advance_generator(PufferGenerator *generator) {
    const PufferWide factor = puffer_wide(0x2360ED051FC65DA4u, 0x4385DF649FCCF645u);
    const PufferWide state = puffer_wide(generator->state[1], generator->state[0]) * factor +
                             puffer_wide(generator->increment[1], generator->increment[0]);
    puffer_store_wide(generator->state, state);
    return state;
}

/* Seeds the generator like `numpy.random.default_rng(seed)`. */
static inline void puffer_seed_generator(PufferGenerator *generator, uint64_t seed) {
    uint32_t pool[PUFFER_POOL_WORDS], constant = 0x8B51F9DDu;
    uint64_t words[4];
    puffer_fill_pool(pool, seed);
    for (int32_t i = 0; i < 4; i++) {
        words[i] = puffer_hash_word(pool[2 * i % PUFFER_POOL_WORDS], &constant, 0x58F38DEDu);
        const uint64_t high = puffer_hash_word(pool[(2 * i + 1) % PUFFER_POOL_WORDS], &constant, 0x58F38DEDu);
        words[i] |= high << 32;
    }
    puffer_store_wide(generator->state, 0);
    puffer_store_wide(generator->increment, puffer_wide(words[2], words[3]) << 1 | 1);
    const PufferWide state = puffer_advance_generator(generator) + puffer_wide(words[0], words[1]);
    puffer_store_wide(generator->state, state);
    puffer_advance_generator(generator);
    generator->half = generator->has_half = 0;
}

static inline uint64_t puffer_draw_word(PufferGenerator *generator) {
    const PufferWide state = puffer_advance_generator(generator);
    const uint64_t word = (uint64_t)(state >> 64) ^ (uint64_t)state;
    const uint32_t turn = (uint32_t)(state >> 122);
    return word >> turn | word << (-turn & 63);
}

/* Draws 32 bits. Every second call returns the upper half of the word of the call before. */
static inline uint32_t puffer_draw_half(PufferGenerator *generator) {
    generator->has_half = !generator->has_half;
    if (!generator->has_half) return generator->half;
    const uint64_t word = puffer_draw_word(generator);
    generator->half = (uint32_t)(word >> 32);
    return (uint32_t)word;
}

/* Draws a double in [0, 1), like `Generator.random()`. */
static inline double puffer_unit(PufferGenerator *generator) {
    return (double)(puffer_draw_word(generator) >> 11) * 0x1p-53;
}

/* Draws a double in [low, high), like `Generator.uniform(low, high)`. */
static inline double puffer_uniform(PufferGenerator *generator, double low, double high) {
    return low + (high - low) * puffer_unit(generator);
}

/* Draws an integer in [0, bound), like `Generator.integers(bound)`, for 1 < bound < 2^32. Also the index that
 * `Generator.choice` of `bound` values draws. The method is Lemire's (2019), without bias. */
static inline uint32_t puffer_integer(PufferGenerator *generator, uint32_t bound) {
    uint64_t scaled = (uint64_t)puffer_draw_half(generator) * bound;
    if ((uint32_t)scaled < bound) {
        const uint32_t least = -bound % bound;
        while ((uint32_t)scaled < least) scaled = (uint64_t)puffer_draw_half(generator) * bound;
    }
    return (uint32_t)(scaled >> 32);
}

/* Shuffles like `Generator.shuffle` of a list. The bits of an index are drawn until it is not too large. */
static inline void puffer_shuffle(PufferGenerator *generator, int32_t *values, int32_t count) {
    for (int32_t last = count - 1; last > 0; last--) {
        uint32_t mask = 1, index;
        while (mask < (uint32_t)last) mask = mask << 1 | 1;
        do index = puffer_draw_half(generator) & mask;
        while (index > (uint32_t)last);
        const int32_t moved = values[last];
        values[last] = values[index];
        values[index] = moved;
    }
}

/* Draws an index, like Gymnasium's `categorical_sample`: the first whose sum of probabilities up to and
 * including its own is above a number in [0, 1), or 0 if there is none, because the last sum was rounded. */
static inline int32_t puffer_categorical(PufferGenerator *generator, const double *sums, int32_t count) {
    const double drawn = puffer_unit(generator);
    for (int32_t i = 0; i < count; i++) {
        if (sums[i] > drawn) return i;
    }
    return 0;
}

/* ---- Squares ------------------------------------------------------------------------------------------ */

/* `x ** 2` of a scalar. NumPy calls `pow` of the C library, whose last bit can differ from x * x. The
 * exponent is hidden from the compiler, which would otherwise multiply. */
static inline double puffer_power2(double x) {
    static const volatile double exponent = 2;
    return pow(x, exponent);
}

static inline float puffer_power2f(float x) {
    static const volatile float exponent = 2;
    return powf(x, exponent);
}

#endif
