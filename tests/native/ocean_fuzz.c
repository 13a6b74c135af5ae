/* Plays one environment with random and extreme parameters and with actions from valid to hostile, in
 * buffers that end where the rows end. Built with the address and undefined behaviour sanitizers, which
 * abort on the first fault; what the environment promises about its rows is checked here.
 *
 * Usage: ocean_fuzz STEPS SEED, compiled with -DENV_TYPE=pong_env. */
#include <math.h>
#include <stdio.h>

#include "puffer_batch.h"
#include "puffer_pixels.h"

extern const PufferEnvType ENV_TYPE;

enum { STEPS_PER_ROUND = 250, MAX_GAMES = 4, MAX_PARAMETERS = 64 };

static void fail(const char *what, int round, int step) {
    fprintf(stderr, "%s: %s in round %d, step %d\n", ENV_TYPE.name, what, round, step);
    abort();
}

static double pick_value(const PufferParameter *parameter, PufferRng *rng) {
    double share = puffer_random(rng) / 4294967295.0;
    double value = parameter->low + share * (parameter->high - parameter->low);
    switch (puffer_random_below(rng, 8)) {
        case 0:
            return parameter->low;
        case 1:
            return parameter->high;
        case 2:
            return parameter->type == PUFFER_FLOAT32 ? value : floor(value);
        default:
            return parameter->value;
    }
}

/* Parameters that fit together; the defaults when ten tries find none. */
static void create(PufferBatch *batch, PufferRng *rng) {
    double values[MAX_PARAMETERS];
    int32_t games = 1 + puffer_random_below(rng, MAX_GAMES);
    for (int tries = 0; tries < 10; tries++) {
        for (int32_t i = 0; i < ENV_TYPE.num_parameters; i++)
            values[i] = pick_value(&ENV_TYPE.parameters[i], rng);
        if (puffer_batch_create(batch, &ENV_TYPE, games, values) == NULL) return;
    }
    for (int32_t i = 0; i < ENV_TYPE.num_parameters; i++) values[i] = ENV_TYPE.parameters[i].value;
    if (puffer_batch_create(batch, &ENV_TYPE, games, values) != NULL) fail("the defaults do not fit", 0, 0);
}

static void bind(PufferBatch *batch) {
    size_t agents = (size_t)batch->num_games * (size_t)batch->spec.agents;
    size_t rows = (size_t)batch->num_games * batch->observation_bytes;
    batch->observations = malloc(rows);
    batch->final_observations = calloc(rows, 1);
    batch->actions = calloc(agents * (size_t)puffer_action_count(&batch->spec), 4);
    batch->rewards = malloc(agents * sizeof(float));
    batch->terminals = malloc(agents * sizeof(bool));
    batch->truncations = malloc(agents * sizeof(bool));
    batch->masks = malloc(agents * sizeof(bool));
    puffer_batch_bind(batch);
}

static void destroy(PufferBatch *batch) {
    free(batch->observations);
    free(batch->final_observations);
    free(batch->actions);
    free(batch->rewards);
    free(batch->terminals);
    free(batch->truncations);
    free(batch->masks);
    puffer_batch_destroy(batch);
}

/* Small numbers, extreme ones, and any 32 bits: as floats these include infinities and NaNs. */
static void choose_actions(const PufferBatch *batch, PufferRng *rng) {
    const int32_t agents = batch->num_games * batch->spec.agents;
    const int32_t count = agents * puffer_action_count(&batch->spec);
    int32_t *integers = (int32_t *)(void *)batch->actions;
    float *floats = (float *)(void *)batch->actions;
    for (int32_t i = 0; i < count; i++) {
        int32_t kind = puffer_random_below(rng, 10);
        if (kind == 0) {
            integers[i] = (int32_t)puffer_random(rng);
        } else if (kind == 1) {
            integers[i] = puffer_random_below(rng, 2) ? INT32_MAX : INT32_MIN;
        } else if (batch->spec.action_kind == PUFFER_BOX) {
            floats[i] = (float)puffer_random(rng) / 2147483648.0f - 1;
        } else {
            integers[i] = puffer_random_below(rng, batch->spec.action_sizes[0] + 1);
        }
    }
}

static void check_rows(const PufferBatch *batch, const char *rows, int round, int step) {
    const PufferSpec *spec = &batch->spec;
    const size_t bytes = (size_t)batch->num_games * batch->observation_bytes;
    const size_t size = spec->observation_type == PUFFER_FLOAT32 ? sizeof(float) : 1;
    if (spec->observation_type == PUFFER_UINT8 && spec->observation_high == UINT8_MAX)
        return; /* any byte is */
    for (size_t i = 0; i < bytes; i += size) {
        float value = (float)*(const uint8_t *)(rows + i);
        if (spec->observation_type == PUFFER_INT8) value = (float)*(const int8_t *)(rows + i);
        if (spec->observation_type == PUFFER_FLOAT32) memcpy(&value, rows + i, sizeof value);
        if (!(value >= spec->observation_low && value <= spec->observation_high)) {
            fail("an observation is out of its bounds", round, step);
        }
    }
}

static void check_outcome(const PufferBatch *batch, int round, int step) {
    for (int32_t i = 0; i < batch->num_games * batch->spec.agents; i++) {
        if (!isfinite(batch->rewards[i])) fail("a reward is not finite", round, step);
        if (batch->terminals[i] && batch->truncations[i]) fail("both flags are up", round, step);
    }
    check_rows(batch, batch->observations, round, step);
    check_rows(batch, batch->final_observations, round, step);
}

static void check_report(const PufferBatch *batch, int round) {
    double metrics[PUFFER_MAX_METRICS], episode_return, episode_length;
    int64_t episodes = puffer_batch_report(batch, metrics, &episode_return, &episode_length);
    if (episodes > 0 && !(episode_length >= episodes)) fail("an episode has no steps", round, 0);
    for (int32_t i = 0; i < batch->type->num_metrics; i++) {
        if (!isfinite(metrics[i])) fail("a metric is not finite", round, 0);
    }
}

/* Bring a picture to any size. */
static void scale(const PufferCanvas *canvas, PufferRng *rng, int round) {
    const int32_t height = 1 + puffer_random_below(rng, 200), width = 1 + puffer_random_below(rng, 200);
    uint8_t *small = malloc(3 * (size_t)height * (size_t)width);
    if (!puffer_scale_once(canvas->pixels, canvas->height, canvas->width, small, height, width)) {
        fail("there is no memory to scale a picture", round, STEPS_PER_ROUND);
    }
    free(small);
}

static void play(PufferBatch *batch, PufferRng *rng, int round) {
    size_t pixels = (size_t)batch->spec.picture_width * (size_t)batch->spec.picture_height;
    PufferCanvas canvas = {malloc(3 * pixels), batch->spec.picture_width, batch->spec.picture_height,
                           puffer_random_below(rng, batch->spec.agents + 1) - 1};
    for (int32_t i = 0; i < batch->num_games; i++)
        puffer_seed(&puffer_game(batch, i)->rng, puffer_random(rng));
    batch->type->reset(batch, 0, batch->num_games);
    check_rows(batch, batch->observations, round, 0);
    for (int step = 1; step <= STEPS_PER_ROUND; step++) {
        choose_actions(batch, rng);
        batch->type->step(batch, 0, batch->num_games);
        if (step % 5 == 0) check_outcome(batch, round, step);
    }
    batch->type->draw(puffer_game(batch, 0), &canvas);
    scale(&canvas, rng, round);
    check_report(batch, round);
    free(canvas.pixels);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const int rounds = atoi(arguments[1]) / STEPS_PER_ROUND;
    PufferRng rng;
    puffer_seed(&rng, (uint64_t)atoll(arguments[2]));
    for (int round = 0; round < rounds; round++) {
        PufferBatch batch;
        create(&batch, &rng);
        batch.autoreset = (PufferAutoreset)puffer_random_below(&rng, 3);
        bind(&batch);
        play(&batch, &rng, round);
        destroy(&batch);
    }
    return 0;
}
