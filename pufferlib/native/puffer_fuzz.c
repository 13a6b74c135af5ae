/* Fuzzes one environment and reports its defects. Built with the address and undefined behaviour sanitizers,
 * which detect what the program itself does not.
 *
 * Usage: puffer_fuzz PHASE STEPS SEED, linked with an environment that was compiled with PUFFER_IN_LIBRARY.
 *
 *   hostile  random and extreme parameters, valid and invalid actions, and buffers that end exactly where the
 *            rows end; checks bounds, finite numbers and flags
 *   seed     compares two batches with the same seeds and actions, whose rows hold different bytes before the
 *            first reset
 *   batch    compares the games of a batch with the same games alone
 *   reset    compares a used batch after a reset with a new one
 *   state    compares a batch with another one that loaded its state
 *
 * A defect is reported as a line "puffer_fuzz: CLASS: sentence" on stderr, with exit code 3. A
 * phase that finished without one has exit code 100. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "puffer_batch.h"
#include "puffer_pixels.h"

enum {
    STEPS_PER_ROUND = 250,
    MAX_GAMES = 4,
    MAX_PARAMETERS = 64,
    MAX_TEXT = 1024,
    MAX_STEP_S = 60,
    DEFECT = 3,
    FINISHED = 100 /* not 0, because a game may call exit(0) */
};

extern const PufferLibrary puffer_library;

/* Provided by the sanitizers, if the program is built with them. */
extern void __asan_set_death_callback(void (*callback)(void)) __attribute__((weak));
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

static const PufferEnvType *type;
static PufferValue values[MAX_PARAMETERS]; /* parameters of the current round */
static char texts[MAX_PARAMETERS][MAX_TEXT];
static int round_now, step_now;

/* ---- Defects ---------------------------------------------------------------------------------------- */

static void print_place(void) {
    fprintf(stderr, "puffer_fuzz: in step %d of round %d, with", step_now, round_now);
    for (int32_t i = 0; i < type->num_parameters; i++) {
        if (type->parameters[i].type == PUFFER_TEXT) {
            fprintf(stderr, " %s='%s'", type->parameters[i].name, values[i].text);
        } else {
            fprintf(stderr, " %s=%g", type->parameters[i].name, values[i].number);
        }
    }
    fprintf(stderr, "\n");
}

static void fail(const char *kind, const char *what) {
    fprintf(stderr, "puffer_fuzz: %s: %s\n", kind, what);
    print_place();
    fflush(stderr);
    _exit(DEFECT);
}

static void on_alarm(int number) {
    (void)number;
    if (__sanitizer_print_stack_trace != NULL) __sanitizer_print_stack_trace();
    fail("hang", "a reset or step has not come back within a minute");
}

/* ---- Batches ---------------------------------------------------------------------------------------- */

static double pick_number(const PufferParameter *parameter, PufferRng *rng) {
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

/* Writes a text of random printable characters, which is empty most of the time. */
static const char *pick_text(const PufferParameter *parameter, PufferRng *rng, char *text) {
    const int32_t most = parameter->high < MAX_TEXT ? (int32_t)parameter->high : MAX_TEXT - 1;
    const int32_t length = puffer_random_below(rng, 8) > 0 ? 0 : puffer_random_below(rng, most + 1);
    for (int32_t i = 0; i < length; i++) text[i] = (char)(' ' + puffer_random_below(rng, '~' - ' ' + 1));
    text[length] = 0;
    return text;
}

static PufferValue pick_value(int32_t index, bool is_default, PufferRng *rng) {
    const PufferParameter *parameter = &type->parameters[index];
    if (parameter->type == PUFFER_TEXT)
        return (PufferValue){.text = is_default ? "" : pick_text(parameter, rng, texts[index])};
    return (PufferValue){.number = is_default ? parameter->value : pick_number(parameter, rng)};
}

static bool create(PufferBatch *batch, int32_t games) {
    return puffer_batch_create(batch, type, games, values) == NULL && batch->games != NULL;
}

/* Chooses parameters that fit together, or the defaults if ten tries find none. */
static void choose_values(PufferRng *rng) {
    PufferBatch batch;
    for (int tries = 0; tries <= 10; tries++) {
        for (int32_t i = 0; i < type->num_parameters; i++) values[i] = pick_value(i, tries == 10, rng);
        if (create(&batch, 1)) {
            puffer_batch_destroy(&batch);
            return;
        }
    }
    fail("contract", "the defaults of the parameters do not fit together");
}

/* Gives a batch buffers that end where the rows end. Rows of observations hold `filling` before the first
 * reset. */
static void bind(PufferBatch *batch, int filling) {
    size_t agents = (size_t)batch->num_games * (size_t)batch->spec.agents;
    size_t rows = (size_t)batch->num_games * batch->observation_bytes;
    batch->observations = malloc(rows);
    memset(batch->observations, filling, rows);
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

/* Chooses small numbers, extreme ones, and arbitrary 32 bits, which as floats include infinities and NaNs. */
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
            floats[i] = ((float)puffer_random(rng) / 2147483648.0f - 1) * puffer_action_limit(&batch->spec);
        } else {
            integers[i] = puffer_random_below(rng, batch->spec.action_sizes[0] + 1);
        }
    }
}

/* ---- Phase: hostile --------------------------------------------------------------------------------- */

static void check_rows(const PufferBatch *batch, const char *rows) {
    const PufferSpec *spec = &batch->spec;
    const size_t bytes = (size_t)batch->num_games * batch->observation_bytes;
    const size_t size = puffer_number_bytes(spec->observation_type);
    const size_t numbers = puffer_row_numbers(spec);
    if (spec->observation_type == PUFFER_UINT8 && spec->observation_bounds == NULL &&
        spec->observation_high == UINT8_MAX)
        return; /* any byte is valid */
    for (size_t i = 0; i < bytes; i += size) {
        float value = (float)*(const uint8_t *)(rows + i);
        int32_t integer = 0;
        memcpy(&integer, rows + i, size);
        if (spec->observation_type == PUFFER_INT8) value = (float)*(const int8_t *)(rows + i);
        if (spec->observation_type == PUFFER_INT32) value = (float)integer;
        if (spec->observation_type == PUFFER_FLOAT32) memcpy(&value, rows + i, sizeof value);
        const PufferBounds bounds = puffer_bounds_of(spec, i / size % numbers);
        if (!(value >= bounds.low && value <= bounds.high)) {
            char what[200];
            snprintf(what, sizeof what, "number %zu of an observation is %g, which is not in [%g, %g]",
                     i / size % numbers, (double)value, (double)bounds.low, (double)bounds.high);
            fail("contract", what);
        }
    }
}

static void check_outcome(const PufferBatch *batch) {
    for (int32_t i = 0; i < batch->num_games * batch->spec.agents; i++) {
        if (!isfinite(batch->rewards[i])) fail("contract", "a reward is not finite");
        if (batch->terminals[i] && batch->truncations[i])
            fail("contract", "an agent has both flags, terminal and truncation");
    }
    check_rows(batch, batch->observations);
    check_rows(batch, batch->final_observations);
}

static void check_report(const PufferBatch *batch) {
    double metrics[PUFFER_MAX_METRICS], episode_return, episode_length;
    int64_t episodes = puffer_batch_report(batch, metrics, &episode_return, &episode_length);
    if (episodes > 0 && !(episode_length >= episodes)) fail("contract", "an episode has no steps");
    for (int32_t i = 0; i < batch->type->num_metrics; i++) {
        if (!isfinite(metrics[i])) fail("contract", "a metric is not finite");
    }
}

/* Draws a game and scales the image to a random size. */
static void draw(const PufferBatch *batch, PufferRng *rng) {
    size_t pixels = (size_t)batch->spec.picture_width * (size_t)batch->spec.picture_height;
    PufferCanvas canvas = {malloc(3 * pixels), batch->spec.picture_width, batch->spec.picture_height,
                           puffer_random_below(rng, batch->spec.agents + 1) - 1};
    const int32_t height = 1 + puffer_random_below(rng, 200), width = 1 + puffer_random_below(rng, 200);
    uint8_t *small = malloc(3 * (size_t)height * (size_t)width);
    char *before = malloc(batch->game_bytes);
    memcpy(before, puffer_game(batch, 0), batch->game_bytes);
    type->draw(puffer_game(batch, 0), &canvas);
    if (memcmp(before, puffer_game(batch, 0), batch->game_bytes) != 0)
        fail("contract", "draw changes the game");
    free(before);
    if (!puffer_scale_once(canvas.pixels, canvas.height, canvas.width, small, height, width)) abort();
    free(small);
    free(canvas.pixels);
}

static void reset(PufferBatch *batch, int32_t first, uint64_t seed) {
    for (int32_t i = 0; i < batch->num_games; i++) puffer_seed_game(batch, i, seed + (uint64_t)(first + i));
    alarm(MAX_STEP_S);
    type->reset(batch, 0, batch->num_games);
}

static void step(PufferBatch *batch) {
    alarm(MAX_STEP_S);
    type->step(batch, 0, batch->num_games);
}

static void make(PufferBatch *batch, int32_t games, PufferAutoreset autoreset, int filling) {
    if (!create(batch, games)) abort(); /* a single game could be created with these parameters */
    batch->autoreset = autoreset;
    bind(batch, filling);
}

static PufferAutoreset pick_autoreset(PufferRng *rng) {
    return (PufferAutoreset)puffer_random_below(rng, 3);
}

static void play_hostile(PufferRng *rng) {
    PufferBatch batch;
    make(&batch, 1 + puffer_random_below(rng, MAX_GAMES), pick_autoreset(rng), 0);
    reset(&batch, 0, puffer_random(rng));
    check_rows(&batch, batch.observations);
    for (step_now = 1; step_now <= STEPS_PER_ROUND; step_now++) {
        choose_actions(&batch, rng);
        step(&batch);
        if (step_now % 5 == 0) check_outcome(&batch);
    }
    draw(&batch, rng);
    check_report(&batch);
    destroy(&batch);
}

/* ---- Phases that compare ------------------------------------------------------------------------------ */

static void compare_bytes(const char *kind, const char *what, const void *one, const void *other,
                          size_t size) {
    char text[200];
    if (memcmp(one, other, size) == 0) return;
    snprintf(text, sizeof text, "%s differ", what);
    fail(kind, text);
}

/* Compares all games of `two` with the games of `one` from game `first` on. */
static void compare(const char *kind, const PufferBatch *one, int32_t first, const PufferBatch *two) {
    const size_t agents = (size_t)two->spec.agents, count = agents * (size_t)two->num_games;
    const size_t bytes = (size_t)two->num_games * two->observation_bytes;
    const size_t row = (size_t)first * two->observation_bytes, agent = (size_t)first * agents;
    compare_bytes(kind, "masks", one->masks + agent, two->masks, count);
    compare_bytes(kind, "terminals", one->terminals + agent, two->terminals, count);
    compare_bytes(kind, "truncations", one->truncations + agent, two->truncations, count);
    compare_bytes(kind, "rewards", one->rewards + agent, two->rewards, count * sizeof(float));
    compare_bytes(kind, "observations", one->observations + row, two->observations, bytes);
    compare_bytes(kind, "final observations", one->final_observations + row, two->final_observations, bytes);
    compare_bytes(kind, "metrics of finished episodes", one->logs + first, two->logs,
                  (size_t)two->num_games * sizeof(PufferLog));
}

/* Copies the actions of the games of `one` from game `first` on to `two`. */
static void copy_actions(const PufferBatch *one, int32_t first, PufferBatch *two) {
    const size_t bytes = 4 * (size_t)puffer_action_count(&two->spec) * (size_t)two->spec.agents;
    memcpy(two->actions, one->actions + (size_t)first * bytes, (size_t)two->num_games * bytes);
}

/* Runs two batches with the same actions for a round, starting with a reset. */
static void play_alike(const char *kind, PufferBatch *one, PufferBatch *two, PufferRng *rng) {
    const uint64_t seed = puffer_random(rng);
    reset(one, 0, seed);
    reset(two, 0, seed);
    compare(kind, one, 0, two);
    for (step_now = 1; step_now <= STEPS_PER_ROUND; step_now++) {
        choose_actions(one, rng);
        copy_actions(one, 0, two);
        step(one);
        step(two);
        compare(kind, one, 0, two);
    }
}

static void play_seed(PufferRng *rng) {
    PufferBatch one, two;
    const PufferAutoreset autoreset = pick_autoreset(rng);
    make(&one, 2, autoreset, 0);
    make(&two, 2, autoreset, 0x55);
    play_alike("seed", &one, &two, rng);
    destroy(&one);
    destroy(&two);
}

static void play_reset(PufferRng *rng) {
    PufferBatch one, two;
    const PufferAutoreset autoreset = pick_autoreset(rng);
    make(&one, 2, autoreset, 0);
    reset(&one, 0, puffer_random(rng));
    for (step_now = 1; step_now <= STEPS_PER_ROUND; step_now++) {
        choose_actions(&one, rng);
        step(&one);
    }
    memset(one.final_observations, 0, 2 * one.observation_bytes);
    step_now = 0;
    make(&two, 2, autoreset, 0);
    play_alike("reset", &one, &two, rng);
    destroy(&one);
    destroy(&two);
}

static void play_batch(PufferRng *rng) {
    PufferBatch all, alone[MAX_GAMES];
    const PufferAutoreset autoreset = pick_autoreset(rng);
    const uint64_t seed = puffer_random(rng);
    make(&all, MAX_GAMES, autoreset, 0);
    reset(&all, 0, seed);
    for (int32_t i = 0; i < MAX_GAMES; i++) {
        make(&alone[i], 1, autoreset, 0);
        reset(&alone[i], i, seed);
        compare("batch", &all, i, &alone[i]);
    }
    for (step_now = 1; step_now <= STEPS_PER_ROUND; step_now++) {
        choose_actions(&all, rng);
        step(&all);
        for (int32_t i = 0; i < MAX_GAMES; i++) {
            copy_actions(&all, i, &alone[i]);
            step(&alone[i]);
            compare("batch", &all, i, &alone[i]);
        }
    }
    for (int32_t i = 0; i < MAX_GAMES; i++) destroy(&alone[i]);
    destroy(&all);
}

/* Loads the states of the games of `one` into `two`, and runs both for some steps. */
static void play_on(PufferBatch *one, PufferBatch *two, PufferAutoreset autoreset, int steps,
                    PufferRng *rng) {
    char *state = malloc(puffer_state_bytes(one));
    make(two, one->num_games, autoreset, 0x55);
    for (int32_t i = 0; i < one->num_games; i++) {
        puffer_save_game(one, i, state);
        puffer_load_game(two, i, state);
    }
    free(state);
    memcpy(two->final_observations, one->final_observations, (size_t)one->num_games * one->observation_bytes);
    memcpy(two->logs, one->logs, (size_t)one->num_games * sizeof(PufferLog)); /* not part of a state */
    compare("state", one, 0, two);
    for (int end = step_now + steps; step_now < end; step_now++) {
        choose_actions(one, rng);
        copy_actions(one, 0, two);
        step(one);
        step(two);
        compare("state", one, 0, two);
    }
}

/* The first batch is freed before the second one continues. */
static void play_state(PufferRng *rng) {
    PufferBatch one, two, three;
    const PufferAutoreset autoreset = pick_autoreset(rng);
    make(&one, 2, autoreset, 0);
    reset(&one, 0, puffer_random(rng));
    for (step_now = 1; step_now <= STEPS_PER_ROUND / 2; step_now++) {
        choose_actions(&one, rng);
        step(&one);
    }
    play_on(&one, &two, autoreset, STEPS_PER_ROUND / 4, rng);
    destroy(&one);
    play_on(&two, &three, autoreset, STEPS_PER_ROUND / 4, rng);
    destroy(&two);
    destroy(&three);
}

/* ---- The program -------------------------------------------------------------------------------------- */

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*play)(PufferRng *rng);
    } phases[] = {
        {"hostile", play_hostile}, {"seed", play_seed},   {"batch", play_batch},
        {"reset", play_reset},     {"state", play_state},
    };
    if (count != 4) return 2;
    PufferRng rng;
    type = puffer_library.type;
    puffer_seed(&rng, (uint64_t)atoll(arguments[3]));
    signal(SIGALRM, on_alarm);
    if (__asan_set_death_callback != NULL) __asan_set_death_callback(print_place);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strcmp(arguments[1], phases[i].name) != 0) continue;
        for (round_now = 1; round_now <= atoi(arguments[2]) / STEPS_PER_ROUND; round_now++) {
            step_now = 0;
            choose_values(&rng);
            phases[i].play(&rng);
        }
        alarm(0);
        return FINISHED;
    }
    return 2;
}
