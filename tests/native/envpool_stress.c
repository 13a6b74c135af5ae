/* Pools of games under threads: several owners, each with a pool of its own and random sizes, send and
 * receive at random, whole and in parts, resets among them, with more threads than there are cores, while
 * other owners fork, close and open. Each game counts what was done to it and writes it to its observation,
 * so that a lost, doubled or misplaced step shows. Built with the thread sanitizer, and with those for
 * addresses and undefined behaviour, which stop at the first fault.
 *
 * Usage: envpool_stress ROUNDS SEED */
#include <stdio.h>
#include <sys/wait.h>

#include "puffer_envpool.h"
#include "puffer_pool.h"

enum { OWNERS = 3, MAX_GAMES = 40, MAX_THREADS = 6, MAX_LIMIT = 9, PLAYERS = 2 };

/* ---- A game that only counts ---------------------------------------------------------------------- */

typedef struct {
    PufferGame game;
    float players, score;
    int32_t steps, episodes;
} Tally;

static const char tally_about[] = "Count steps and episodes.";
static const PufferParameter tally_parameters[] = {
    PUFFER_PARAMETER(Tally, players, 1, 1, PLAYERS, "players"),
};
static const PufferMetric tally_metrics[] = {PUFFER_METRIC(Tally, score, "steps")};

static const char *tally_spec(const Tally *env, PufferSpec *spec) {
    *spec = (PufferSpec){.observation_type = PUFFER_FLOAT32,
                         .observation_shape = {2},
                         .observation_high = 1e6f,
                         .action_sizes = {5},
                         .agents = (int32_t)env->players,
                         .picture_width = 1,
                         .picture_height = 1,
                         .frames_per_second = 1};
    return NULL;
}

static void tally_show(Tally *env, float action) {
    float (*rows)[2] = env->game.observations;
    for (int i = 0; i < (int)env->players; i++) {
        rows[i][0] = (float)env->steps;
        rows[i][1] = action;
    }
}

static void tally_reset(Tally *env) {
    env->steps = 0;
    env->episodes++;
    tally_show(env, -1);
}

/* An episode ends by itself after 5 steps with action 4. Some steps take so long that others overtake them.
 */
static PufferOutcome tally_step(Tally *env) {
    const int32_t *actions = env->game.actions;
    if (actions[0] == 3)
        nanosleep(&(struct timespec){0, 1 + (long)(puffer_random(&env->game.rng) % 50000)}, NULL);
    env->steps++;
    for (int i = 0; i < (int)env->players; i++) env->game.rewards[i] = (float)actions[i];
    tally_show(env, (float)actions[0]);
    return env->steps >= 5 && actions[0] == 4 ? PUFFER_TERMINATED : PUFFER_RUNNING;
}

static void tally_draw(const Tally *env, PufferCanvas *canvas) {
    canvas->pixels[0] = (uint8_t)env->steps;
}

PUFFER_ENV(Tally, tally)

const PufferEnvType *const puffer_env_types[] = {&tally_env, NULL};

/* ---- What an owner expects ------------------------------------------------------------------------- */

typedef struct Owner {
    uint64_t random;
    int32_t rounds, batch_size, num_games, order[MAX_GAMES], num_sent;
    bool is_over[MAX_GAMES], is_sent[MAX_GAMES];
    int32_t steps[MAX_GAMES], actions[MAX_GAMES]; /* -1: a reset */
    PufferEnvPool *pool;
    float observations[MAX_GAMES * PLAYERS][2], final[MAX_GAMES * PLAYERS][2], rewards[MAX_GAMES * PLAYERS];
    bool terminated[MAX_GAMES], truncated[MAX_GAMES], flags[3][MAX_GAMES * PLAYERS];
    int32_t env_id[MAX_GAMES], elapsed[MAX_GAMES], final_elapsed[MAX_GAMES];
    float rows[MAX_GAMES * PLAYERS][2], batch_rewards[MAX_GAMES * PLAYERS]; /* of a batch */
    int32_t batch_ids[MAX_GAMES], batch_elapsed[MAX_GAMES];
    bool batch_terminated[MAX_GAMES], batch_truncated[MAX_GAMES];
} Owner;

static void fail(const char *what) {
    fprintf(stderr, "envpool_stress: %s\n", what);
    abort();
}

static int32_t pick(Owner *owner, int32_t bound) {
    owner->random = owner->random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((owner->random >> 33) % (uint64_t)bound);
}

static PufferColumn column_of(void *home, void *batch, size_t bytes) {
    return (PufferColumn){.home = home, .batch = batch, .bytes = bytes, .stride = bytes};
}

static void lay_out(Owner *owner) {
    PufferEnvPool *pool = owner->pool;
    const size_t agents = (size_t)pool->batch.spec.agents;
    PufferColumn *columns = pool->columns;
    columns[PUFFER_OBSERVATION] = column_of(owner->observations, owner->rows, 8 * agents);
    columns[PUFFER_REWARD] = column_of(owner->rewards, owner->batch_rewards, 4 * agents);
    columns[PUFFER_GAME_TERMINATED] = column_of(owner->terminated, owner->batch_terminated, 1);
    columns[PUFFER_GAME_TRUNCATED] = column_of(owner->truncated, owner->batch_truncated, 1);
    columns[PUFFER_ENV_ID] = column_of(owner->env_id, owner->batch_ids, 4);
    columns[PUFFER_ELAPSED_STEP] = column_of(owner->elapsed, owner->batch_elapsed, 4);
    pool->num_columns = PUFFER_COLUMNS;
    pool->batch.observations = (char *)owner->observations;
    pool->batch.final_observations = (char *)owner->final;
    pool->batch.rewards = owner->rewards;
    pool->batch.masks = owner->flags[2];
    pool->batch.terminals = agents == 1 ? owner->terminated : owner->flags[0];
    pool->batch.truncations = agents == 1 ? owner->truncated : owner->flags[1];
    pool->terminated = owner->terminated;
    pool->truncated = owner->truncated;
    pool->elapsed = owner->elapsed;
    pool->final_elapsed = owner->final_elapsed;
    memset(owner->flags[2], true, sizeof owner->flags[2]);
    for (int32_t i = 0; i < owner->num_games; i++) owner->env_id[i] = i;
}

static void open_pool(Owner *owner) {
    static const int32_t helper_ns[] = {0, 0, 0, 100, PUFFER_HELPER_NS};
    const PufferValue players = {.number = 1 + pick(owner, PLAYERS)};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* as Python has one around this */
    owner->pool = puffer_envpool_new();
    owner->num_games = 1 + pick(owner, MAX_GAMES);
    owner->batch_size = 1 + pick(owner, owner->num_games);
    owner->num_sent = 0;
    pthread_mutex_lock(&lock);
    if (owner->pool == NULL ||
        puffer_batch_create(&owner->pool->batch, &tally_env, owner->num_games, &players) != NULL ||
        !puffer_envpool_allocate(owner->pool))
        fail("no pool");
    pthread_mutex_unlock(&lock);
    owner->pool->autoreset = pick(owner, 2) ? PUFFER_NEXT_STEP : PUFFER_SAME_STEP;
    owner->pool->max_steps = pick(owner, MAX_LIMIT);
    lay_out(owner);
    for (int32_t i = 0; i < owner->num_games; i++) {
        owner->is_over[i] = true;
        owner->is_sent[i] = false;
    }
    if (puffer_envpool_open(owner->pool, puffer_helpers(), 1 + pick(owner, MAX_THREADS),
                            helper_ns[pick(owner, 5)], pick(owner, 3)) != 0)
        fail("no helpers");
}

/* ---- Sending and receiving -------------------------------------------------------------------------- */

static void prepare(Owner *owner, int32_t game) {
    PufferEnvPool *pool = owner->pool;
    const int32_t agents = pool->batch.spec.agents;
    int32_t *actions = (int32_t *)pool->batch.actions + game * agents;
    owner->actions[game] = pick(owner, 6) - 1;
    owner->is_sent[game] = true;
    owner->order[owner->num_sent++] = game;
    pool->stage[game] = PUFFER_SENT;
    pool->num_in_flight++;
    for (int32_t i = 0; i < agents; i++) actions[i] = owner->actions[game];
    if (owner->actions[game] < 0) puffer_ask_reset(pool, game);
}

static void send_some(Owner *owner) {
    int32_t games[MAX_GAMES], count = 0;
    const int32_t most = 1 + pick(owner, owner->num_games);
    const int32_t first = pick(owner, owner->num_games);
    owner->pool->begins = pick(owner, 2);
    if (owner->num_sent == 0 && pick(owner, 3) == 0) { /* all of them */
        for (int32_t i = 0; i < owner->num_games; i++) prepare(owner, i);
        owner->pool->is_held = true;
        return;
    }
    for (int32_t i = 0; i < owner->num_games && count < most; i++) {
        const int32_t game = (first + i) % owner->num_games;
        if (owner->is_sent[game]) continue;
        prepare(owner, game);
        games[count++] = game;
    }
    puffer_queue_push(&owner->pool->queue, games, count);
    puffer_call_helpers(owner->pool);
}

/* One game of a batch: what its row says must follow from what it was sent. */
static void check_row(Owner *owner, int32_t game, int32_t row) {
    const PufferEnvPool *pool = owner->pool;
    const int32_t agents = pool->batch.spec.agents, action = owner->actions[game];
    const bool begins = owner->is_over[game] || action < 0;
    const int32_t steps = begins ? 0 : owner->steps[game] + 1;
    const bool ends = !begins && steps >= 5 && action == 4;
    const bool is_cut = pool->max_steps > 0 && steps >= pool->max_steps;
    const bool shows_next = (ends || is_cut) && pool->autoreset == PUFFER_SAME_STEP;
    if (owner->batch_ids[row] != game) fail("a row of another game");
    if (owner->batch_elapsed[row] != (shows_next ? 0 : steps)) fail("elapsed steps");
    if (owner->batch_terminated[row] != ends || owner->batch_truncated[row] != is_cut) fail("flags");
    for (int32_t i = 0; i < agents; i++) {
        const float *seen = owner->rows[row * agents + i];
        if (seen[0] != (float)(shows_next ? 0 : steps)) fail("an observation");
        if (seen[1] != (float)(begins || shows_next ? -1 : action)) fail("an action");
        if (owner->batch_rewards[row * agents + i] != (float)(begins ? 0 : action)) fail("a reward");
        if (shows_next && owner->final[game * agents + i][0] != (float)steps) fail("a final observation");
    }
    owner->steps[game] = shows_next ? 0 : steps;
    owner->is_over[game] = (ends || is_cut) && !shows_next;
}

/* Synchronous batches have what was sent, in that order; others the first that have finished. */
static void receive(Owner *owner) {
    PufferEnvPool *pool = owner->pool;
    const bool is_sync = owner->batch_size == owner->num_games;
    const int32_t count = is_sync ? owner->num_sent : owner->batch_size;
    int32_t games[MAX_GAMES];
    if (count == 0 || owner->num_sent < count) return;
    if (is_sync && pool->is_held && pool->task.item_ns > 0 && pick(owner, 2)) {
        if (pool->helpers->run(&pool->task) != 0) fail("a run failed");
        memset(pool->stage, PUFFER_IDLE, (size_t)count);
        pool->is_held = false;
        pool->num_in_flight = 0;
        memcpy(games, owner->order, sizeof games);
    } else {
        while (!puffer_await(pool, count)) continue;
        puffer_take_ready(pool, games, count);
        if (is_sync) memcpy(games, owner->order, sizeof games);
        puffer_gather(pool, games, count);
    }
    for (int32_t row = 0; row < count; row++) {
        if (!owner->is_sent[games[row]]) fail("a game that was not sent");
        owner->is_sent[games[row]] = false;
        check_row(owner, games[row], row);
    }
    owner->num_sent -= count;
    if (pool->num_in_flight != owner->num_sent) fail("games in flight");
}

static void play(Owner *owner) {
    if (pick(owner, 2)) send_some(owner);
    if (pick(owner, 3) == 0) receive(owner);
}

/* The child goes on with what is in flight, with helpers of its own. */
static void fork_and_play(Owner *owner) {
#ifdef __SANITIZE_THREAD__
    (void)owner; /* that sanitizer cannot start threads in a child */
#else
    int status;
    pid_t child = fork();
    if (child < 0) fail("no fork");
    if (child == 0) {
        for (int i = 0; i < 60; i++) play(owner);
        puffer_envpool_free(owner->pool);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) fail("a forked child failed");
#endif
}

static void *own(void *argument) {
    Owner *owner = argument;
    for (int32_t round = 0; round < owner->rounds; round++) {
        if (round % 64 == 0) {
            puffer_envpool_free(owner->pool); /* with games in flight */
            open_pool(owner);
        }
        play(owner);
        if (round % 128 == 100) fork_and_play(owner);
        if (pick(owner, 500) == 0) nanosleep(&(struct timespec){0, 1000000}, NULL); /* helpers fall asleep */
    }
    puffer_envpool_free(owner->pool);
    return NULL;
}

int main(int count, char **arguments) {
    static Owner owners[OWNERS];
    pthread_t threads[OWNERS];
    if (count != 3) return 2;
    for (int i = 0; i < OWNERS; i++) {
        owners[i].rounds = atoi(arguments[1]) / OWNERS;
        owners[i].random = (uint64_t)atoll(arguments[2]) + (uint64_t)i;
        if (pthread_create(&threads[i], NULL, own, &owners[i]) != 0) fail("no thread");
    }
    for (int i = 0; i < OWNERS; i++) pthread_join(threads[i], NULL);
    return 0;
}
