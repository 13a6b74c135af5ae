/* The contract of a C environment: what its author writes, and the batch loop that runs it.
 *
 * An environment `pong` is a struct and six names:
 *
 *   typedef struct { PufferGame game; parameters ...; metrics and state ... } Pong;
 *   static const char pong_about[]                 one sentence, shown by help and the documentation
 *   static const PufferParameter pong_parameters[] what a user may choose, a row each
 *   static const PufferMetric pong_metrics[]       what a finished episode reports: score, perf, ...
 *   const char *pong_spec(const Pong *, PufferSpec *)     spaces, agents, picture; NULL, or what is wrong
 *   void pong_reset(Pong *)                        begins an episode and writes its first observation
 *   PufferOutcome pong_step(Pong *)                reads actions, writes observations and rewards
 *   void pong_draw(const Pong *, PufferCanvas *)   paints the state, for the agent that the canvas names
 *
 * and PUFFER_ENV(Pong, pong) at the end of pong.c, which turns them into the `PufferEnvType` that Python
 * finds. More may follow, as in PUFFER_ENV(Pong, pong, PUFFER_KEYS(pong_keys), .prepare = pong_prepare):
 *
 *   static const PufferKey pong_keys[]             the keyboard of a person who plays it, in pong/render.h
 *   size_t pong_bytes(const void *game)            the size of a game with these parameters: the struct and
 *                                                  what lies behind it, which is zero at first
 *   bool go_area(const void *, int32_t agent, int32_t action, PufferArea *)
 *                                                  where in the picture for that agent a person clicks
 *                                                  for a Discrete action; false: nowhere now
 *   void pong_prepare(void)                        fills constant tables; called once in a process
 *   PUFFER_NUMPY(Pong, generator)                  a field that draws what numpy draws: puffer_numpy.h
 *
 * Rules. The loop clears rewards and flags before a step and calls reset after an episode, when the mode of
 * the batch says so: a step never resets itself. An observation row keeps its content from step to step, so
 * that a step may write only what changed; a reset writes all of it. Every action value means something:
 * clamp it or take it for "do nothing". All randomness comes from `game.rng`, or the generator of
 * PUFFER_NUMPY, which has the same seed. No globals, no allocation, no output. If a step plays several
 * frames, the parameter that says how many is called `frameskip`, and a game has no pointers into itself: to
 * show the frames in between, copies of it play fewer of them.
 */
#ifndef PUFFER_ENV_H
#define PUFFER_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PUFFER_MAX_DIMS    8
#define PUFFER_MAX_METRICS 8
#define PUFFER_INLINE      static inline __attribute__((always_inline))

/* ---- Numbers ------------------------------------------------------------------------------- */

/* PCG32 (O'Neill 2014, XSH RR 64/32): one generator per game, so that a game's stream depends on its own
 * seed and on nothing else. */
typedef struct {
    uint64_t state;
} PufferRng;

static inline uint32_t puffer_random(PufferRng *rng) {
    uint64_t old = rng->state;
    rng->state = old * 6364136223846793005u + 1442695040888963407u;
    uint32_t word = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (word >> turn) | (word << (-turn & 31));
}

/* Uniform in [0, bound); bound > 0. */
static inline int32_t puffer_random_below(PufferRng *rng, int32_t bound) {
    return (int32_t)(((uint64_t)puffer_random(rng) * (uint32_t)bound) >> 32);
}

static inline void puffer_seed(PufferRng *rng, uint64_t seed) {
    rng->state = seed + 1442695040888963407u;
    puffer_random(rng);
    rng->state += seed;
    puffer_random(rng);
}

static inline float puffer_min(float a, float b) {
    return a < b ? a : b;
}

static inline float puffer_max(float a, float b) {
    return a > b ? a : b;
}

/* The nearest number to `value` in [low, high]; `low` if it is not a number. */
static inline float puffer_clamp(float value, float low, float high) {
    return puffer_min(puffer_max(value, low), high);
}

/* A parameter to six decimals: 9.8 as a float is 9.80000019, and would part from a 9.8 in Python. */
static inline double puffer_decimal(float value) {
    return (double)(int64_t)((double)value * 1e6 + (value < 0 ? -0.5 : 0.5)) / 1e6;
}

/* ---- Declarations: parameters, metrics, spaces ---------------------------------------------------- */

/* A type is its letter in Python's buffer protocol and in numpy. */
typedef enum {
    PUFFER_BOOL = '?',
    PUFFER_INT8 = 'b',
    PUFFER_UINT8 = 'B',
    PUFFER_INT32 = 'i',
    PUFFER_FLOAT32 = 'f',
} PufferType;

/* clang-format off */
#define PUFFER_TYPE_OF(value) _Generic((value), bool: PUFFER_BOOL, int32_t: PUFFER_INT32, float: PUFFER_FLOAT32)
/* clang-format on */

/* A keyword of the environment: a bool, int32_t or float field, its default and the range it may have. */
typedef struct {
    const char *name;
    PufferType type;
    size_t offset;
    double value, low, high;
    const char *about;
} PufferParameter;

#define PUFFER_PARAMETER(Type, field, value, low, high, about) \
    {#field, PUFFER_TYPE_OF(((Type *)0)->field), offsetof(Type, field), (value), (low), (high), about}

/* A float field that is read when an episode ends; the report is its mean over the finished episodes. */
typedef struct {
    const char *name;
    size_t offset;
    const char *about;
} PufferMetric;

#define PUFFER_METRIC(Type, field, about) {#field, offsetof(Type, field), about}

typedef enum {
    PUFFER_DISCRETE,       /* int32_t actions[agents], each in [0, action_sizes[0]) */
    PUFFER_MULTI_DISCRETE, /* int32_t actions[agents][k], the i-th in [0, action_sizes[i]) */
    PUFFER_BOX,            /* float actions[agents][action_sizes[0]], each in [-action_limit, action_limit] */
} PufferActionKind;

/* A key with which a person plays: while it is down, number `component` of the action (0 of a Discrete one)
 * is `value`. Names are "up", "down", "left", "right", "space", "enter", "tab", "backspace", letters and
 * digits; not "q" and "r", which quit and reset. "up+right" is both together. A row with the name "" says
 * what happens while no key is down; without one the game waits for a key. Rows whose value the action space
 * does not have are left out, and all of them where actions are a PUFFER_BOX. */
typedef struct {
    const char *name;
    int32_t component, value;
    const char *about; /* in a few words: "move left" */
} PufferKey;

/* A part of the picture, px. */
typedef struct {
    int32_t x, y, width, height;
} PufferArea;

/* Fields of the struct that point into the game's own memory, behind the struct: a `size_t` table of their
 * offsets. A state has them relative to the game. No field may point anywhere else. */
#define PUFFER_POINTERS(table) .pointers = (table), .num_pointers = sizeof(table) / sizeof(size_t)

#define PUFFER_KEYS(table)     .keys = (table), .num_keys = sizeof(table) / sizeof(PufferKey)

/* The field of the struct that is a PufferGenerator, which every seeding of the game seeds too. */
#define PUFFER_NUMPY(Type, field) .generator = offsetof(Type, field)

/* Elements [offset, offset + size) of an agent's flattened observation; none where size is 0. */
typedef struct {
    int32_t offset, size;
} PufferRange;

/* The least and the greatest value of a number. */
typedef struct {
    float low, high;
} PufferBounds;

/* Spec of an environment, from which Python derives the spaces. Shapes and sizes end with their first zero.
 */
typedef struct {
    PufferType observation_type;
    int32_t observation_shape[PUFFER_MAX_DIMS];
    float observation_low, observation_high;
    const PufferBounds *observation_bounds; /* of each number of a row; NULL: all have the two above */
    PufferActionKind action_kind;
    int32_t action_sizes[PUFFER_MAX_DIMS];
    float action_limit;                    /* of a PUFFER_BOX; 0: 1 */
    PufferRange action_mask;               /* for each value of each action, not 0 where it is legal */
    int32_t agents;                        /* players of one game */
    bool agents_end;                       /* each has episodes of its own: PUFFER_END_AGENT */
    int32_t picture_width, picture_height; /* px */
    float frames_per_second;               /* steps in a second of the game, for those who watch */
} PufferSpec;

/* A picture in the caller's memory: uint8_t pixels[height][width][3], red green blue. */
typedef struct {
    uint8_t *pixels;
    int32_t width, height;
    int32_t agent; /* whom the picture is for: marked, or followed; -1: nobody in particular */
} PufferCanvas;

/* Sums over the episodes that finished since the last report. */
typedef struct {
    float metrics[PUFFER_MAX_METRICS];
    float episode_return, episode_length;
    int32_t episodes;
    int32_t is_partial; /* 1: the running episode began in the middle, and is not counted */
} PufferLog;

/* ---- The head of every environment's struct ------------------------------------------------------- */

typedef struct PufferBatch PufferBatch;

/* 64 bytes: of many small games, a good part of a step is the reading of their memory. */
typedef struct {
    void *observations;  /* this game's rows: [agents][observation_shape] of observation_type */
    const void *actions; /* [agents] int32_t, or as PufferActionKind says */
    float *rewards;      /* [agents], 0 before each step */
    bool *masks;         /* [agents], true at first; a reset writes all of them where players may be absent */
    PufferRng rng;
    const PufferBatch *batch; /* that this is game `index` of; for PUFFER_END_AGENT */
    int32_t index;
    float episode_return;   /* summed over the agents; the loop keeps it and what follows */
    int32_t episode_length; /* steps, this one included */
    int32_t present;        /* agents that were there when the episode began; see puffer_is_first */
} PufferGame;

/* True in a reset that the caller asked for, false in one after an episode's end. The first must clear all
 * that pictures show of the episode before, so that a seed always gives the same pictures. */
static inline bool puffer_is_first(const PufferGame *game) {
    return game->present == 0;
}

/* Outcome of a step. The loop sets the flags of the agents that are there and begins the next episode. */
typedef enum {
    PUFFER_RUNNING,
    PUFFER_TERMINATED, /* the task is over: the next state has the value 0 */
    PUFFER_TRUNCATED,  /* a limit from outside cut it off: the next state keeps its value */
} PufferOutcome;

static inline void puffer_log_episode(PufferLog *log, const void *game, const PufferMetric *metrics,
                                      int32_t num_metrics, float episode_return, float episode_length) {
    if (log->is_partial) {
        log->is_partial = 0;
        return;
    }
    for (int32_t i = 0; i < num_metrics; i++) {
        log->metrics[i] += *(const float *)((const char *)game + metrics[i].offset);
    }
    log->episode_return += episode_return;
    log->episode_length += episode_length;
    log->episodes++;
}

/* Autoreset modes: the steps that follow the end of an episode. */
typedef enum {
    PUFFER_SAME_STEP, /* the row shows the next episode at once, final_observations keeps the last observation
                       */
    PUFFER_NEXT_STEP, /* the next step begins the next episode, whatever its action */
    PUFFER_DISABLED,  /* the game is not stepped until it is reset */
} PufferAutoreset;

/* ---- The batch ---------------------------------------------------------------------------------- */

/* Function table of an environment, made by PUFFER_ENV. Ranges are of games: [begin, end). */
typedef struct {
    const char *name, *class_name, *about;
    size_t size;                       /* of the struct, bytes */
    size_t (*bytes)(const void *game); /* of the struct and what lies behind it; NULL where that is nothing */
    void (*prepare)(void);             /* NULL where there are no tables to fill */
    bool *prepared;                    /* true once that is done */
    const PufferParameter *parameters;
    int32_t num_parameters;
    const PufferMetric *metrics;
    int32_t num_metrics;
    const PufferKey *keys; /* NULL where digits, or what is typed, are actions */
    int32_t num_keys;
    const size_t *pointers; /* NULL where there are none */
    int32_t num_pointers;
    size_t generator; /* 0 where there is none */
    /* NULL where no action has a place */
    bool (*area)(const void *game, int32_t agent, int32_t action, PufferArea *area);
    const char *(*spec)(const void *game, PufferSpec *spec);
    void (*reset)(const PufferBatch *batch, int32_t begin, int32_t end);
    void (*step)(const PufferBatch *batch, int32_t begin, int32_t end);
    void (*draw)(const void *game, PufferCanvas *canvas);
} PufferEnvType;

/* Games of one type, one after another in memory, and the caller's buffers, a row for each agent. */
struct PufferBatch {
    const PufferEnvType *type;
    PufferSpec spec; /* the same for every game */
    PufferAutoreset autoreset;
    int32_t num_games;
    size_t game_bytes, observation_bytes; /* of one game */
    char *games;
    bool *over;      /* [num_games]; episodes that ended and are not followed by another yet */
    PufferLog *logs; /* [num_games]; apart from the games, to keep what a step touches small */
    char *observations, *final_observations;
    char *actions;
    /* The caller's actions of this step, int64 if they are wide; NULL: they are in `actions`. */
    const void *given;
    bool is_wide;
    float *rewards;
    bool *terminals, *truncations, *masks;
    /* For observations that are pictures, else NULL: the caller's rows, while the observations above are the
     * batch's own, and the function that draws the final one of an episode. */
    struct PufferPixels *pixels;
    void (*keep_picture)(const PufferBatch *batch, int32_t index);
};

static inline PufferGame *puffer_game(const PufferBatch *batch, int32_t index) {
    return (PufferGame *)(batch->games + (size_t)index * batch->game_bytes);
}

static inline void puffer_raise_flag(const PufferGame *game, int32_t agent, PufferOutcome outcome) {
    const PufferBatch *batch = game->batch;
    bool *flags = outcome == PUFFER_TERMINATED ? batch->terminals : batch->truncations;
    flags[(size_t)game->index * (size_t)batch->spec.agents + (size_t)agent] = true;
}

static inline void puffer_keep_observation(const PufferGame *game, int32_t agent) {
    const PufferBatch *batch = game->batch;
    const size_t row_bytes = batch->observation_bytes / (size_t)batch->spec.agents;
    const size_t place = (size_t)game->index * batch->observation_bytes + (size_t)agent * row_bytes;
    memcpy(batch->final_observations + place, batch->observations + place, row_bytes);
}

/* For games with spec.agents_end: ends the episode of one agent, whose next one begins in the same step.
 * Raises its flag, keeps its last observation, which its row must still show, and counts the episode, with
 * the metrics as they are in the struct now; `table` is <env>_metrics. The end of such a game counts nothing:
 * end every agent that is there before it. */
#define PUFFER_END_AGENT(env, table, agent, outcome, episode_return, episode_length)                \
    (puffer_raise_flag(&(env)->game, agent, outcome), puffer_keep_observation(&(env)->game, agent), \
     puffer_log_episode(&(env)->game.batch->logs[(env)->game.index], env, table,                    \
                        (int32_t)(sizeof(table) / sizeof *(table)), episode_return, episode_length))

/* Clear the outcome of the last step of games [begin, end). */
static inline void puffer_clear_outcome(const PufferBatch *batch, int32_t begin, int32_t end) {
    size_t first = (size_t)begin * batch->spec.agents;
    size_t count = (size_t)(end - begin) * batch->spec.agents;
    memset(batch->rewards + first, 0, count * sizeof(float));
    memset(batch->terminals + first, 0, count * sizeof(bool));
    memset(batch->truncations + first, 0, count * sizeof(bool));
}

/* Begin an episode. `reset` is a constant where this is inlined, and is inlined in turn. */
PUFFER_INLINE void puffer_begin_episode(PufferGame *game, int32_t agents, void (*reset)(void *game)) {
    game->episode_return = 0;
    game->episode_length = 0;
    reset(game);
    game->present = 0;
    for (int32_t agent = 0; agent < agents; agent++) game->present += game->masks[agent];
}

PUFFER_INLINE void puffer_reset_games(const PufferBatch *batch, int32_t begin, int32_t end,
                                      void (*reset)(void *game)) {
    const size_t agents = (size_t)batch->spec.agents;
    puffer_clear_outcome(batch, begin, end);
    memset(batch->over + begin, false, (size_t)(end - begin) * sizeof(bool));
    memset(batch->logs + begin, 0, (size_t)(end - begin) * sizeof(PufferLog));
    memset(batch->masks + (size_t)begin * agents, true, (size_t)(end - begin) * agents * sizeof(bool));
    for (int32_t i = begin; i < end; i++) {
        PufferGame *game = puffer_game(batch, i);
        game->present = 0;
        puffer_begin_episode(game, (int32_t)agents, reset);
    }
}

/* Raise the flags of the agents that are in game `index`, count its episode and, before the row shows
 * another, keep its last observation. */
static inline void puffer_end_episode(const PufferBatch *batch, int32_t index, PufferOutcome outcome) {
    PufferGame *game = puffer_game(batch, index);
    const int32_t agents = batch->spec.agents;
    const size_t first = (size_t)index * (size_t)agents;
    bool *terminals = batch->terminals + first, *truncations = batch->truncations + first;
    bool *flags = outcome == PUFFER_TERMINATED ? terminals : truncations;
    for (int32_t agent = 0; agent < agents; agent++) {
        const bool ended = terminals[agent] || truncations[agent];
        flags[agent] |= game->masks[agent] && !ended;
    }
    if (!batch->spec.agents_end) {
        puffer_log_episode(&batch->logs[index], game, batch->type->metrics, batch->type->num_metrics,
                           game->episode_return / (float)(game->present > 0 ? game->present : 1),
                           (float)game->episode_length);
    }
    if (batch->autoreset != PUFFER_SAME_STEP) return;
    if (batch->pixels != NULL) {
        batch->keep_picture(batch, index);
        return;
    }
    memcpy(batch->final_observations + (size_t)index * batch->observation_bytes, game->observations,
           batch->observation_bytes);
}

/* A step of a game that is under way. */
PUFFER_INLINE PufferOutcome puffer_play(PufferGame *game, int32_t agents, PufferOutcome (*step)(void *game)) {
    game->episode_length++;
    PufferOutcome outcome = step(game);
    for (int32_t agent = 0; agent < agents; agent++) game->episode_return += game->rewards[agent];
    return outcome;
}

PUFFER_INLINE void puffer_step_range(const PufferBatch *batch, int32_t begin, int32_t end, int32_t agents,
                                     PufferOutcome (*step)(void *game), void (*reset)(void *game)) {
    char *at = batch->games + (size_t)begin * batch->game_bytes;
    for (int32_t i = begin; i < end; i++, at += batch->game_bytes) {
        PufferGame *game = (PufferGame *)at;
        PufferOutcome outcome = puffer_play(game, agents, step);
        if (outcome != PUFFER_RUNNING) {
            puffer_end_episode(batch, i, outcome);
            puffer_begin_episode(game, agents, reset);
        }
    }
}

/* The same where the end of an episode and the beginning of the next are not in one step. */
PUFFER_INLINE void puffer_step_pausing(const PufferBatch *batch, int32_t begin, int32_t end,
                                       PufferOutcome (*step)(void *game), void (*reset)(void *game)) {
    const int32_t agents = batch->spec.agents;
    for (int32_t i = begin; i < end; i++) {
        PufferGame *game = puffer_game(batch, i);
        if (!batch->over[i]) {
            PufferOutcome outcome = puffer_play(game, agents, step);
            batch->over[i] = outcome != PUFFER_RUNNING;
            if (batch->over[i]) puffer_end_episode(batch, i, outcome);
        } else if (batch->autoreset == PUFFER_NEXT_STEP) {
            batch->over[i] = false;
            puffer_begin_episode(game, agents, reset);
        } else {
            memset(game->masks, false, (size_t)agents * sizeof(bool));
        }
    }
}

/* Games of one player, the usual kind, have a loop of their own: a quarter faster for the smallest games. */
PUFFER_INLINE void puffer_step_games(const PufferBatch *batch, int32_t begin, int32_t end,
                                     PufferOutcome (*step)(void *game), void (*reset)(void *game)) {
    puffer_clear_outcome(batch, begin, end);
    if (batch->autoreset != PUFFER_SAME_STEP) {
        puffer_step_pausing(batch, begin, end, step, reset);
    } else if (batch->spec.agents == 1) {
        puffer_step_range(batch, begin, end, 1, step, reset);
    } else {
        puffer_step_range(batch, begin, end, batch->spec.agents, step, reset);
    }
}

/* ---- A game in a library of its own ------------------------------------------------------------------- */

#define PUFFER_LAYOUT_SIZE 6

/* Layout of the structs that a game compiled on its own shares with those who load it. Raise the first number
 * when fields change their meaning or their order; the sizes tell of all other changes. */
#define PUFFER_LAYOUT \
    {1, sizeof(PufferEnvType), sizeof(PufferBatch), sizeof(PufferGame), sizeof(PufferSpec), sizeof(PufferLog)}

/* The one name that such a library exports: `puffer_library`. */
typedef struct {
    uint32_t layout[PUFFER_LAYOUT_SIZE];
    const PufferEnvType *type;
} PufferLibrary;

#ifdef PUFFER_IN_LIBRARY
#define PUFFER_EXPORT(env)                     \
    extern const PufferLibrary puffer_library; \
    const PufferLibrary puffer_library = {PUFFER_LAYOUT, &env##_env};
#else
#define PUFFER_EXPORT(env)
#endif

/* Define `const PufferEnvType <env>_env`. The small functions give the author's typed ones a common form. */
#define PUFFER_ENV(Type, env, ...)                                                                        \
    _Static_assert(offsetof(Type, game) == 0, "PufferGame game must open the struct");                    \
    _Static_assert(sizeof env##_metrics / sizeof(PufferMetric) <= PUFFER_MAX_METRICS, "many metrics");    \
    static const char *env##_any_spec(const void *game, PufferSpec *spec) {                               \
        return env##_spec(game, spec);                                                                    \
    }                                                                                                     \
    static inline void env##_any_reset(void *game) {                                                      \
        env##_reset(game);                                                                                \
    }                                                                                                     \
    static inline PufferOutcome env##_any_step(void *game) {                                              \
        return env##_step(game);                                                                          \
    }                                                                                                     \
    static void env##_any_draw(const void *game, PufferCanvas *canvas) {                                  \
        env##_draw(game, canvas);                                                                         \
    }                                                                                                     \
    static void env##_reset_games(const PufferBatch *batch, int32_t begin, int32_t end) {                 \
        puffer_reset_games(batch, begin, end, env##_any_reset);                                           \
    }                                                                                                     \
    static void env##_step_games(const PufferBatch *batch, int32_t begin, int32_t end) {                  \
        puffer_step_games(batch, begin, end, env##_any_step, env##_any_reset);                            \
    }                                                                                                     \
    static bool env##_is_prepared;                                                                        \
    const PufferEnvType env##_env = {.name = #env,                                                        \
                                     .class_name = #Type,                                                 \
                                     .about = env##_about,                                                \
                                     .size = sizeof(Type),                                                \
                                     .parameters = env##_parameters,                                      \
                                     .num_parameters = sizeof env##_parameters / sizeof(PufferParameter), \
                                     .metrics = env##_metrics,                                            \
                                     .num_metrics = sizeof env##_metrics / sizeof(PufferMetric),          \
                                     .spec = env##_any_spec,                                              \
                                     .reset = env##_reset_games,                                          \
                                     .step = env##_step_games,                                            \
                                     .prepared = &env##_is_prepared,                                      \
                                     .draw = env##_any_draw,                                              \
                                     __VA_ARGS__};                                                        \
    PUFFER_EXPORT(env)

#endif
