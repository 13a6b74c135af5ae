/* A thread pool that divides a step among the caller and helper threads, which the whole process shares.
 *
 * A PufferTask is repeated work, like the step of a batch: many items that do not depend on one another. The
 * caller works too. The number of helpers depends on the measured time per item, because a small step is done
 * before a helper could start. Each thread gets the same share every time, so that its items stay in the
 * cache of its core. A thread that is done takes work from the shares of others.
 *
 * A share consists of a few chunks and a counter. A thread that takes a number above zero from the counter
 * owns that chunk, and the job does not end before the chunk is done. A late helper therefore finds nothing
 * to take, or a chunk of the next job. Both are correct, because it reads nothing of a job before it owns a
 * part of it.
 *
 * Only one job at a time uses helpers. A second thread that calls meanwhile works alone, as it would on a
 * machine whose cores are all busy.
 *
 * Include this header in only one file of a program, because the helpers are its static data. On Linux define
 * _GNU_SOURCE. This code does not depend on Python and allocates nothing. */
#ifndef PUFFER_POOL_H
#define PUFFER_POOL_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "puffer_task.h"
#include "puffer_wait.h"

enum {
    PUFFER_WAKE_FACTOR = 5, /* multiple of PUFFER_HELPER_NS for sleeping helpers, which are slow to wake */
    PUFFER_CHUNKS_PER_THREAD = 4, /* limits the wait for the last chunk */
    PUFFER_STOP_NS = 100000000,   /* interval between two checks whether to stop */
    PUFFER_LAST_NS = 50000,   /* longest spin for the last chunks of others: yielding may cost a time slice */
    PUFFER_SAMPLE_CALLS = 16, /* one of so many calls of a short task is timed */
    PUFFER_PROBE_ITEMS = 16,  /* items that measure the time per item in the first call */
    PUFFER_STOPPED = -1,
};

/* Items [begin, end), in chunks. Only the owner of a chunk, of any share, may read the plain numbers. */
typedef struct PufferShare {
    _Alignas(PUFFER_CACHE_LINE) _Atomic int64_t chunks_left; /* below 1: none */
    int32_t begin, end, num_chunks;
} PufferShare;

/* The task in progress. The rule for plain numbers also applies to `task` and `chunk`. */
typedef struct PufferJob {
    const PufferTask *task;
    int32_t chunk;              /* items per chunk */
    _Atomic int32_t num_shares; /* all others are empty */
    _Atomic int cpu;            /* core of the caller; -1: unknown */
} PufferJob;

static struct {
    _Alignas(PUFFER_CACHE_LINE) PufferJob job;
    PufferSignal unfinished;                /* number of unfinished chunks of the job */
    PufferShare shares[PUFFER_MAX_THREADS]; /* the first is the caller's */
    PufferSignal calls[PUFFER_MAX_THREADS]; /* one for the helper of each share */
    _Atomic bool is_taken;                  /* by the thread that owns the job; guards the fields below */
    bool handles_forks;
    int32_t num_threads; /* including one caller; helpers have numbers from 1 on */
    int64_t last_ns;     /* end of the last job */
} puffer_pool = {.num_threads = 1};

/* ---- Helpers --------------------------------------------------------------------------------- */

static inline int puffer_current_cpu(void) {
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* The current PufferTask.affinity of this helper. */
static _Thread_local int32_t puffer_affinity;

/* Two threads that alternate may stay on one core for seconds while another core is free. A helper that runs
 * on the caller's core moves away from it, if the process may run elsewhere. */
static void puffer_leave_cpu(int cpu) {
#ifdef __linux__
    cpu_set_t cpus;
    if (cpu < 0 || puffer_affinity != 0 || sched_getcpu() != cpu) return;
    if (sched_getaffinity(getpid(), sizeof cpus, &cpus) != 0) return;
    CPU_CLR((size_t)cpu, &cpus);
    if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof cpus, &cpus);
#else
    (void)cpu;
#endif
}

/* Pins helper `place` to the core given by `affinity`, or unpins it. */
static void puffer_place_helper(int32_t affinity, int32_t place) {
    if (affinity == puffer_affinity) return;
    puffer_affinity = affinity;
#ifdef __linux__
    cpu_set_t cpus;
    if (sched_getaffinity(getpid(), sizeof cpus, &cpus) != 0) return;
    const int32_t keeps = affinity == 0 ? -1 : (affinity - 1 + place) % CPU_COUNT(&cpus);
    for (int32_t cpu = 0, rank = 0; keeps >= 0 && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &cpus) && rank++ != keeps) CPU_CLR((size_t)cpu, &cpus);
    }
    sched_setaffinity(0, sizeof cpus, &cpus);
#else
    (void)place;
#endif
}

/* Takes a chunk of a share. Returns false if none is left. */
static inline bool puffer_take_chunk(PufferShare *share, const PufferJob *job, int32_t *begin, int32_t *end) {
    if (atomic_load_explicit(&share->chunks_left, memory_order_relaxed) <= 0) return false;
    int64_t left = atomic_fetch_sub(&share->chunks_left, 1);
    if (left <= 0) return false;
    int64_t first = share->begin + (share->num_chunks - left) * job->chunk;
    int64_t after = first + job->chunk;
    *begin = (int32_t)first;
    *end = after < share->end ? (int32_t)after : share->end;
    return true;
}

/* Works on the current job, if there is one, starting with the share of this helper. */
static void puffer_help_job(int32_t place) {
    PufferJob *job = &puffer_pool.job;
    uint32_t done = 0;
    int32_t begin, end;
    if (puffer_signal_read(&puffer_pool.unfinished) == 0) return; /* it was called for something else */
    puffer_leave_cpu(atomic_load_explicit(&job->cpu, memory_order_relaxed));
    int32_t count = atomic_load_explicit(&job->num_shares, memory_order_relaxed);
    for (int32_t i = 0; i < count; i++) {
        PufferShare *share = &puffer_pool.shares[(place + i) % count];
        while (puffer_take_chunk(share, job, &begin, &end)) {
            puffer_place_helper(job->task->affinity, place);
            job->task->work(job->task->context, begin, end);
            done++;
        }
    }
    if (done > 0) puffer_signal_subtract(&puffer_pool.unfinished, done);
}

/* ---- Background ------------------------------------------------------------------------------ */

/* Work of helpers while there is no job. The lock is held for a few instructions at a time, and during a
 * fork, so that the child finds every piece either done or not started. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t has_left; /* signalled when a helper leaves */
    PufferBackground *first;
    int32_t helpers; /* number of helpers that work on any background work */
    _Atomic bool is_paused;
} puffer_background = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_left = PTHREAD_COND_INITIALIZER};

/* Joins the background work that has a piece to take. Returns NULL if there is none. */
static PufferBackground *puffer_join_background(void) {
    pthread_mutex_lock(&puffer_background.lock);
    PufferBackground *found = atomic_load(&puffer_background.is_paused) ? NULL : puffer_background.first;
    while (found != NULL && (found->helpers >= found->threads - 1 || !found->has_work(found->context)))
        found = found->next;
    if (found != NULL) {
        found->helpers++;
        puffer_background.helpers++;
    }
    pthread_mutex_unlock(&puffer_background.lock);
    return found;
}

static void puffer_leave_background(PufferBackground *background) {
    pthread_mutex_lock(&puffer_background.lock);
    background->helpers--;
    puffer_background.helpers--;
    pthread_cond_broadcast(&puffer_background.has_left);
    pthread_mutex_unlock(&puffer_background.lock);
}

/* Jobs have priority, because a caller waits for them. Calls are checked between two pieces. */
static void puffer_help_background(int32_t place, uint32_t *last) {
    PufferBackground *background;
    while ((background = puffer_join_background()) != NULL) {
        puffer_place_helper(background->affinity, place);
        while (!atomic_load(&puffer_background.is_paused) && !atomic_load(&background->is_closed)) {
            if (!background->work(background->context)) break;
            if (puffer_signal_read(&puffer_pool.calls[place]) == *last) continue;
            *last = puffer_signal_read(&puffer_pool.calls[place]);
            puffer_help_job(place);
        }
        puffer_leave_background(background);
    }
}

static void puffer_background_add(PufferBackground *background) {
    pthread_mutex_lock(&puffer_background.lock);
    background->next = puffer_background.first;
    puffer_background.first = background;
    pthread_mutex_unlock(&puffer_background.lock);
}

static void puffer_background_remove(PufferBackground *background) {
    atomic_store(&background->is_closed, true);
    pthread_mutex_lock(&puffer_background.lock);
    PufferBackground **at = &puffer_background.first;
    while (*at != NULL && *at != background) at = &(*at)->next;
    if (*at != NULL) *at = background->next;
    while (background->helpers > 0) pthread_cond_wait(&puffer_background.has_left, &puffer_background.lock);
    pthread_mutex_unlock(&puffer_background.lock);
}

/* ---- Life of the helpers --------------------------------------------------------------------- */

/* Main function of a helper, which runs until the process exits. Its argument is the number of its share. */
static void *puffer_help(void *own) {
    PufferWaitPolicy policy = puffer_wait_policy(true);
    const int32_t place = (int32_t)((PufferShare *)own - puffer_pool.shares);
    PufferSignal *call = &puffer_pool.calls[place];
    uint32_t last = 0;
    for (;;) {
        puffer_signal_wait(call, last, &policy, PUFFER_FOREVER_NS);
        last = puffer_signal_read(call);
        puffer_help_job(place);
        puffer_help_background(place, &last);
    }
    return NULL;
}

/* Called before a fork: waits until no helper works on a piece, and keeps them from taking another one. */
static void puffer_pause_background(void) {
    pthread_mutex_lock(&puffer_background.lock);
    atomic_store(&puffer_background.is_paused, true);
    while (puffer_background.helpers > 0)
        pthread_cond_wait(&puffer_background.has_left, &puffer_background.lock);
}

static void puffer_resume_background(void) {
    atomic_store(&puffer_background.is_paused, false);
    const bool is_there = puffer_background.first != NULL;
    pthread_mutex_unlock(&puffer_background.lock);
    for (int32_t i = 1; is_there && i < PUFFER_MAX_THREADS; i++) {
        if (atomic_load(&puffer_pool.calls[i].value) != 0) puffer_signal_add(&puffer_pool.calls[i]);
    }
}

/* Called in the child after a fork, which has no helpers. */
static void puffer_forget_helpers(void) {
    for (int32_t i = 0; i < puffer_pool.num_threads; i++) {
        atomic_store(&puffer_pool.calls[i].value, 0);
        atomic_store(&puffer_pool.calls[i].sleepers, 0);
        atomic_store(&puffer_pool.shares[i].chunks_left, 0);
    }
    atomic_store(&puffer_pool.unfinished.sleepers, 0);
    puffer_pool.num_threads = 1;
    atomic_store(&puffer_pool.is_taken, false);
    atomic_store(&puffer_background.is_paused, false);
    pthread_cond_init(&puffer_background.has_left, NULL);
    pthread_mutex_init(&puffer_background.lock, NULL);
}

/* Starts the helpers needed for `threads` threads. The caller must hold the pool. Returns 0 or an errno.
 * Helpers block signals, so that these go to threads that the process started itself. */
static int puffer_start_helpers(int32_t threads) {
    if (puffer_pool.num_threads >= threads) return 0;
    sigset_t all, before;
    int error = 0;
    if (!puffer_pool.handles_forks)
        error = pthread_atfork(puffer_pause_background, puffer_resume_background, puffer_forget_helpers);
    puffer_pool.handles_forks = error == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (error == 0 && puffer_pool.num_threads < threads) {
        pthread_t thread;
        error = pthread_create(&thread, NULL, puffer_help, &puffer_pool.shares[puffer_pool.num_threads]);
        if (error != 0) break;
        pthread_detach(thread);
        puffer_pool.num_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Starts the helpers of a task before its first run, so that a failure shows immediately. If the pool is
 * busy, the first run starts them. Returns 0 or an errno. */
static inline int puffer_pool_prepare(int32_t threads) {
    if (atomic_exchange(&puffer_pool.is_taken, true)) return 0;
    int error = puffer_start_helpers(threads);
    atomic_store(&puffer_pool.is_taken, false);
    return error;
}

/* ---- A run ----------------------------------------------------------------------------------- */

/* Number of items per chunk, if `items` are divided among `width` threads. */
static int32_t puffer_chunk(const PufferTask *task, int32_t items, int32_t width) {
    int64_t chunks = width > 1 ? (int64_t)width * PUFFER_CHUNKS_PER_THREAD : 1;
    double most = task->item_ns * items / PUFFER_CHUNK_NS + 1;
    if ((double)chunks < most) chunks = most < (double)items ? (int64_t)most : items;
    return chunks < items ? (int32_t)((items + chunks - 1) / chunks) : 1;
}

/* Assigns items [begin, end) to a share, after everything else of the job was set. Returns its chunks. */
static int32_t puffer_deal(PufferShare *share, int32_t chunk, int32_t begin, int32_t end) {
    share->begin = begin;
    share->end = end;
    share->num_chunks = (int32_t)(((int64_t)end - begin + chunk - 1) / chunk);
    return share->num_chunks;
}

/* Works on a share until it is empty, or until `stop` returns true. Returns the number of finished chunks. */
static uint32_t puffer_work_along(PufferShare *share, const PufferJob *job, PufferTask *task, int64_t *asked,
                                  bool *is_stopped) {
    int64_t start = puffer_now_ns(), now = start;
    int32_t begin, end, items = 0;
    uint32_t chunks = 0;
    while (!*is_stopped && puffer_take_chunk(share, job, &begin, &end)) {
        task->work(task->context, begin, end);
        items += end - begin;
        chunks++;
        now = puffer_now_ns();
        if (now - *asked < PUFFER_STOP_NS || task->stop == NULL) continue;
        *is_stopped = task->stop(task->owner);
        *asked = now;
    }
    puffer_learn(task, now - start, items);
    return chunks;
}

/* Returns how many of `width` threads to use. Sleeping helpers are only woken if their part justifies it, or
 * if the last job was so recent that they will still be awake for the next one. The caller must hold the
 * pool. */
static int32_t puffer_awake(const PufferTask *task, int32_t items, int32_t width) {
    double part_ns = task->item_ns * items / width;
    if (part_ns >= (double)task->helper_ns * PUFFER_WAKE_FACTOR) return width;
    int64_t now = puffer_now_ns(), last = puffer_pool.last_ns;
    puffer_pool.last_ns = now;
    if (now - last < PUFFER_YIELD_NS) return width;
    int32_t awake = 1;
    while (awake < width && atomic_load(&puffer_pool.calls[awake].sleepers) == 0) awake++;
    return awake;
}

/* Assigns the items from `begin` on to `width` threads, and calls the helpers among them. */
static void puffer_begin_job(PufferTask *task, int32_t begin, int32_t width) {
    PufferJob *job = &puffer_pool.job;
    int64_t items = task->num_items - begin;
    int32_t chunks = 0;
    job->task = task;
    job->chunk = puffer_chunk(task, (int32_t)items, width);
    for (int32_t i = 0; i < width; i++) {
        int32_t from = begin + (int32_t)(items * i / width), to = begin + (int32_t)(items * (i + 1) / width);
        chunks += puffer_deal(&puffer_pool.shares[i], job->chunk, from, to);
    }
    atomic_store_explicit(&puffer_pool.unfinished.value, (uint32_t)chunks, memory_order_relaxed);
    atomic_store_explicit(&job->num_shares, width, memory_order_relaxed);
    atomic_store_explicit(&job->cpu, puffer_current_cpu(), memory_order_relaxed);
    for (int32_t i = 0; i < width; i++) {
        PufferShare *share = &puffer_pool.shares[i];
        atomic_store_explicit(&share->chunks_left, share->num_chunks, memory_order_release);
    }
    for (int32_t i = 1; i < width; i++) puffer_signal_add(&puffer_pool.calls[i]);
}

/* Waits for the helpers to finish their chunks, which they are most likely working on. */
static void puffer_await_helpers(double chunk_ns) {
    PufferWaitPolicy policy = puffer_wait_policy(true);
    uint32_t left;
    policy.spin_ns += (int64_t)(chunk_ns < PUFFER_LAST_NS ? chunk_ns : PUFFER_LAST_NS);
    while ((left = puffer_signal_read(&puffer_pool.unfinished)) != 0) {
        puffer_signal_wait(&puffer_pool.unfinished, left, &policy, PUFFER_FOREVER_NS);
    }
}

/* Runs the items from `begin` on with `width` threads. The caller must hold the pool, with its helpers
 * started. */
static bool puffer_run_wide(PufferTask *task, int32_t begin, int32_t width) {
    PufferJob *job = &puffer_pool.job;
    bool is_stopped = false;
    uint32_t done = 0;
    puffer_begin_job(task, begin, width);
    int64_t asked = puffer_now_ns();
    for (int32_t i = 0; i < width && !is_stopped; i++) {
        done += puffer_work_along(&puffer_pool.shares[i], job, task, &asked, &is_stopped);
    }
    for (int32_t i = 0; i < width && is_stopped; i++) {
        int64_t dropped = atomic_exchange(&puffer_pool.shares[i].chunks_left, 0);
        if (dropped > 0) done += (uint32_t)dropped;
    }
    puffer_signal_subtract(&puffer_pool.unfinished, done);
    puffer_await_helpers(task->item_ns * job->chunk);
    puffer_pool.last_ns = puffer_now_ns();
    return is_stopped;
}

static bool puffer_run_alone(PufferTask *task, int32_t begin) {
    PufferJob job = {.task = task, .chunk = puffer_chunk(task, task->num_items - begin, 1)};
    PufferShare share = {0};
    int64_t asked = puffer_now_ns();
    bool is_stopped = false;
    puffer_deal(&share, job.chunk, begin, task->num_items);
    atomic_store_explicit(&share.chunks_left, share.num_chunks, memory_order_relaxed);
    puffer_work_along(&share, &job, task, &asked, &is_stopped);
    return is_stopped;
}

/* Runs the first items of a task without a time estimate. Returns their number. */
static int32_t puffer_probe(PufferTask *task) {
    int32_t items = task->num_items < PUFFER_PROBE_ITEMS ? task->num_items : PUFFER_PROBE_ITEMS;
    int64_t start = puffer_now_ns();
    task->work(task->context, 0, items);
    puffer_learn(task, puffer_now_ns() - start, items);
    return items;
}

/* Number of threads that is worthwhile for so many items. */
static int32_t puffer_width(const PufferTask *task, int32_t items) {
    double work_ns = task->item_ns * items;
    int32_t most = items < task->threads ? items : task->threads;
    if (work_ns < (double)task->helper_ns * most) most = (int32_t)(work_ns / task->helper_ns);
    return most;
}

static int puffer_run_measured(PufferTask *task) {
    int32_t begin = task->item_ns == 0 ? puffer_probe(task) : 0;
    int32_t items = task->num_items - begin, width = puffer_width(task, items);
    if (width < 2 || atomic_exchange(&puffer_pool.is_taken, true)) {
        return puffer_run_alone(task, begin) ? PUFFER_STOPPED : 0;
    }
    int error = puffer_start_helpers(task->threads);
    bool is_stopped = false;
    if (error == 0) {
        width = puffer_awake(task, items, width);
        is_stopped = width < 2 ? puffer_run_alone(task, begin) : puffer_run_wide(task, begin, width);
    }
    atomic_store(&puffer_pool.is_taken, false);
    return is_stopped ? PUFFER_STOPPED : error;
}

/* Runs all items of the task. Returns 0 if all items are done. Returns PUFFER_STOPPED if `stop` returned
 * true, or an errno if a helper could not be started. In both cases no thread works on the task any more, but
 * some items are not done. */
static inline int puffer_pool_run(PufferTask *task) {
    if (!task->is_short) return puffer_run_measured(task);
    bool is_timed = task->calls++ % PUFFER_SAMPLE_CALLS == 0;
    int64_t start = is_timed ? puffer_now_ns() : 0;
    task->work(task->context, 0, task->num_items);
    if (is_timed) puffer_learn(task, puffer_now_ns() - start, task->num_items);
    return 0;
}

/* Calls as many helpers as are worthwhile for background work of this duration. Sleeping helpers are only
 * woken if their part justifies it. If none can be started, the owner does all of the work. */
static void puffer_background_call(PufferBackground *background, double work_ns) {
    int32_t width = background->threads;
    if (work_ns < (double)background->helper_ns * width) width = (int32_t)(work_ns / background->helper_ns);
    if (width < 2 || puffer_pool_prepare(background->threads) != 0) return;
    const bool wakes = work_ns / width >= (double)background->helper_ns * PUFFER_WAKE_FACTOR;
    for (int32_t i = 1; i < width; i++) {
        PufferSignal *call = &puffer_pool.calls[i];
        if (wakes || atomic_load(&call->sleepers) == 0) puffer_signal_add(call);
    }
}

/* The helpers of this program, for use by other modules. */
static inline const PufferHelpers *puffer_helpers(void) {
    static const PufferHelpers helpers = {
        .prepare = puffer_pool_prepare,
        .run = puffer_pool_run,
        .add = puffer_background_add,
        .call = puffer_background_call,
        .remove = puffer_background_remove,
    };
    return &helpers;
}

#endif
