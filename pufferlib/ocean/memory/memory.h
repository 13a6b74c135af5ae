/* Memory: watch some random digits, wait, and repeat them.
 *
 * Observation  float[1]: the digit that is shown, 0 or 1, or 0 if none is. The reset shows the first one.
 * Actions      Discrete(2). While the other digits are shown: 0. While waiting: any. Then the digits, one per
 *              step. Any number other than 0 and 1 is wrong.
 * Rewards      1 for each right action while digits are shown or repeated, 0 while waiting.
 * Ends         terminal after 2 * mem_length + mem_delay - 1 steps.
 * Source       PufferLib's memory. */
#ifndef MEMORY_H
#define MEMORY_H

#include "puffer_env.h"

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t mem_length, mem_delay;
    /* metrics */
    float score, perf;
    /* state; digit i is bit i */
    uint32_t digits;
    uint32_t wrong; /* digits that were repeated wrongly */
} Memory;

static const char memory_about[] = "Watch random digits, wait, and recite them: needs a policy with memory.";

static const PufferParameter memory_parameters[] = {
    PUFFER_PARAMETER(Memory, mem_length, 2, 1, 32, "digits"),
    PUFFER_PARAMETER(Memory, mem_delay, 2, 0, 1000, "steps between the last digit and the first answer"),
};

static const PufferMetric memory_metrics[] = {
    PUFFER_METRIC(Memory, score, "1 if every digit is recited right, else 0"),
    PUFFER_METRIC(Memory, perf, "share of episodes in which every digit is recited right"),
};

static inline const char *memory_spec(const Memory *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = 1,
        .picture_width = 560,
        .picture_height = 220,
        .frames_per_second = 2,
    };
    return NULL;
}

static inline bool memory_digit(const Memory *env, int32_t index) {
    return env->digits >> index & 1;
}

static inline void memory_show(Memory *env, int32_t index) {
    *(float *)env->game.observations = index < env->mem_length && memory_digit(env, index);
}

static inline void memory_reset(Memory *env) {
    env->digits = puffer_random(&env->game.rng);
    env->wrong = 0;
    memory_show(env, 0);
}

static inline PufferOutcome memory_step(Memory *env) {
    const int32_t action = *(const int32_t *)env->game.actions, step = env->game.episode_length;
    const int32_t index = step - env->mem_length - env->mem_delay; /* index of the digit to repeat */
    if (index >= 0) {
        const bool right = action == memory_digit(env, index);
        env->wrong |= (uint32_t)!right << index;
        env->game.rewards[0] = right;
    } else if (step < env->mem_length) {
        env->game.rewards[0] = action == 0;
    }
    memory_show(env, step);
    if (index + 1 < env->mem_length) return PUFFER_RUNNING;
    env->score = env->perf = env->wrong == 0;
    return PUFFER_TERMINATED;
}

#endif
