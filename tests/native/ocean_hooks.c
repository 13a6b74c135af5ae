/* An environment with all that is optional: memory behind its struct, constant tables, and agents that end
 * one by one. Prints what the batch made of it, or aborts. Built with the sanitizers. */
#include <stdio.h>

#include "puffer_batch.h"

typedef struct {
    PufferGame game;
    int32_t cells;
    float score, perf;
    int32_t spawned[3];
} Hooks;

static const char hooks_about[] =
    "Agent i lives i + 1 steps; each step of it counts up a cell behind the struct.";
static int32_t hooks_prepared, hooks_table[4];

static const PufferParameter hooks_parameters[] = {PUFFER_PARAMETER(Hooks, cells, 5, 1, 1000, "cells")};
static const PufferMetric hooks_metrics[] = {PUFFER_METRIC(Hooks, score, "the agent"),
                                             PUFFER_METRIC(Hooks, perf, "nothing")};

static size_t hooks_bytes(const void *game) {
    return sizeof(Hooks) + (size_t)((const Hooks *)game)->cells * sizeof(int32_t);
}

static void hooks_prepare(void) {
    hooks_prepared++;
    for (int32_t i = 0; i < 4; i++) hooks_table[i] = i * i;
}

static const char *hooks_spec(const Hooks *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){.observation_type = PUFFER_UINT8,
                         .observation_shape = {1},
                         .action_kind = PUFFER_DISCRETE,
                         .action_sizes = {2},
                         .agents = 3,
                         .agents_end = true,
                         .picture_width = 1,
                         .picture_height = 1,
                         .frames_per_second = 1};
    return NULL;
}

static void hooks_reset(Hooks *env) {
    memset(env->game.observations, 0, 3);
    memset(env->spawned, 0, sizeof env->spawned);
}

static PufferOutcome hooks_step(Hooks *env) {
    int32_t *cells = (int32_t *)(env + 1);
    const int32_t now = env->game.episode_length;
    cells[env->cells - 1] += hooks_table[2];
    for (int32_t agent = 0; agent < 3; agent++) {
        env->game.rewards[agent] = 1;
        const int32_t age = now - env->spawned[agent];
        if (age < agent + 1 && now < 10) continue;
        env->score = (float)agent;
        PUFFER_END_AGENT(env, hooks_metrics, agent, age < agent + 1 ? PUFFER_TRUNCATED : PUFFER_TERMINATED,
                         (float)age, (float)age);
        env->spawned[agent] = now;
    }
    return now < 10 ? PUFFER_RUNNING : PUFFER_TRUNCATED;
}

static void hooks_draw(const Hooks *env, PufferCanvas *canvas) {
    (void)env, (void)canvas;
}

PUFFER_ENV(Hooks, hooks, .bytes = hooks_bytes, .prepare = hooks_prepare)
const PufferEnvType *const puffer_env_types[] = {&hooks_env, NULL};

static bool flags[2][6], masks[6];

static void print_flags(const char *name, const bool *row) {
    printf("%s", name);
    for (int32_t i = 0; i < 6; i++) printf(" %d", row[i]);
    printf("\n");
}

int main(void) {
    static uint8_t observations[6], last[6];
    static int32_t actions[6];
    static float rewards[6];
    const PufferValue values[] = {{.number = 7}};
    PufferBatch batch;
    for (int32_t again = 0; again < 2; again++) {
        if (again) puffer_batch_destroy(&batch);
        if (puffer_batch_create(&batch, &hooks_env, 2, values) != NULL || batch.games == NULL) return 1;
    }
    batch.observations = (char *)observations, batch.final_observations = (char *)last;
    batch.actions = (char *)actions, batch.rewards = rewards;
    batch.terminals = flags[0], batch.truncations = flags[1], batch.masks = masks;
    puffer_batch_bind(&batch);
    batch.type->reset(&batch, 0, 2);
    for (int32_t step = 0; step < 10; step++) {
        batch.type->step(&batch, 0, 2);
        if (step == 1) print_flags("terminals after 2 steps", flags[0]);
    }
    print_flags("terminals after 10 steps", flags[0]);
    print_flags("truncations after 10 steps", flags[1]);
    double metrics[PUFFER_MAX_METRICS], episode_return, episode_length;
    const int64_t episodes = puffer_batch_report(&batch, metrics, &episode_return, &episode_length);
    printf("episodes %d steps %g score %g\n", (int)episodes, episode_length, metrics[0]);
    printf("prepared %d, fits %d\n", hooks_prepared, batch.game_bytes >= sizeof(Hooks) + 7 * sizeof(int32_t));
    printf("cells %d %d\n", ((int32_t *)((Hooks *)puffer_game(&batch, 0) + 1))[6],
           ((int32_t *)((Hooks *)puffer_game(&batch, 1) + 1))[0]);
    puffer_batch_destroy(&batch);
}
