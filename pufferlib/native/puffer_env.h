/* The interface of a C environment: the code that its author writes, and the batch loop that runs it.
 *
 * An environment `pong` consists of a struct and six names:
 *
 *   typedef struct { PufferGame game; parameters ...; metrics and state ... } Pong;
 *   static const char pong_about[]                 one sentence, shown by help and the documentation
 *   static const PufferParameter pong_parameters[] keyword arguments, one per row
 *   static const PufferMetric pong_metrics[]       metrics of a finished episode: score, perf, ...
 *   const char *pong_spec(const Pong *, PufferSpec *)     spaces, agents, image size; NULL or an error
 *   void pong_reset(Pong *)                        starts an episode and writes its first observation
 *   PufferOutcome pong_step(Pong *)                reads actions, writes observations and rewards
 *   void pong_draw(const Pong *, PufferCanvas *)   draws the state for the agent given by the canvas
 *
 * PUFFER_ENV(Pong, pong) at the end of pong.c turns them into the `PufferEnvType` that Python finds. Optional
 * parts may follow, as in PUFFER_ENV(Pong, pong, PUFFER_KEYS(pong_keys), .prepare = pong_prepare):
 *
 *   static const PufferKey pong_keys[]             keyboard controls for human players, in pong/render.h
 *   size_t pong_bytes(const void *game)            size of a game with these parameters: the struct and extra
 *                                                  memory behind it, which is zeroed initially
 *   bool go_area(const void *, int32_t agent, int32_t action, PufferArea *)
 *                                                  area in the image for that agent that a player clicks
 *                                                  to choose a Discrete action; false if there is none
 *   void pong_prepare(void)                        fills constant tables; called once per process
 *   PUFFER_NUMPY(Pong, generator)                  a field that draws NumPy's random numbers: puffer_numpy.h
 *   PUFFER_INFOS(pong_infos)                       fields that the EnvPool interface returns after each step
 *
 * Rules:
 * - A step never resets itself. The loop calls reset after an episode if the autoreset mode requires it. It
 *   also clears rewards and flags before each step.
 * - An observation row keeps its content between steps. A step may write only the elements that changed. A
 *   reset writes all of them.
 * - Every action value is valid: clamp it, or treat it as "do nothing".
 * - All randomness comes from `game.rng`, or from the generator of PUFFER_NUMPY, which gets the same seed.
 * - No global variables, no allocation, no output.
 * - If a step simulates several frames, the parameter with their number is called `frameskip`, and the game
 *   has no pointers into its own memory. To show intermediate frames, copies of the game simulate fewer
 *   frames. */
#ifndef PUFFER_ENV_H
#define PUFFER_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PUFFER_MAX_DIMS    8
#define PUFFER_MAX_METRICS 8
#define PUFFER_MAX_INFOS   16
#define PUFFER_INLINE      static inline __attribute__((always_inline))

/* ---- Numbers ------------------------------------------------------------------------------- */

/* PCG32 (O'Neill 2014, XSH RR 64/32). Each game has its own generator, so that its random stream depends only
 * on its own seed. */
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

/* Uniform in [0, bound), where bound > 0. */
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

/* Clamps `value` to [low, high]. Returns `low` for NaN. */
static inline float puffer_clamp(float value, float low, float high) {
    return puffer_min(puffer_max(value, low), high);
}

/* Rounds a parameter to six decimals. The float 9.8 is 9.80000019, which would differ from 9.8 in Python. */
static inline double puffer_decimal(float value) {
    return (double)(int64_t)((double)value * 1e6 + (value < 0 ? -0.5 : 0.5)) / 1e6;
}

/* ---- Declarations: parameters, metrics, spaces ---------------------------------------------------- */

/* Each type is named by its character in Python's buffer protocol and in NumPy. */
typedef enum {
    PUFFER_BOOL = '?',
    PUFFER_INT8 = 'b',
    PUFFER_UINT8 = 'B',
    PUFFER_INT32 = 'i',
    PUFFER_FLOAT32 = 'f',
    PUFFER_FLOAT64 = 'd', /* only in PUFFER_LAST_INFOS */
    PUFFER_TEXT = 's',    /* a parameter only */
} PufferType;

/* clang-format off */
#define PUFFER_TYPE_OF(value) \
    _Generic((value), bool: PUFFER_BOOL, int32_t: PUFFER_INT32, float: PUFFER_FLOAT32, char *: PUFFER_TEXT, \
             bool *: PUFFER_BOOL, int32_t *: PUFFER_INT32, float *: PUFFER_FLOAT32)
/* clang-format on */

/* A keyword of the environment: a bool, int32_t or float field, its default and its allowed range. Or a char
 * array for an ASCII text, empty by default, of at most `high` characters, and one element more. */
typedef struct {
    const char *name;
    PufferType type;
    size_t offset;
    double value, low, high;
    const char *about;
} PufferParameter;

/* Value of a parameter. */
typedef union {
    double number;
    const char *text; /* of a PUFFER_TEXT */
} PufferValue;

#define PUFFER_PARAMETER(Type, field, value, low, high, about) \
    {#field, PUFFER_TYPE_OF(((Type *)0)->field), offsetof(Type, field), (value), (low), (high), about}

/* A float field that is read when an episode ends. Reports have its mean over the finished episodes. */
typedef struct {
    const char *name;
    size_t offset;
    const char *about;
} PufferMetric;

/* The last term makes a field of another type a compile error. */
#define PUFFER_METRIC(Type, field, about) \
    {#field, offsetof(Type, field) + 0 * _Generic(((Type *)0)->field, float: 1), about}

/* A bool, int32_t or float field, or an array of them, that the EnvPool interface returns after each reset and
 * step, and its range. */
typedef struct {
    const char *name;
    PufferType type;
    size_t offset, bytes;
    double low, high;
} PufferInfo;

#define PUFFER_INFO(Type, field, low, high) PUFFER_NAMED_INFO(Type, field, #field, low, high)

#define PUFFER_NAMED_INFO(Type, field, name, low, high) \
    {name, PUFFER_TYPE_OF(((Type *)0)->field), offsetof(Type, field), sizeof((Type *)0)->field, (low), (high)}

#define PUFFER_INFOS(table)                                                                                \
    .infos = (table),                                                                                      \
    .num_infos = sizeof(table) / sizeof(PufferInfo) +                                                      \
                 0 * sizeof(struct {                                                                       \
                     _Static_assert(sizeof(table) / sizeof(PufferInfo) <= PUFFER_MAX_INFOS, "many infos"); \
                     char any;                                                                             \
                 })

/* Infos of the last step of an episode, for batches in the place of a Python environment. The fields are read when
 * an episode ends. */
#define PUFFER_LAST_INFO(Type, field, name, type) \
    {name, type, offsetof(Type, field), sizeof((Type *)0)->field, 0, 0}

#define PUFFER_LAST_INFOS(table) .last_infos = (table), .num_last_infos = sizeof(table) / sizeof(PufferInfo)

typedef enum {
    PUFFER_DISCRETE,       /* int32_t actions[agents], each in [0, action_sizes[0]) */
    PUFFER_MULTI_DISCRETE, /* int32_t actions[agents][k], the i-th in [0, action_sizes[i]) */
    PUFFER_BOX,            /* float actions[agents][action_sizes[0]], each in [-action_limit, action_limit] */
} PufferActionKind;

/* A key for human players. While it is pressed, component `component` of the action (0 if Discrete) is
 * `value`. Valid names are "up", "down", "left", "right", "space", "enter", "tab", "backspace", letters and
 * digits, except "q" and "r", which quit and reset. "up+right" means both keys together. A row with the name
 * "" defines the value while no key is pressed. Without such a row, the game waits for a key. Rows whose
 * value is not in the action space are ignored, and so are all rows if actions are a PUFFER_BOX. */
typedef struct {
    const char *name;
    int32_t component, value;
    const char *about; /* a few words, for example "move left" */
} PufferKey;

/* A rectangle in the image, in px. */
typedef struct {
    int32_t x, y, width, height;
} PufferArea;

/* Fields of the struct that point into the game's own memory behind the struct, as a `size_t` table of their
 * offsets. A saved state stores them relative to the game. Other fields must not point anywhere. */
#define PUFFER_POINTERS(table) .pointers = (table), .num_pointers = sizeof(table) / sizeof(size_t)

#define PUFFER_KEYS(table)     .keys = (table), .num_keys = sizeof(table) / sizeof(PufferKey)

/* The PufferGenerator field of the struct. It is seeded together with the game. */
#define PUFFER_NUMPY(Type, field) .generator = offsetof(Type, field)

/* Elements [offset, offset + size) of an agent's flattened observation, none if size is 0. */
typedef struct {
    int32_t offset, size;
} PufferRange;

/* Lowest and highest value of an element. */
typedef struct {
    float low, high;
} PufferBounds;

/* Spec of an environment, from which Python derives the spaces. Shapes and sizes end at their first zero. */
typedef struct {
    PufferType observation_type;
    int32_t observation_shape[PUFFER_MAX_DIMS];
    float observation_low, observation_high;
    const PufferBounds *observation_bounds; /* for each element of a row; NULL: the two bounds above */
    PufferActionKind action_kind;
    int32_t action_sizes[PUFFER_MAX_DIMS];
    float action_limit;                    /* of a PUFFER_BOX; 0 means 1 */
    PufferRange action_mask;               /* one element per value of each action, nonzero if it is legal */
    int32_t agents;                        /* agents in one game */
    bool agents_end;                       /* each agent has its own episodes, see PUFFER_END_AGENT */
    int32_t picture_width, picture_height; /* px */
    float frames_per_second;               /* steps per second when a human watches */
    /* Number of steps after which `step` truncates an episode, or 0. Interfaces of Python's environments then
     * report an episode that terminates in this step as truncated, too. */
    int32_t max_steps;
} PufferSpec;

/* An image in the caller's memory: uint8_t pixels[height][width][3], RGB. */
typedef struct {
    uint8_t *pixels;
    int32_t width, height;
    int32_t agent; /* agent to mark or follow; -1: none */
} PufferCanvas;

/* Sums over the episodes that finished since the last report. */
typedef struct {
    float metrics[PUFFER_MAX_METRICS];
    float episode_return, episode_length;
    int32_t episodes;
    int32_t is_partial; /* 1: the current episode began in the middle and is not counted */
} PufferLog;

/* ---- The head of every environment's struct ------------------------------------------------------- */

typedef struct PufferBatch PufferBatch;

/* 64 bytes, because with many small games much of a step is spent reading their memory. */
typedef struct {
    void *observations;  /* rows of this game: [agents][observation_shape] of observation_type */
    const void *actions; /* [agents] int32_t, or as described by PufferActionKind */
    float *rewards;      /* [agents], set to 0 before each step */
    bool *masks;         /* [agents], initially true; a reset must write all if agents can be absent */
    PufferRng rng;
    const PufferBatch *batch; /* batch that contains this game; used by PUFFER_END_AGENT */
    int32_t index;
    float episode_return;   /* sum over the agents; maintained by the loop, like the next fields */
    int32_t episode_length; /* number of steps, including the current one */
    int32_t present;        /* agents present at the start of the episode, see puffer_is_first */
} PufferGame;

/* Returns true in a reset requested by the caller, and false in a reset after the end of an episode. The
 * former must clear everything that images show of the previous episode, so that a seed always gives the same
 * images. */
static inline bool puffer_is_first(const PufferGame *game) {
    return game->present == 0;
}

/* Outcome of a step. The loop sets the flags of the agents that are present and starts the next episode. */
typedef enum {
    PUFFER_RUNNING,
    PUFFER_TERMINATED, /* the task is over: the next state has value 0 */
    PUFFER_TRUNCATED,  /* an external limit ended the episode: the next state keeps its value */
    /* Terminated in the last step that the episode could have, if spec.max_steps is 0 because the limits of
     * episodes differ. */
    PUFFER_TERMINATED_LAST,
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

/* Autoreset modes: behavior after the end of an episode. */
typedef enum {
    PUFFER_SAME_STEP, /* the row has the next episode's first observation, final_observations the last one */
    PUFFER_NEXT_STEP, /* the next step starts the next episode and ignores its action */
    PUFFER_DISABLED,  /* the game is not stepped until it is reset */
} PufferAutoreset;

/* ---- The batch ---------------------------------------------------------------------------------- */

/* Function table of an environment, created by PUFFER_ENV. Ranges of games are half-open: [begin, end). */
typedef struct {
    const char *name, *class_name, *about;
    size_t size;                       /* size of the struct in bytes */
    size_t (*bytes)(const void *game); /* size including memory behind the struct; NULL if there is none */
    void (*prepare)(void);             /* NULL if there are no tables to fill */
    bool *prepared;                    /* true after `prepare` was called */
    const PufferParameter *parameters;
    int32_t num_parameters;
    const PufferMetric *metrics;
    int32_t num_metrics;
    const PufferKey *keys; /* NULL: actions are chosen by typing numbers */
    int32_t num_keys;
    const size_t *pointers; /* NULL if there are none */
    int32_t num_pointers;
    size_t generator; /* 0 if there is none */
    const PufferInfo *infos;
    int32_t num_infos; /* at most PUFFER_MAX_INFOS */
    const PufferInfo *last_infos;
    int32_t num_last_infos;
    /* NULL if actions have no areas */
    bool (*area)(const void *game, int32_t agent, int32_t action, PufferArea *area);
    const char *(*spec)(const void *game, PufferSpec *spec);
    void (*reset)(const PufferBatch *batch, int32_t begin, int32_t end);
    void (*step)(const PufferBatch *batch, int32_t begin, int32_t end);
    void (*draw)(const void *game, PufferCanvas *canvas);
} PufferEnvType;

/* Games of one type, contiguous in memory, and the caller's buffers, which have a row for each agent. */
struct PufferBatch {
    const PufferEnvType *type;
    PufferSpec spec; /* the same for every game */
    PufferAutoreset autoreset;
    int32_t num_games;
    size_t game_bytes, observation_bytes; /* per game */
    char *games;
    bool *over;      /* [num_games]; episodes that have ended and whose successor has not started yet */
    PufferLog *logs; /* [num_games]; stored apart from the games, to keep the memory of a step small */
    char *observations, *final_observations;
    char *actions;
    /* Caller's actions of this step, int64 if `is_wide`. NULL: they are in `actions`. */
    const void *given;
    bool is_wide;
    float *rewards;
    bool *terminals, *truncations, *masks;
    /* PUFFER_TERMINATED_LAST sets both flags, as Python's environments do. */
    bool joins_flags;
    /* Last infos of the latest finished episode of each game, one after the other. NULL: they are not kept. */
    char *last_infos;
    /* Only for image observations, otherwise NULL: the caller's rows (`observations` above are then the
     * batch's own) and the function that draws the final image of an episode. */
    struct PufferPixels *pixels;
    void (*keep_picture)(const PufferBatch *batch, int32_t index);
};

static inline PufferGame *puffer_game(const PufferBatch *batch, int32_t index) {
    return (PufferGame *)(batch->games + (size_t)index * batch->game_bytes);
}

static inline void puffer_raise_flag(const PufferGame *game, int32_t agent, PufferOutcome outcome) {
    const PufferBatch *batch = game->batch;
    bool *flags = outcome == PUFFER_TRUNCATED ? batch->truncations : batch->terminals;
    flags[(size_t)game->index * (size_t)batch->spec.agents + (size_t)agent] = true;
}

static inline void puffer_keep_observation(const PufferGame *game, int32_t agent) {
    const PufferBatch *batch = game->batch;
    const size_t row_bytes = batch->observation_bytes / (size_t)batch->spec.agents;
    const size_t place = (size_t)game->index * batch->observation_bytes + (size_t)agent * row_bytes;
    memcpy(batch->final_observations + place, batch->observations + place, row_bytes);
}

/* For environments with spec.agents_end: ends the episode of one agent. Its next episode starts in the same
 * step. Sets the agent's flag, stores its last observation, which its row must still contain, and counts the
 * episode with the current metrics of the struct. `table` is <env>_metrics. The end of such a game counts no
 * episode, so end every agent that is present before it. */
#define PUFFER_END_AGENT(env, table, agent, outcome, episode_return, episode_length)                \
    (puffer_raise_flag(&(env)->game, agent, outcome), puffer_keep_observation(&(env)->game, agent), \
     puffer_log_episode(&(env)->game.batch->logs[(env)->game.index], env, table,                    \
                        (int32_t)(sizeof(table) / sizeof *(table)), episode_return, episode_length))

/* Clears the outcome of the last step of games [begin, end). */
static inline void puffer_clear_outcome(const PufferBatch *batch, int32_t begin, int32_t end) {
    size_t first = (size_t)begin * batch->spec.agents;
    size_t count = (size_t)(end - begin) * batch->spec.agents;
    memset(batch->rewards + first, 0, count * sizeof(float));
    memset(batch->terminals + first, 0, count * sizeof(bool));
    memset(batch->truncations + first, 0, count * sizeof(bool));
}

/* Starts an episode. This function is inlined with a constant `reset`, which is then inlined too. */
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

/* Size in bytes of the last infos of one game. */
static inline size_t puffer_last_info_bytes(const PufferEnvType *type) {
    size_t bytes = 0;
    for (int32_t i = 0; i < type->num_last_infos; i++) bytes += type->last_infos[i].bytes;
    return bytes;
}

/* Stores the last infos of game `index` before its next episode begins. Not inlined, because few batches need it. */
static __attribute__((noinline, unused)) void puffer_keep_last_infos(const PufferBatch *batch,
                                                                     int32_t index) {
    const PufferEnvType *type = batch->type;
    char *to = batch->last_infos + (size_t)index * puffer_last_info_bytes(type);
    for (int32_t i = 0; i < type->num_last_infos; to += type->last_infos[i++].bytes) {
        memcpy(to, (const char *)puffer_game(batch, index) + type->last_infos[i].offset,
               type->last_infos[i].bytes);
    }
}

/* Sets the flags of the agents in game `index`, counts its episode, and stores its last observation before
 * the row is overwritten. */
static inline void puffer_end_episode(const PufferBatch *batch, int32_t index, PufferOutcome outcome) {
    PufferGame *game = puffer_game(batch, index);
    const int32_t agents = batch->spec.agents;
    const size_t first = (size_t)index * (size_t)agents;
    bool *terminals = batch->terminals + first, *truncations = batch->truncations + first;
    bool *flags = outcome == PUFFER_TRUNCATED ? truncations : terminals;
    for (int32_t agent = 0; agent < agents; agent++) {
        const bool ended = terminals[agent] || truncations[agent];
        flags[agent] |= game->masks[agent] && !ended;
        if (outcome == PUFFER_TERMINATED_LAST && batch->joins_flags) truncations[agent] |= terminals[agent];
    }
    if (!batch->spec.agents_end) {
        puffer_log_episode(&batch->logs[index], game, batch->type->metrics, batch->type->num_metrics,
                           game->episode_return / (float)(game->present > 0 ? game->present : 1),
                           (float)game->episode_length);
    }
    if (batch->last_infos != NULL) puffer_keep_last_infos(batch, index);
    if (batch->autoreset != PUFFER_SAME_STEP) return;
    if (batch->pixels != NULL) {
        batch->keep_picture(batch, index);
        return;
    }
    memcpy(batch->final_observations + (size_t)index * batch->observation_bytes, game->observations,
           batch->observation_bytes);
}

/* Steps a game whose episode is running. */
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

/* Like puffer_step_games, for modes that do not start the next episode in the step that ends one. */
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

/* Games of one agent, the most common kind, have their own loop, which is a quarter faster for the smallest
 * games. */
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

/* ---- A game in a separate library --------------------------------------------------------------------- */

#define PUFFER_LAYOUT_SIZE 6

/* Layout of the structs that a separately compiled environment shares with its loader. Increment the first
 * number when fields change their meaning or order. The sizes detect all other changes. */
#define PUFFER_LAYOUT \
    {1, sizeof(PufferEnvType), sizeof(PufferBatch), sizeof(PufferGame), sizeof(PufferSpec), sizeof(PufferLog)}

/* The only symbol that such a library exports: `puffer_library`. */
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

/* Defines `const PufferEnvType <env>_env`. The small functions wrap the author's typed functions. */
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
