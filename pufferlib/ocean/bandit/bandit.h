/* Bandit: pull one of several arms. One arm, the same in every episode, pays more than the others.
 *
 * Observation  float[1]: always 1.
 * Actions      Discrete(num_actions): the arm to pull. Any other number pulls none.
 * Rewards      reward_scale * (1 for the best arm, 0 for the others, plus noise). The noise has mean 0 and
 *              standard deviation reward_noise. It is approximately normal, the sum of twelve uniform
 *              numbers. The reward is 0 if no arm is pulled.
 * Ends         terminal after every step.
 * Source       PufferLib's bandit. There the noise is scaled twice, and reward_noise only switches it on. */
#ifndef BANDIT_H
#define BANDIT_H

#include "puffer_env.h"

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t num_actions;
    float reward_scale, reward_noise;
    int32_t hard_fixed_seed;
    /* metrics */
    float score, perf;
    /* state */
    int32_t best;   /* arm */
    int32_t pulled; /* 1 + the last arm, 0 if none; kept for rendering, like `paid` */
    float paid;     /* reward of that arm */
} Bandit;

static const char bandit_about[] = "Find the one arm of a slot machine that pays more, under noise.";

/* clang-format off */
static const PufferParameter bandit_parameters[] = {
    PUFFER_PARAMETER(Bandit, num_actions, 10, 2, 100, "arms to choose from"),
    PUFFER_PARAMETER(Bandit, reward_scale, 1, 0.001, 1000, "what the best arm pays on average"),
    PUFFER_PARAMETER(Bandit, reward_noise, 1, 0, 1000, "standard deviation of the noise, before it is scaled"),
    PUFFER_PARAMETER(Bandit, hard_fixed_seed, 42, 0, 2147483647, "chooses the best arm"),
};
/* clang-format on */

static const PufferMetric bandit_metrics[] = {
    PUFFER_METRIC(Bandit, score, "1 for the best arm, 0 for another"),
    PUFFER_METRIC(Bandit, perf, "share of episodes in which the best arm is pulled"),
};

static inline const char *bandit_spec(const Bandit *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {env->num_actions},
        .agents = 1,
        .picture_width = 560,
        .picture_height = 320,
        .frames_per_second = 4,
    };
    return NULL;
}

static inline void bandit_reset(Bandit *env) {
    PufferRng rng;
    puffer_seed(&rng, (uint64_t)env->hard_fixed_seed);
    env->best = puffer_random_below(&rng, env->num_actions);
    if (puffer_is_first(&env->game)) env->pulled = 0;
    *(float *)env->game.observations = 1;
}

/* Mean 0, standard deviation 1, between -6 and 6. */
static inline float bandit_noise(PufferRng *rng) {
    int32_t sum = -6 * 65535;
    for (int32_t i = 0; i < 6; i++) {
        const uint32_t word = puffer_random(rng);
        sum += (int32_t)(word >> 16) + (int32_t)(word & 65535);
    }
    return (float)sum / 65536;
}

static inline PufferOutcome bandit_step(Bandit *env) {
    const int32_t action = *(const int32_t *)env->game.actions;
    const bool valid = action >= 0 && action < env->num_actions, best = action == env->best;
    env->pulled = valid ? action + 1 : 0;
    env->paid = 0;
    if (valid) {
        const float noise = env->reward_noise > 0 ? env->reward_noise * bandit_noise(&env->game.rng) : 0;
        env->paid = env->reward_scale * ((float)best + noise);
    }
    env->game.rewards[0] = env->paid;
    env->score = env->perf = best;
    return PUFFER_TERMINATED;
}

#endif
