/* A pool of games. Each game is sent an action or a reset, and finished games are returned in batches. The
 * owner sends and receives from one thread at a time, while helper threads step the games.
 *
 * A game writes to its own rows, because a step may write only what has changed. These rows are copied to the
 * buffers of the batch. The pool counts the steps of an episode, ends it at the limit, and starts the next
 * one. */
#ifndef PUFFER_ENVPOOL_H
#define PUFFER_ENVPOOL_H

#include "puffer_batch.h"
#include "puffer_queue.h"
#include "puffer_task.h"

enum {
    PUFFER_BLOCK = 64,           /* games that are stepped and copied together while they are in the cache */
    PUFFER_CLAIM = 256,          /* maximum number of games that the owner claims; helpers: a quarter */
    PUFFER_SLICE_NS = 100000000, /* longest wait of the owner before it checks for signals */
};

/* Columns of a batch. Columns from PLAYER_TERMINATED on exist only if games have several players. */
enum {
    PUFFER_OBSERVATION,
    PUFFER_REWARD,
    PUFFER_GAME_TERMINATED,
    PUFFER_GAME_TRUNCATED,
    PUFFER_ENV_ID,
    PUFFER_PLAYER_ENV_ID,
    PUFFER_ELAPSED_STEP,
    PUFFER_FINAL_OBSERVATION,  /* with PUFFER_SAME_STEP */
    PUFFER_FINAL_ELAPSED_STEP, /* with PUFFER_SAME_STEP */
    PUFFER_PLAYER_TERMINATED,
    PUFFER_PLAYER_TRUNCATED,
    PUFFER_PLAYER_MASK,
    PUFFER_COLUMNS, /* then the infos and the fields of observations, each also of finished episodes */
    PUFFER_MAX_FIELDS = 8,
    PUFFER_MAX_COLUMNS = PUFFER_COLUMNS + 2 * PUFFER_MAX_INFOS + 2 * PUFFER_MAX_FIELDS,
};

/* One column: rows of one kind. */
typedef struct PufferColumn {
    char *home;    /* rows of all games; NULL: the pool does not have this column */
    char *batch;   /* destination of the batch's rows; NULL: they are not copied */
    size_t bytes;  /* per game */
    size_t stride; /* from row to row of `home`; more than `bytes` for a field of observations */
} PufferColumn;

/* A game is owned by the caller, was sent, or has finished and can be received. */
typedef enum { PUFFER_IDLE, PUFFER_SENT, PUFFER_READY } PufferStage;

typedef struct PufferEnvPool {
    PufferBatch batch;
    PufferQueue queue;
    PufferColumn columns[PUFFER_MAX_COLUMNS];
    int32_t num_columns;
    PufferAutoreset autoreset;
    int32_t max_steps;            /* of an episode; 0: no limit */
    int32_t *elapsed;             /* [games] */
    int32_t *final_elapsed;       /* [games], with PUFFER_SAME_STEP: length of the last finished episode */
    bool *terminated, *truncated; /* [games]; the batch's own flags if games have one player */
    uint8_t *stage;               /* [games] PufferStage */
    int32_t *ready;               /* [games] ring buffer */
    int32_t next_ready, num_ready, num_in_flight;
    bool is_held;          /* all games are in flight, and none has been pushed yet */
    bool begins;           /* the last sent operations were resets */
    double begin_ns;       /* duration of a reset; 0: unknown */
    float *kept_rewards;   /* [games][agents], with PUFFER_SAME_STEP: from the step that ended an episode, */
    bool *kept_flags;      /* [2][games][agents], same; kept while the next episode starts */
    _Atomic int32_t piece; /* number of games that a helper claims */
    PufferTask task;       /* a step of all games */
    PufferBackground background;
    const PufferHelpers *helpers;
    PufferWaitPolicy policy;
} PufferEnvPool;

/* ---- Stepping ------------------------------------------------------------------------------------ */

static inline bool puffer_any(const bool *flags, int32_t count) {
    bool any = false;
    for (int32_t i = 0; i < count; i++) any |= flags[i];
    return any;
}

/* Derives the flags of a game with several players from theirs, or theirs from the step limit. A player that ends alone
 * in the step of the limit terminates no game. */
static inline void puffer_join_flags(PufferEnvPool *pool, int32_t index, bool is_cut) {
    const int32_t agents = pool->batch.spec.agents;
    const size_t first = (size_t)index * (size_t)agents;
    bool *terminals = pool->batch.terminals + first, *truncations = pool->batch.truncations + first;
    const bool has_ended = pool->batch.over[index]; /* by itself */
    for (int32_t i = 0; is_cut && i < agents; i++) truncations[i] |= pool->batch.masks[first + (size_t)i];
    pool->truncated[index] = is_cut || (has_ended && puffer_any(truncations, agents));
    pool->terminated[index] = has_ended && (puffer_any(terminals, agents) || !pool->truncated[index]);
}

/* Writes the infos of games [begin, end) to their rows. */
static inline void puffer_write_infos(const PufferEnvPool *pool, int32_t begin, int32_t end) {
    for (int32_t i = 0; i < pool->batch.type->num_infos; i++) {
        const PufferColumn *column = &pool->columns[PUFFER_COLUMNS + i];
        const size_t offset = pool->batch.type->infos[i].offset;
        for (int32_t game = begin; game < end; game++) {
            memcpy(column->home + (size_t)game * column->bytes,
                   (const char *)puffer_game(&pool->batch, game) + offset, column->bytes);
        }
    }
}

/* Copies the infos of game `index` to the rows for finished episodes. */
static inline void puffer_keep_infos(const PufferEnvPool *pool, int32_t index) {
    const int32_t count = pool->batch.type->num_infos;
    const PufferColumn *columns = pool->columns + PUFFER_COLUMNS;
    for (int32_t i = 0; i < count; i++) {
        const size_t place = (size_t)index * columns[i].bytes;
        memcpy(columns[count + i].home + place, columns[i].home + place, columns[i].bytes);
    }
}

/* Starts the next episode of game `index`. Its rows keep the result of the last episode, except for the
 * observation and the infos. */
static inline void puffer_begin_next(PufferEnvPool *pool, int32_t index) {
    PufferBatch *batch = &pool->batch;
    const size_t agents = (size_t)batch->spec.agents, first = (size_t)index * agents;
    const size_t place = (size_t)index * batch->observation_bytes;
    bool *kept_truncations = pool->kept_flags + (size_t)batch->num_games * agents;
    if (batch->spec.agents_end) { /* PUFFER_END_AGENT has kept those of agents that ended */
        const size_t bytes = batch->observation_bytes / agents;
        for (size_t i = 0; i < agents; i++) {
            if (batch->terminals[first + i]) continue;
            memcpy(batch->final_observations + place + i * bytes, batch->observations + place + i * bytes,
                   bytes);
        }
    } else {
        memcpy(batch->final_observations + place, batch->observations + place, batch->observation_bytes);
    }
    memcpy(pool->kept_rewards + first, batch->rewards + first, agents * sizeof(float));
    memcpy(pool->kept_flags + first, batch->terminals + first, agents);
    memcpy(kept_truncations + first, batch->truncations + first, agents);
    puffer_keep_infos(pool, index);
    batch->type->step(batch, index, index + 1);
    puffer_write_infos(pool, index, index + 1);
    memcpy(batch->rewards + first, pool->kept_rewards + first, agents * sizeof(float));
    memcpy(batch->terminals + first, pool->kept_flags + first, agents);
    memcpy(batch->truncations + first, kept_truncations + first, agents);
    pool->final_elapsed[index] = pool->elapsed[index];
    pool->elapsed[index] = 0;
}

/* Steps games [begin, end), at most PUFFER_BLOCK. Games whose episode is over start the next one instead. */
static inline void puffer_step_block(PufferEnvPool *pool, int32_t begin, int32_t end) {
    PufferBatch *batch = &pool->batch;
    const int32_t count = end - begin, limit = pool->max_steps > 0 ? pool->max_steps : INT32_MAX;
    int32_t *elapsed = pool->elapsed + begin;
    bool *over = batch->over + begin, *truncated = pool->truncated + begin, cut[PUFFER_BLOCK];
    for (int32_t i = 0; i < count; i++) elapsed[i] = over[i] ? 0 : elapsed[i] + 1;
    batch->type->step(batch, begin, end);
    for (int32_t i = 0; i < count; i++) cut[i] = elapsed[i] >= limit;
    if (batch->spec.agents == 1) {
        for (int32_t i = 0; i < count; i++) truncated[i] |= cut[i];
    } else {
        for (int32_t i = 0; i < count; i++) puffer_join_flags(pool, begin + i, cut[i]);
    }
    for (int32_t i = 0; i < count; i++) over[i] |= cut[i];
    puffer_write_infos(pool, begin, end);
    if (pool->autoreset != PUFFER_SAME_STEP) return;
    for (int32_t i = 0; i < count; i++) {
        if (over[i]) puffer_begin_next(pool, begin + i);
    }
}

/* Copies the rows of games [begin, end) to rows of the batch, starting at `row`. */
static inline void puffer_copy_rows(const PufferEnvPool *pool, int32_t begin, int32_t end, int32_t row) {
    for (int32_t i = 0; i < pool->num_columns; i++) {
        const PufferColumn *column = &pool->columns[i];
        if (column->batch == NULL) continue;
        char *to = column->batch + (size_t)row * column->bytes;
        const char *from = column->home + (size_t)begin * column->stride;
        if (column->stride == column->bytes) {
            memcpy(to, from, (size_t)(end - begin) * column->bytes);
            continue;
        }
        for (int32_t game = begin; game < end; game++, to += column->bytes, from += column->stride)
            memcpy(to, from, column->bytes);
    }
}

/* Steps games [begin, end) if their rows in the batch are the pool's own. Work function of a task. */
static inline void puffer_step_all(void *context, int32_t begin, int32_t end) {
    for (int32_t at = begin; at < end; at += PUFFER_BLOCK) {
        const int32_t after = at + PUFFER_BLOCK < end ? at + PUFFER_BLOCK : end;
        puffer_step_block(context, at, after);
        puffer_copy_rows(context, at, after, at);
    }
}

/* Returns the end of the run of consecutive game numbers that starts at `from`, at most `most` long. */
static inline int32_t puffer_run_end(const int32_t *games, int32_t from, int32_t count, int32_t most) {
    int32_t end = from + 1;
    const int32_t last = count - from < most ? count : from + most;
    while (end < last && games[end] == games[end - 1] + 1) end++;
    return end;
}

static inline void puffer_step_some(PufferEnvPool *pool, const int32_t *games, int32_t count) {
    for (int32_t from = 0, end; from < count; from = end) {
        end = puffer_run_end(games, from, count, PUFFER_BLOCK);
        puffer_step_block(pool, games[from], games[end - 1] + 1);
    }
}

/* ---- Sending and receiving ------------------------------------------------------------------------ */

/* Processes a piece of the queue. Called by helpers. */
static inline bool puffer_play_piece(void *context) {
    PufferEnvPool *pool = context;
    int32_t games[PUFFER_CLAIM / 4];
    int32_t piece = atomic_load_explicit(&pool->piece, memory_order_relaxed);
    int32_t count = puffer_queue_claim(&pool->queue, games, piece);
    puffer_step_some(pool, games, count);
    if (count > 0) puffer_queue_finish(&pool->queue, games, count);
    return count > 0;
}

static inline bool puffer_has_piece(void *context) {
    return puffer_queue_waiting(&((PufferEnvPool *)context)->queue) > 0;
}

/* Expected duration of one of the last sent operations in ns; 0: unknown. */
static inline double puffer_expected_ns(const PufferEnvPool *pool) {
    return pool->begins ? pool->begin_ns : pool->task.item_ns;
}

/* Calls helpers if the waiting work justifies it. */
static inline void puffer_call_helpers(PufferEnvPool *pool) {
    const double each_ns = puffer_expected_ns(pool);
    if (pool->task.threads == 1 || each_ns == 0) return;
    const int32_t waiting = puffer_queue_waiting(&pool->queue), shared = waiting / (4 * pool->task.threads);
    const double at_once = PUFFER_CHUNK_NS / each_ns;
    int32_t piece = shared < PUFFER_CLAIM / 4 ? shared : PUFFER_CLAIM / 4;
    if (at_once < piece) piece = (int32_t)at_once;
    atomic_store_explicit(&pool->piece, piece > 0 ? piece : 1, memory_order_relaxed);
    pool->helpers->call(&pool->background, each_ns * waiting);
}

/* Steps some games and updates the estimated duration of a step. Resets do not count for it. */
static inline void puffer_play_timed(PufferEnvPool *pool, const int32_t *games, int32_t count) {
    bool begins = false;
    for (int32_t i = 0; i < count; i++) begins |= pool->batch.over[games[i]];
    const int64_t start = puffer_now_ns();
    puffer_step_some(pool, games, count);
    const int64_t ns = puffer_now_ns() - start;
    if (begins) {
        const double seen = (double)(ns > 0 ? ns : 1) / count;
        pool->begin_ns = pool->begin_ns == 0 ? seen : (pool->begin_ns + seen) / 2;
    } else {
        puffer_learn(&pool->task, ns, count);
    }
}

/* Steps up to `most` waiting games. Returns their number. */
static inline int32_t puffer_play_some(PufferEnvPool *pool, int32_t most) {
    int32_t games[PUFFER_CLAIM];
    const double each_ns = puffer_expected_ns(pool), at_once = each_ns > 0 ? PUFFER_CHUNK_NS / each_ns : 1;
    if (most > PUFFER_CLAIM) most = PUFFER_CLAIM;
    if (at_once < most) most = at_once > 1 ? (int32_t)at_once : 1;
    const int32_t count = puffer_queue_claim(&pool->queue, games, most);
    if (count == 0) return 0;
    if (each_ns == 0 || pool->task.calls++ % 16 == 0) {
        puffer_play_timed(pool, games, count);
    } else {
        puffer_step_some(pool, games, count);
    }
    puffer_queue_finish(&pool->queue, games, count);
    if (each_ns == 0) puffer_call_helpers(pool);
    return count;
}

/* Pushes the operations that were held back. */
static inline void puffer_release_held(PufferEnvPool *pool) {
    if (!pool->is_held) return;
    pool->is_held = false;
    puffer_queue_push(&pool->queue, NULL, pool->batch.num_games);
}

/* Collects finished games until `wanted` games are ready. */
static inline bool puffer_collect(PufferEnvPool *pool, int32_t wanted) {
    const int32_t size = pool->batch.num_games;
    int32_t place = pool->next_ready + pool->num_ready;
    if (place >= size) place -= size;
    while (pool->num_ready < wanted) {
        const int32_t game = puffer_queue_take(&pool->queue);
        if (game < 0) return false;
        pool->stage[game] = PUFFER_READY;
        pool->ready[place] = game;
        pool->num_ready++;
        if (++place == size) place = 0;
    }
    return true;
}

/* Steps games and waits until `wanted` games are ready. Returns false if it is time to check for signals. No
 * work is lost in this case. */
static inline bool puffer_await(PufferEnvPool *pool, int32_t wanted) {
    int64_t start = 0;
    puffer_release_held(pool);
    for (;;) {
        const uint32_t seen = puffer_signal_read(&pool->queue.changed);
        if (puffer_collect(pool, wanted)) return true;
        if (puffer_play_some(pool, wanted - pool->num_ready) == 0) {
            PufferWait outcome =
                puffer_signal_wait(&pool->queue.changed, seen, &pool->policy, PUFFER_SLICE_NS);
            if (outcome != PUFFER_CHANGED) return false;
        } else if (puffer_collect(pool, wanted)) {
            return true;
        }
        const int64_t now = puffer_now_ns();
        if (start == 0) start = now;
        if (now - start > PUFFER_SLICE_NS) return false;
    }
}

/* Copies the rows of `count` games to the batch, in this order. */
static inline void puffer_gather(const PufferEnvPool *pool, const int32_t *games, int32_t count) {
    for (int32_t from = 0, end; from < count; from = end) {
        end = puffer_run_end(games, from, count, count);
        puffer_copy_rows(pool, games[from], games[end - 1] + 1, from);
    }
}

/* Removes the first `count` ready games from the ring buffer. */
static inline void puffer_take_ready(PufferEnvPool *pool, int32_t *games, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        games[i] = pool->ready[pool->next_ready];
        pool->stage[games[i]] = PUFFER_IDLE;
        if (++pool->next_ready == pool->batch.num_games) pool->next_ready = 0;
    }
    pool->num_ready -= count;
    pool->num_in_flight -= count;
}

/* Makes game `index` start a new episode with its next step, as after a reset. */
static inline void puffer_ask_reset(PufferEnvPool *pool, int32_t index) {
    pool->batch.over[index] = true;
    puffer_game(&pool->batch, index)->present = 0;
}

/* Returns true if the next step of game `index` starts an episode. */
static inline bool puffer_is_over(const PufferEnvPool *pool, int32_t index) {
    return pool->batch.over[index];
}

/* Returns false if game `index` was never stepped. */
static inline bool puffer_has_begun(const PufferEnvPool *pool, int32_t index) {
    return !pool->batch.over[index] || puffer_game(&pool->batch, index)->present > 0;
}

/* ---- Actions ------------------------------------------------------------------------------------- */

/* Number types of callers' arrays, named as in NumPy. */
#define PUFFER_COPY_INTEGERS(name, Number, Unsigned)                                              \
    static inline bool name(int32_t *to, const void *given, int64_t count, const int32_t *bounds, \
                            int32_t width) {                                                      \
        const Number *from = given;                                                               \
        Unsigned bad = 0;                                                                         \
        for (int64_t i = 0; width == 1 && i < count; i++) {                                       \
            to[i] = (int32_t)from[i];                                                             \
            bad |= (Unsigned)from[i] >= (Unsigned)bounds[0];                                      \
        }                                                                                         \
        for (int64_t i = 0; width > 1 && i < count; i++) {                                        \
            to[i] = (int32_t)from[i];                                                             \
            bad |= (Unsigned)from[i] >= (Unsigned)bounds[i % width];                              \
        }                                                                                         \
        return bad == 0;                                                                          \
    }

/* Copies integers that are stored as floats. */
#define PUFFER_COPY_REALS(name, Number)                                                           \
    static inline bool name(int32_t *to, const void *given, int64_t count, const int32_t *bounds, \
                            int32_t width) {                                                      \
        const Number *from = given;                                                               \
        int32_t bad = 0;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                     \
            const Number number = from[i];                                                        \
            const bool fits = number >= 0 && number < (Number)bounds[width == 1 ? 0 : i % width]; \
            const int32_t whole = fits ? (int32_t)number : -1;                                    \
            to[i] = whole;                                                                        \
            bad |= !fits || (Number)whole != number;                                              \
        }                                                                                         \
        return bad == 0;                                                                          \
    }

PUFFER_COPY_INTEGERS(puffer_copy_int32, int32_t, uint32_t)
PUFFER_COPY_INTEGERS(puffer_copy_int64, int64_t, uint64_t)
PUFFER_COPY_REALS(puffer_copy_whole_float32, float)
PUFFER_COPY_REALS(puffer_copy_whole_float64, double)

/* Returns true if all numbers are finite. Other numbers become NaN, which a sum preserves. */
static inline bool puffer_copy_float32(float *to, const float *from, int64_t count) {
    int32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i];
        bad |= from[i] - from[i] != 0;
    }
    return bad == 0;
}

static inline bool puffer_copy_float64(float *to, const double *from, int64_t count) {
    int32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)from[i];
        bad |= to[i] - to[i] != 0;
    }
    return bad == 0;
}

/* Copies `count` numbers of type `letter` (i, l, f or d) to the actions `to`. Returns false if a number of a
 * PUFFER_BOX is not finite, or another one is not an integer or out of range. */
static inline bool puffer_copy_actions(const PufferSpec *spec, void *to, const void *from, char letter,
                                       int64_t count) {
    const int32_t width = spec->action_kind == PUFFER_BOX ? 0 : puffer_action_count(spec);
    if (width == 0)
        return letter == 'f' ? puffer_copy_float32(to, from, count) : puffer_copy_float64(to, from, count);
    switch (letter) {
        case 'i':
            return puffer_copy_int32(to, from, count, spec->action_sizes, width);
        case 'l':
            return puffer_copy_int64(to, from, count, spec->action_sizes, width);
        case 'f':
            return puffer_copy_whole_float32(to, from, count, spec->action_sizes, width);
        default:
            return puffer_copy_whole_float64(to, from, count, spec->action_sizes, width);
    }
}

/* ---- Life ---------------------------------------------------------------------------------------- */

/* Returns an empty pool, or NULL if there is no memory. */
static inline PufferEnvPool *puffer_envpool_new(void) {
    PufferEnvPool *pool = aligned_alloc(_Alignof(PufferEnvPool), sizeof *pool);
    if (pool != NULL) memset(pool, 0, sizeof *pool);
    return pool;
}

/* Waits for pieces in progress and frees the pool. `pool` may be NULL. */
static inline void puffer_envpool_free(PufferEnvPool *pool) {
    if (pool == NULL) return;
    if (pool->helpers != NULL && pool->background.work != NULL) pool->helpers->remove(&pool->background);
    puffer_batch_destroy(&pool->batch);
    puffer_queue_destroy(&pool->queue);
    free(pool->batch.actions);
    free(pool->stage);
    free(pool->ready);
    free(pool->kept_rewards);
    free(pool->kept_flags);
    free(pool);
}

/* Allocates the internal arrays, after the batch was created and before it is bound. Returns false if there
 * is no memory. */
static inline bool puffer_envpool_allocate(PufferEnvPool *pool) {
    const size_t games = (size_t)pool->batch.num_games, players = games * (size_t)pool->batch.spec.agents;
    pool->batch.actions = calloc(players * (size_t)puffer_action_count(&pool->batch.spec), 4);
    pool->stage = calloc(games, sizeof *pool->stage);
    pool->ready = calloc(games, sizeof *pool->ready);
    pool->kept_rewards = calloc(players, sizeof *pool->kept_rewards);
    pool->kept_flags = calloc(2 * players, sizeof *pool->kept_flags);
    return puffer_queue_create(&pool->queue, pool->batch.num_games) && pool->batch.actions != NULL &&
           pool->stage != NULL && pool->ready != NULL && pool->kept_rewards != NULL &&
           pool->kept_flags != NULL;
}

/* Starts the pool with up to `threads` threads, after everything else was set. Returns 0, or the errno if a
 * helper could not be started. */
static inline int puffer_envpool_open(PufferEnvPool *pool, const PufferHelpers *helpers, int32_t threads,
                                      int32_t helper_ns, int32_t affinity) {
    pool->helpers = helpers;
    pool->piece = 1;
    pool->policy = puffer_wait_policy(true);
    pool->batch.autoreset = PUFFER_NEXT_STEP; /* the pool implements the other modes */
    pool->task = (PufferTask){.work = puffer_step_all,
                              .context = pool,
                              .num_items = pool->batch.num_games,
                              .threads = threads,
                              .helper_ns = helper_ns,
                              .affinity = affinity};
    puffer_batch_bind(&pool->batch);
    for (int32_t i = 0; i < pool->batch.num_games; i++) puffer_ask_reset(pool, i);
    if (threads == 1) return 0;
    const int error = helpers->prepare(threads);
    if (error != 0) return error;
    pool->background = (PufferBackground){.work = puffer_play_piece,
                                          .has_work = puffer_has_piece,
                                          .context = pool,
                                          .threads = threads,
                                          .helper_ns = helper_ns,
                                          .affinity = affinity};
    helpers->add(&pool->background);
    return 0;
}

#endif
