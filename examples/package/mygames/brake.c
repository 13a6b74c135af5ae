/* Brake: stop a train as near to the end of the track as possible.
 *
 * Observation  float[2], in [0, 1]: remaining part of the track, speed.
 * Actions      Discrete(2): 0 roll, 1 brake. Any other value rolls.
 * Rewards      part of the track that the train has passed when it stands, 0 if it hits the buffers.
 * Ends         terminal when the train stands or hits the buffers.
 */
#include "puffer_draw.h"
#include "puffer_env.h"

enum { BRAKE_ROLL, BRAKE_BRAKE, BRAKE_TOP_SPEED = 8 };

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t track;
    /* metrics */
    float score, perf;
    /* state */
    int32_t position, speed;
} Brake;

static const char brake_about[] = "Stop a train as near to the end of the track as possible.";

static const PufferParameter brake_parameters[] = {
    PUFFER_PARAMETER(Brake, track, 100, 50, 10000, "length of the track"),
};

static const PufferMetric brake_metrics[] = {
    PUFFER_METRIC(Brake, score, "part of the track that the train has passed when it stands"),
    PUFFER_METRIC(Brake, perf, "same as score"),
};

static inline const char *brake_spec(const Brake *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {2},
        .observation_low = 0,
        .observation_high = 1,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {2},
        .agents = 1,
        .picture_width = 160,
        .picture_height = 32,
        .frames_per_second = 10,
    };
    return NULL;
}

static inline void brake_observe(Brake *env) {
    float *observation = env->game.observations;
    observation[0] = 1 - (float)env->position / (float)env->track;
    observation[1] = (float)env->speed / BRAKE_TOP_SPEED;
}

static inline void brake_reset(Brake *env) {
    env->position = 0;
    env->speed = BRAKE_TOP_SPEED - puffer_random_below(&env->game.rng, BRAKE_TOP_SPEED / 2);
    brake_observe(env);
}

static inline PufferOutcome brake_step(Brake *env) {
    env->speed -= *(const int32_t *)env->game.actions == BRAKE_BRAKE;
    env->position = env->position + env->speed < env->track ? env->position + env->speed : env->track;
    brake_observe(env);
    const bool crashed = env->position == env->track;
    if (env->speed > 0 && !crashed) return PUFFER_RUNNING;
    env->score = env->perf = crashed ? 0 : (float)env->position / (float)env->track;
    env->game.rewards[0] = env->score;
    return PUFFER_TERMINATED;
}

static const PufferKey brake_keys[] = {{"", 0, BRAKE_ROLL, "roll"}, {"space", 0, BRAKE_BRAKE, "brake"}};

static inline void brake_draw(const Brake *env, PufferCanvas *canvas) {
    const int32_t room = canvas->width - 24;
    draw_clear(canvas, DRAW_NIGHT);
    draw_rectangle(canvas, 0, 22, canvas->width, 2, DRAW_SLATE);
    draw_rectangle(canvas, canvas->width - 4, 8, 4, 16, DRAW_ORANGE);
    draw_rectangle(canvas, (int32_t)((int64_t)room * env->position / env->track), 12, 20, 10, DRAW_CYAN);
}

PUFFER_ENV(Brake, brake, PUFFER_KEYS(brake_keys))
