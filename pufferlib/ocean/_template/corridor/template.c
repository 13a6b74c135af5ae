/* Template: walk along a corridor to the door at its right end.
 *
 * Observation  float[2], in [0, 1]: position of the agent in the corridor, and fraction of the time that has
 *              passed.
 * Actions      Discrete(3): 0 stay, 1 left, 2 right. Any other number stays.
 * Rewards      +1 at the door, 0 otherwise.
 * Ends         terminal at the door, truncation after max_steps steps.
 * Source       origin of the rules, and intended differences from them. */
#include "puffer_draw.h"
#include "puffer_env.h"

enum { TEMPLATE_STAY, TEMPLATE_LEFT, TEMPLATE_RIGHT };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t length;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* state */
    int32_t position;
} Template;

static const char template_about[] = "Walk along a corridor to the door at its right end.";

static const PufferParameter template_parameters[] = {
    PUFFER_PARAMETER(Template, length, 10, 2, 1000, "cells from one end to the other"),
    PUFFER_PARAMETER(Template, max_steps, 100, 1, 1000000, "steps until the episode is cut off"),
};

static const PufferMetric template_metrics[] = {
    PUFFER_METRIC(Template, score, "cells that lie behind the agent at the end"),
    PUFFER_METRIC(Template, perf, "share of episodes that end at the door"),
};

static inline const char *template_spec(const Template *env, PufferSpec *spec) {
    if (env->max_steps < env->length) return "max_steps must be at least length";
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {2},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {3},
        .agents = 1,
        .picture_width = 320,
        .picture_height = 64,
        .frames_per_second = 10,
    };
    return NULL;
}

static inline void template_observe(Template *env) {
    float *observation = env->game.observations;
    observation[0] = (float)env->position / (float)(env->length - 1);
    observation[1] = (float)env->game.episode_length / (float)env->max_steps;
}

static inline void template_reset(Template *env) {
    env->position = puffer_random_below(&env->game.rng, env->length - 1); /* anywhere but at the door */
    template_observe(env);
}

static inline PufferOutcome template_step(Template *env) {
    const int32_t action = *(const int32_t *)env->game.actions;
    const int32_t door = env->length - 1;
    env->position += (action == TEMPLATE_RIGHT) - (action == TEMPLATE_LEFT && env->position > 0);
    template_observe(env);
    env->score = (float)env->position;
    env->perf = env->position == door;
    if (env->position == door) {
        env->game.rewards[0] = 1;
        return PUFFER_TERMINATED;
    }
    return env->game.episode_length < env->max_steps ? PUFFER_RUNNING : PUFFER_TRUNCATED;
}

static const PufferKey template_keys[] = {
    {"left", 0, TEMPLATE_LEFT, "move left"},
    {"right", 0, TEMPLATE_RIGHT, "move right"},
    {"space", 0, TEMPLATE_STAY, "stay"},
};

static inline void template_draw(const Template *env, PufferCanvas *canvas) {
    const int32_t room = canvas->width - 32, door = env->length - 1;
    draw_clear(canvas, DRAW_NIGHT);
    draw_rectangle(canvas, 0, 24, canvas->width, 24, DRAW_SLATE);
    draw_rectangle(canvas, canvas->width - 8, 16, 8, 40, DRAW_ORANGE);
    draw_disc(canvas, 16 + room * env->position / door, 36, 10, DRAW_CYAN);
}

PUFFER_ENV(Template, template, PUFFER_KEYS(template_keys))
