/* Stochastic: play one of two actions with a given frequency, without observing anything. Only a stochastic
 * policy does well.
 *
 * Observation  float[1]: always 0.
 * Actions      Discrete(2): 0 is counted, 1 is not. Any other number is not.
 * Rewards      With f, the fraction of action 0 so far, including this step: 1 - (p - f)^2 for the action
 *              that moves f towards p, which is 0 if f < p and 1 (or another) if f >= p. 0 for the other one.
 * Ends         truncation after horizon steps, because the observation does not show the time.
 * Source       PufferLib's stochastic, where the limit is a terminal. */
#ifndef STOCHASTIC_H
#define STOCHASTIC_H

#include "puffer_env.h"

typedef struct {
    PufferGame game;
    /* parameters */
    float p;
    int32_t horizon;
    /* metrics */
    float score, perf;
    /* state */
    int32_t count; /* of action 0 */
} Stochastic;

static const char stochastic_about[] = "Play two actions in given shares without seeing anything.";

static const PufferParameter stochastic_parameters[] = {
    PUFFER_PARAMETER(Stochastic, p, 0.7, 0.01, 0.99, "share of action 0 that is asked for"),
    PUFFER_PARAMETER(Stochastic, horizon, 100, 1, 1000000, "steps of an episode"),
};

static const PufferMetric stochastic_metrics[] = {
    PUFFER_METRIC(Stochastic, score, "1 - (p - f)^2 at the end"),
    PUFFER_METRIC(Stochastic, perf, "score from 0, the best without chance (or less), to 1"),
};

static inline const char *stochastic_spec(const Stochastic *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = 1,
        .picture_width = 480,
        .picture_height = 200,
        .frames_per_second = 15,
    };
    return NULL;
}

static inline void stochastic_reset(Stochastic *env) {
    env->count = 0;
    *(float *)env->game.observations = 0;
}

static inline void stochastic_score(Stochastic *env, float miss) {
    const float simple = puffer_min(env->p, 1 - env->p); /* error of the best constant policy */
    env->score = 1 - miss * miss;
    env->perf = puffer_max(0, 1 - miss * miss / (simple * simple));
}

static inline PufferOutcome stochastic_step(Stochastic *env) {
    const bool counted = *(const int32_t *)env->game.actions == 0;
    env->count += counted;
    const float share = (float)env->count / (float)env->game.episode_length, miss = env->p - share;
    if (counted == (share < env->p)) env->game.rewards[0] = 1 - miss * miss;
    if (env->game.episode_length < env->horizon) return PUFFER_RUNNING;
    stochastic_score(env, miss);
    return PUFFER_TRUNCATED;
}

#endif
