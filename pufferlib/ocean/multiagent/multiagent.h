/* Multiagent: agents that must do different things. The first plays 0, the second 1, and so on alternately.
 *
 * With `absence`, each agent except for a random one is absent from an episode with that probability. Its mask
 * is then False, its row 0, and its action is ignored.
 *
 * Observation  float[1]: the action to play, 0 or 1.
 * Actions      Discrete(2). Any other number is wrong.
 * Rewards      1 for each agent that is present and whose action is right, 0 otherwise.
 * Ends         terminal after every step, for all.
 * Source       PufferLib's multiagent, with two agents in Python, where every second step only resets.
 *              `pymultiagent` is the Python version. */
#ifndef MULTIAGENT_H
#define MULTIAGENT_H

#include "puffer_env.h"

enum { MULTIAGENT_ABSENT, MULTIAGENT_ZERO, MULTIAGENT_ONE, MULTIAGENT_OTHER };

/* State of an agent, for rendering. */
typedef struct {
    bool is_there; /* present in this episode */
    int8_t played; /* action in the last step */
} MultiagentPlayer;

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t players;
    float absence;
    /* metrics */
    float score, perf;
    MultiagentPlayer shown[]; /* [players] */
} Multiagent;

static const char multiagent_about[] = "Agents that see who they are, and have to play different actions.";

static const PufferParameter multiagent_parameters[] = {
    PUFFER_PARAMETER(Multiagent, players, 2, 2, 1024, "agents of a game"),
    PUFFER_PARAMETER(Multiagent, absence, 0, 0, 1, "chance of an agent to sit out an episode"),
};

static const PufferMetric multiagent_metrics[] = {
    PUFFER_METRIC(Multiagent, score, "share of the agents there whose action is right"),
    PUFFER_METRIC(Multiagent, perf, "the same"),
};

static inline size_t multiagent_bytes(const void *game) {
    return sizeof(Multiagent) + (size_t)((const Multiagent *)game)->players * sizeof(MultiagentPlayer);
}

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

/* Chooses the agents of this episode at random. */
static inline void multiagent_choose_present(Multiagent *env) {
    const uint32_t limit = (uint32_t)(env->absence * 65536);
    const int32_t certain = puffer_random_below(&env->game.rng, env->players);
    for (int32_t agent = 0; agent < env->players; agent++) {
        env->game.masks[agent] = agent == certain || puffer_random(&env->game.rng) >> 16 >= limit;
    }
}

static inline void multiagent_reset(Multiagent *env) {
    float *observations = env->game.observations;
    const bool is_first = puffer_is_first(&env->game);
    if (env->absence > 0) multiagent_choose_present(env);
    for (int32_t agent = 0; agent < env->players; agent++) {
        MultiagentPlayer *player = &env->shown[agent];
        player->is_there = env->game.masks[agent];
        if (is_first) player->played = MULTIAGENT_ABSENT;
        observations[agent] = (float)(agent % 2 && player->is_there);
    }
}

static inline void multiagent_record_actions(Multiagent *env, const int32_t *actions) {
    for (int32_t agent = 0; agent < env->players; agent++) {
        const uint32_t action = (uint32_t)actions[agent]; /* negative numbers become large */
        const int8_t played = action < 2 ? (int8_t)(MULTIAGENT_ZERO + action) : MULTIAGENT_OTHER;
        env->shown[agent].played = env->game.masks[agent] ? played : MULTIAGENT_ABSENT;
    }
}

static inline PufferOutcome multiagent_step(Multiagent *env) {
    const int32_t *actions = env->game.actions;
    int32_t right = 0, present = 0;
    for (int32_t agent = 0; agent < env->players; agent++) {
        const bool good = env->game.masks[agent] && actions[agent] == agent % 2;
        env->game.rewards[agent] = good;
        right += good;
        present += env->game.masks[agent];
    }
    multiagent_record_actions(env, actions);
    env->score = env->perf = (float)right / (float)present;
    return PUFFER_TERMINATED;
}

#endif
