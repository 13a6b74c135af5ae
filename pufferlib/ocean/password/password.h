/* Password: guess the digits of a binary password, which is the same in every episode. Only the end of the
 * episode reveals whether it was right.
 *
 * Observation  float[password_length]: the digits guessed so far, 0 or 1, and -1 for the remaining ones.
 * Actions      Discrete(2): the next digit. Any other number guesses 0.
 * Rewards      1 in the last step if every digit is right, 0 otherwise.
 * Ends         terminal after password_length steps.
 * Source       PufferLib's password. */
#ifndef PASSWORD_H
#define PASSWORD_H

#include "puffer_env.h"

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t password_length;
    int32_t hard_fixed_seed;
    /* metrics */
    float score, perf;
    /* state; digit i is bit i */
    uint32_t password, guess;
    uint32_t last_guess; /* of the previous episode, for rendering */
    bool has_last;
} Password;

static const char password_about[] = "Guess a fixed binary password: only the last digit is rewarded.";

static const PufferParameter password_parameters[] = {
    PUFFER_PARAMETER(Password, password_length, 5, 1, 32, "digits"),
    PUFFER_PARAMETER(Password, hard_fixed_seed, 42, 0, 2147483647, "chooses the password"),
};

static const PufferMetric password_metrics[] = {
    PUFFER_METRIC(Password, score, "1 if every digit is right, else 0"),
    PUFFER_METRIC(Password, perf, "share of episodes in which every digit is right"),
};

static inline const char *password_spec(const Password *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {env->password_length},
        .observation_low = -1,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = 1,
        .picture_width = 560,
        .picture_height = 280,
        .frames_per_second = 4,
    };
    return NULL;
}

static inline uint32_t password_digits(const Password *env) {
    PufferRng rng;
    puffer_seed(&rng, (uint64_t)env->hard_fixed_seed);
    return puffer_random(&rng) >> (32 - env->password_length);
}

static inline void password_reset(Password *env) {
    float *guesses = env->game.observations;
    env->password = password_digits(env);
    env->guess = 0;
    if (puffer_is_first(&env->game)) env->has_last = false;
    for (int32_t i = 0; i < env->password_length; i++) guesses[i] = -1;
}

static inline PufferOutcome password_step(Password *env) {
    float *guesses = env->game.observations;
    const int32_t place = env->game.episode_length - 1;
    const bool digit = *(const int32_t *)env->game.actions == 1;
    guesses[place] = digit;
    env->guess |= (uint32_t)digit << place;
    if (place + 1 < env->password_length) return PUFFER_RUNNING;
    env->score = env->perf = env->game.rewards[0] = env->guess == env->password;
    env->last_guess = env->guess;
    env->has_last = true;
    return PUFFER_TERMINATED;
}

#endif
