/* One game for a web page, and the agent that plays it.
 *
 * Compiled to WebAssembly together with the file of an environment, whose table PUFFER_PAGE_ENV names. If
 * PUFFER_PAGE_AGENT is defined, the files agent.h and agent.c are those of `puffer export --to c`, and the macro
 * is the prefix of their names. Otherwise the agent's actions are random.
 *
 * web/static/game.js calls the exported functions: set parameters, `make`, `reset`, then for each step `act`,
 * changes of `actions`, `step` and `draw`. Memory grows only before `make` returns, because growth detaches the
 * page's views of it. */
#include "puffer_batch.h"

#define PASTE(a, b)      a##b
#define JOIN(a, b)       PASTE(a, b)
#define AGENT(part)      JOIN(PUFFER_PAGE_AGENT, part)
#define PUFFER_WEB(name) __attribute__((export_name(#name)))

#ifdef PUFFER_PAGE_AGENT
#include "agent.h"
static AGENT(_agent) * players;
#endif

extern const PufferEnvType PUFFER_PAGE_ENV;
static const PufferEnvType *const type = &PUFFER_PAGE_ENV;

static PufferValue *values; /* one for each parameter */
static PufferBatch batch;
static PufferRng rng;           /* for random actions */
static uint8_t *picture, *rgba; /* [height][width][3] and [height][width][4] */
static char *saved;             /* state of the game while frames between two steps are drawn */

/* ---- Parameters --------------------------------------------------------------------------------------- */

static PufferValue *value_of(int32_t parameter) {
    if (values == NULL) values = calloc((size_t)type->num_parameters + 1, sizeof *values);
    return &values[parameter];
}

PUFFER_WEB(set_number) void set_number(int32_t parameter, double number) {
    value_of(parameter)->number = number;
}

/* Returns memory for a text parameter, zeroed and as long as the longest text. */
PUFFER_WEB(text_of) char *text_of(int32_t parameter) {
    char *text = calloc((size_t)type->parameters[parameter].high + 1, 1);
    value_of(parameter)->text = text;
    return text;
}

/* ---- Game --------------------------------------------------------------------------------------------- */

/* Makes the game. Returns NULL, or a message that describes what is wrong with the parameters. */
PUFFER_WEB(make) const char *make(int32_t autoreset) {
    const char *problem = puffer_batch_create(&batch, type, 1, value_of(0));
    if (problem != NULL) return problem;
    if (batch.games == NULL) return "there is not enough memory";
    const PufferSpec *spec = &batch.spec;
    const size_t agents = (size_t)spec->agents;
    const size_t pixels = (size_t)spec->picture_width * (size_t)spec->picture_height;
    batch.autoreset = (PufferAutoreset)autoreset;
    batch.observations = calloc(1, batch.observation_bytes);
    batch.final_observations = calloc(1, batch.observation_bytes);
    batch.actions = calloc(agents, 4 * (size_t)puffer_action_count(spec));
    batch.rewards = calloc(agents, sizeof(float));
    batch.terminals = calloc(agents, sizeof(bool));
    batch.truncations = calloc(agents, sizeof(bool));
    batch.masks = calloc(agents, sizeof(bool));
    puffer_batch_bind(&batch);
    picture = calloc(pixels, 3);
    rgba = malloc(pixels * 4);
    memset(rgba, 255, pixels * 4);
    saved = calloc(1, puffer_state_bytes(&batch));
#ifdef PUFFER_PAGE_AGENT
    players = calloc(agents, sizeof *players);
#endif
    return NULL;
}

/* Starts the first episode of a seed. The game is the one of `pufferlib.make(name, num_envs=1, seed=seed)`. */
PUFFER_WEB(reset) void reset(uint64_t seed) {
    puffer_seed_game(&batch, 0, seed);
    puffer_seed(&rng, seed);
    type->reset(&batch, 0, 1);
#ifdef PUFFER_PAGE_AGENT
    for (int32_t i = 0; i < batch.spec.agents; i++) AGENT(_agent_init)(&players[i], seed + (uint64_t)i);
#endif
}

static void choose(int32_t agent, void *actions) {
    const PufferSpec *spec = &batch.spec;
#ifdef PUFFER_PAGE_AGENT
    AGENT(_agent_act)(&players[agent], (void *)(batch.observations + (size_t)agent * puffer_row_bytes(spec)),
                      actions);
#else
    (void)agent;
    for (int32_t i = 0; i < puffer_action_count(spec); i++) {
        if (spec->action_kind == PUFFER_BOX) {
            ((float *)actions)[i] = puffer_action_limit(spec) * ((float)puffer_random(&rng) * 0x1p-31f - 1);
        } else {
            ((int32_t *)actions)[i] = puffer_random_below(&rng, spec->action_sizes[i]);
        }
    }
#endif
}

/* Writes the agent's choice to the actions of all players. Call it once before each step. */
PUFFER_WEB(act) void act(void) {
    const size_t bytes = 4 * (size_t)puffer_action_count(&batch.spec);
    for (int32_t i = 0; i < batch.spec.agents; i++) {
#ifdef PUFFER_PAGE_AGENT
        if (batch.terminals[i] || batch.truncations[i] || !batch.masks[i]) AGENT(_agent_reset)(&players[i]);
#endif
        /* If the episode is over, the next step starts another one and ignores the actions. */
        if (!batch.over[0]) choose(i, batch.actions + (size_t)i * bytes);
    }
}

PUFFER_WEB(step) void step(void) {
    type->step(&batch, 0, 1);
}

/* Writes the number of episodes that ended since the last report, and the sums of their returns, lengths and
 * metrics. */
PUFFER_WEB(report) const double *report(void) {
    static double sums[3 + PUFFER_MAX_METRICS];
    sums[0] = (double)puffer_batch_report(&batch, sums + 3, &sums[1], &sums[2]);
    return sums;
}

/* ---- Images ------------------------------------------------------------------------------------------- */

/* Draws the image for an agent. */
PUFFER_WEB(draw) void draw(int32_t agent) {
    const int32_t width = batch.spec.picture_width, height = batch.spec.picture_height;
    type->draw(puffer_game(&batch, 0), &(PufferCanvas){picture, width, height, agent});
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++) memcpy(rgba + 4 * i, picture + 3 * i, 3);
}

/* Draws the image after the first `frames` frames of a step with the current actions, without making the
 * step. */
PUFFER_WEB(draw_between) void draw_between(int32_t agent, int32_t frames) {
    puffer_save_game(&batch, 0, saved);
    for (int32_t i = 0; i < type->num_parameters; i++) {
        if (strcmp(type->parameters[i].name, "frameskip") == 0) {
            const PufferValue value = {.number = frames};
            puffer_set_parameter((char *)puffer_game(&batch, 0), &type->parameters[i], value);
        }
    }
    type->step(&batch, 0, 1);
    draw(agent);
    puffer_load_game(&batch, 0, saved);
}

/* Returns the rectangle in an agent's image that stands for an action, or NULL. */
PUFFER_WEB(area_of) const PufferArea *area_of(int32_t agent, int32_t action) {
    static PufferArea area;
    if (type->area == NULL) return NULL;
    return type->area(puffer_game(&batch, 0), agent, action, &area) ? &area : NULL;
}

/* ---- Arrays ------------------------------------------------------------------------------------------- */

PUFFER_WEB(observations) char *observations(void) {
    return batch.observations;
}

PUFFER_WEB(actions) char *actions(void) {
    return batch.actions;
}

PUFFER_WEB(rewards) float *rewards(void) {
    return batch.rewards;
}

PUFFER_WEB(terminals) bool *terminals(void) {
    return batch.terminals;
}

PUFFER_WEB(truncations) bool *truncations(void) {
    return batch.truncations;
}

PUFFER_WEB(masks) bool *masks(void) {
    return batch.masks;
}

PUFFER_WEB(over) bool *over(void) {
    return batch.over;
}

PUFFER_WEB(pixels) uint8_t *pixels(void) {
    return rgba;
}
