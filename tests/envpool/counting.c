/* Counting game of counting.py. The index of the environment replaces its seed. */
#include "puffer_env.h"

typedef struct {
    PufferGame game;
    int32_t players, begun, count;
    float score;
} Counting;

static const char counting_about[] = "Counts episodes and steps.";

static const PufferParameter counting_parameters[] = {
    PUFFER_PARAMETER(Counting, players, 1, 1, 8, "players of a game"),
};

static const PufferMetric counting_metrics[] = {PUFFER_METRIC(Counting, score, "steps")};

static const char *counting_spec(const Counting *env, PufferSpec *spec) {
    spec->observation_type = PUFFER_FLOAT32;
    spec->observation_shape[0] = 4;
    spec->observation_low = 0;
    spec->observation_high = 1e9f;
    spec->action_kind = PUFFER_DISCRETE;
    spec->action_sizes[0] = 5;
    spec->agents = env->players;
    spec->picture_width = 20;
    spec->picture_height = 10;
    spec->frames_per_second = 10;
    return NULL;
}

static void counting_show(Counting *env, const int32_t *actions) {
    float *rows = env->game.observations;
    for (int32_t player = 0; player < env->players; player++) {
        float row[4] = {(float)env->game.index, (float)(env->begun - 1), (float)env->count,
                        actions == NULL ? 0 : (float)actions[player]};
        memcpy(rows + 4 * player, row, sizeof row);
    }
}

static void counting_reset(Counting *env) {
    env->begun++;
    env->count = 0;
    counting_show(env, NULL);
}

static PufferOutcome counting_step(Counting *env) {
    const int32_t *actions = env->game.actions;
    PufferOutcome outcome = PUFFER_RUNNING;
    env->count++;
    env->score = (float)env->count;
    for (int32_t player = 0; player < env->players; player++) {
        env->game.rewards[player] = (float)(env->count + actions[player] / 10.0);
        if (actions[player] == 3) {
            outcome = PUFFER_TERMINATED;
        } else if (actions[player] == 4 && outcome == PUFFER_RUNNING) {
            outcome = PUFFER_TRUNCATED;
        }
    }
    counting_show(env, actions);
    return outcome;
}

static void counting_draw(const Counting *env, PufferCanvas *canvas) {
    for (int32_t i = 0; i < canvas->width * canvas->height; i++) {
        canvas->pixels[3 * i] = (uint8_t)(env->game.index % 7);
        canvas->pixels[3 * i + 1] = (uint8_t)env->count;
        canvas->pixels[3 * i + 2] = 0;
    }
}

PUFFER_ENV(Counting, counting)
