/* Multiagent: agents that have to do different things: the first plays 0, the second 1, and so on by turns.
 *
 * Observation  float[1]: the action to play, 0 or 1.
 * Actions      Discrete(2); anything else is wrong.
 * Rewards      1 for each agent whose action is right, 0 otherwise.
 * Ends         terminal after every step, for all.
 * Source       PufferLib's multiagent, which is two agents in Python, every second step only a reset.
 *              `pymultiagent` is the same in Python.
 */
#ifndef MULTIAGENT_H
#define MULTIAGENT_H

#include "puffer_env.h"

enum { MULTIAGENT_DRAWN = 8, MULTIAGENT_OTHER = 2 };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t players;
    /* metrics */
    float score, perf;
    /* what the first agents played last, for the picture */
    int8_t played[MULTIAGENT_DRAWN];
    bool has_played;
} Multiagent;

static const char multiagent_about[] = "Agents that see who they are, and have to play different actions.";

static const PufferParameter multiagent_parameters[] = {
    PUFFER_PARAMETER(Multiagent, players, 2, 2, 1024, "agents of a game"),
};

static const PufferMetric multiagent_metrics[] = {
    PUFFER_METRIC(Multiagent, score, "share of the agents whose action is right"),
    PUFFER_METRIC(Multiagent, perf, "the same"),
};

static inline const char *multiagent_spec(const Multiagent *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {1},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = env->players,
        .picture_width = 480,
        .picture_height = 240,
        .frames_per_second = 4,
    };
    return NULL;
}

static inline void multiagent_reset(Multiagent *env) {
    float *observations = env->game.observations;
    for (int32_t agent = 0; agent < env->players; agent++) observations[agent] = (float)(agent % 2);
}

static inline void multiagent_remember(Multiagent *env, const int32_t *actions) {
    for (int32_t agent = 0; agent < MULTIAGENT_DRAWN && agent < env->players; agent++) {
        env->played[agent] = (int8_t)(actions[agent] == 0 ? 0 : actions[agent] == 1 ? 1 : MULTIAGENT_OTHER);
    }
    env->has_played = true;
}

static inline PufferOutcome multiagent_step(Multiagent *env) {
    const int32_t *actions = env->game.actions;
    int32_t right = 0;
    for (int32_t agent = 0; agent < env->players; agent++) {
        const bool good = actions[agent] == agent % 2;
        env->game.rewards[agent] = good;
        right += good;
    }
    multiagent_remember(env, actions);
    env->score = env->perf = (float)right / (float)env->players;
    return PUFFER_TERMINATED;
}

#endif
