/* Threads that share out a step: the caller, and helpers that the whole process has in common.
 *
 * A PufferTask is work that comes again and again, like the step of a batch: many items that do not
 * depend on one another. The caller works too. How many helpers it calls follows from how long an item
 * has taken so far, because a small step is done before a helper has heard of it. The items are dealt
 * out in chunks, a few for each thread, by a counter: whoever takes a number above zero owns that
 * chunk, and the job cannot end before it is done. So a helper that comes late finds nothing to take,
 * or a chunk of the next job, and is right in both cases; it reads nothing of a job before it owns a
 * part of it.
 *
 * There is one job with helpers at a time. A second thread that comes meanwhile works alone, which is
 * what it would do on a machine whose cores are busy anyway.
 *
 * Include this in one file of a program only: the helpers are its static data. On Linux define
 * _GNU_SOURCE. Nothing here knows Python, and nothing is allocated.
 */
#ifndef PUFFER_POOL_H
#define PUFFER_POOL_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "puffer_wait.h"

enum {
    PUFFER_MAX_THREADS = 256,
    PUFFER_HELPER_NS = 6000,      /* work that makes it worth while to call a helper which is awake */
    PUFFER_WAKE_FACTOR = 5,       /* times as much if it sleeps: waking it costs both sides */
    PUFFER_CHUNKS_PER_THREAD = 4, /* so that nobody waits long for the last one */
    PUFFER_CHUNK_NS = 1000000,    /* no chunk is longer, because only between chunks a step can be stopped */
    PUFFER_STOP_NS = 100000000,   /* between two questions whether to stop */
    PUFFER_LAST_NS = 50000,   /* longest spin for the last chunks of others: yielding may cost a time slice */
    PUFFER_SAMPLE_CALLS = 16, /* calls of a short task of which one is timed */
    PUFFER_PROBE_ITEMS = 16,  /* items that tell how long one takes, in the first call */
    PUFFER_STOPPED = -1,
};

typedef struct PufferTask {
    void (*work)(void *context, int32_t begin, int32_t end);
    void *context;
    bool (*stop)(void *owner); /* asked by the caller in a long run; true: leave the rest; NULL: never */
    void *owner;
    int32_t num_items;
    int32_t threads;   /* at most, the caller included; no more than there are cores for them */
    int32_t helper_ns; /* PUFFER_HELPER_NS; 0 calls all helpers always, for tests */
    /* What the pool has learned; zero at first. */
    bool is_short; /* done before anybody could help, or ask to stop it */
    uint32_t calls;
    double item_ns;
} PufferTask;

/* What is shared out right now. `task`, `begin`, `chunk` and `num_chunks` may be read by owners of a chunk.
 */
typedef struct PufferJob {
    _Alignas(PUFFER_CACHE_LINE) _Atomic int64_t chunks_left; /* below 1: none */
    const PufferTask *task;
    int32_t begin, chunk, num_chunks;
    _Atomic int cpu; /* where the caller was; -1: unknown */
} PufferJob;

static struct {
    PufferJob job;
    PufferSignal unfinished; /* chunks of the job */
    PufferSignal calls[PUFFER_MAX_THREADS - 1];
    _Atomic bool is_taken; /* by the thread whose job it is; it guards what follows */
    bool minds_forks;
    int32_t num_helpers;
    int64_t last_ns; /* when the last job ended */
} puffer_pool;

/* ---- Helpers --------------------------------------------------------------------------------- */

static inline int puffer_current_cpu(void) {
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Two threads that are busy by turns may stay on one core for seconds while another is free. A helper that
 * finds itself where the caller is keeps away from there, as far as the process may run elsewhere. */
static void puffer_leave_cpu(int cpu) {
#ifdef __linux__
    cpu_set_t cpus;
    if (cpu < 0 || sched_getcpu() != cpu) return;
    if (sched_getaffinity(getpid(), sizeof cpus, &cpus) != 0) return;
    CPU_CLR((size_t)cpu, &cpus);
    if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof cpus, &cpus);
#else
    (void)cpu;
#endif
}

/* Take a chunk of the job. False when none is left. */
static inline bool puffer_take_chunk(PufferJob *job, int32_t *begin, int32_t *end) {
    int64_t left = atomic_fetch_sub(&job->chunks_left, 1);
    if (left <= 0) return false;
    int64_t first = job->begin + (job->num_chunks - left) * job->chunk;
    int64_t after = first + job->chunk;
    *begin = (int32_t)first;
    *end = after < job->task->num_items ? (int32_t)after : job->task->num_items;
    return true;
}

/* The life of a helper, which ends with the process; `call` is its own signal. */
static void *puffer_help(void *call) {
    PufferPatience patience = puffer_patience(true);
    PufferJob *job = &puffer_pool.job;
    uint32_t last = 0;
    for (;;) {
        uint32_t done = 0;
        int32_t begin, end;
        puffer_signal_wait(call, last, &patience, PUFFER_FOREVER_NS);
        last = puffer_signal_read(call);
        puffer_leave_cpu(atomic_load_explicit(&job->cpu, memory_order_relaxed));
        while (puffer_take_chunk(job, &begin, &end)) {
            job->task->work(job->task->context, begin, end);
            done++;
        }
        if (done > 0) puffer_signal_subtract(&puffer_pool.unfinished, done);
    }
    return NULL;
}

/* In the child of a fork, where no helper is left. */
static void puffer_forget_helpers(void) {
    for (int32_t i = 0; i < puffer_pool.num_helpers; i++) {
        atomic_store(&puffer_pool.calls[i].value, 0);
        atomic_store(&puffer_pool.calls[i].sleepers, 0);
    }
    atomic_store(&puffer_pool.unfinished.sleepers, 0);
    atomic_store(&puffer_pool.job.chunks_left, 0);
    puffer_pool.num_helpers = 0;
    atomic_store(&puffer_pool.is_taken, false);
}

/* Have helpers for `threads` threads; the pool is taken. Returns 0 or an errno. Signals to the process are
 * for the threads that it has started itself. */
static int puffer_start_helpers(int32_t threads) {
    if (puffer_pool.num_helpers >= threads - 1) return 0;
    sigset_t all, before;
    int error = 0;
    if (!puffer_pool.minds_forks) error = pthread_atfork(NULL, NULL, puffer_forget_helpers);
    puffer_pool.minds_forks = error == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (error == 0 && puffer_pool.num_helpers < threads - 1) {
        pthread_t thread;
        error = pthread_create(&thread, NULL, puffer_help, &puffer_pool.calls[puffer_pool.num_helpers]);
        if (error != 0) break;
        pthread_detach(thread);
        puffer_pool.num_helpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Start the helpers of a task before its first run, so that a failure shows at once. If the pool is busy,
 * the first run starts them. Returns 0 or an errno. */
static inline int puffer_pool_prepare(int32_t threads) {
    if (atomic_exchange(&puffer_pool.is_taken, true)) return 0;
    int error = puffer_start_helpers(threads);
    atomic_store(&puffer_pool.is_taken, false);
    return error;
}

/* ---- A run ----------------------------------------------------------------------------------- */

/* Learn from `items` that took `ns`. A disturbance only ever makes them longer, so a shorter time is believed
 * sooner than a longer one. */
static void puffer_learn(PufferTask *task, int64_t ns, int32_t items) {
    if (items <= 0) return;
    double known = task->item_ns, seen = (double)(ns > 0 ? ns : 1) / items;
    if (known == 0) {
        task->item_ns = seen;
    } else if (seen < known) {
        task->item_ns = (known + seen) / 2;
    } else {
        task->item_ns += ((seen < 2 * known ? seen : 2 * known) - known) / 8;
    }
    double work_ns = task->item_ns * task->num_items;
    task->is_short = work_ns < PUFFER_CHUNK_NS && (task->threads == 1 || work_ns < 2.0 * task->helper_ns);
}

/* Deal out the items from `begin` on. */
static void puffer_deal(PufferJob *job, const PufferTask *task, int32_t begin, int32_t width) {
    int64_t items = task->num_items - begin;
    double most = task->item_ns * (double)items / PUFFER_CHUNK_NS + 1;
    int64_t chunks = width > 1 ? (int64_t)width * PUFFER_CHUNKS_PER_THREAD : 1;
    if ((double)chunks < most) chunks = most < (double)items ? (int64_t)most : items;
    if (chunks > items) chunks = items;
    job->task = task;
    job->begin = begin;
    job->chunk = chunks > 0 ? (int32_t)((items + chunks - 1) / chunks) : 0;
    job->num_chunks = chunks > 0 ? (int32_t)((items + job->chunk - 1) / job->chunk) : 0;
}

/* Call `count` helpers. Those that sleep stay asleep unless their share of `share_ns` is worth the waking, or
 * the next job is so near that they will be awake for it. */
static void puffer_call_helpers(int32_t count, double share_ns, const PufferTask *task) {
    bool wakes = share_ns >= (double)task->helper_ns * PUFFER_WAKE_FACTOR ||
                 puffer_now_ns() - puffer_pool.last_ns < PUFFER_YIELD_NS;
    for (int32_t i = 0; i < count; i++) {
        PufferSignal *call = &puffer_pool.calls[i];
        if (wakes || atomic_load(&call->sleepers) == 0) puffer_signal_add(call);
    }
}

/* Work on the job until no chunk is left, or until `stop` says so. Returns the chunks done. */
static uint32_t puffer_work_along(PufferJob *job, PufferTask *task, bool *is_stopped) {
    int64_t start = puffer_now_ns(), now = start, asked = start;
    int32_t begin, end, items = 0;
    uint32_t chunks = 0;
    while (!*is_stopped && puffer_take_chunk(job, &begin, &end)) {
        task->work(task->context, begin, end);
        items += end - begin;
        chunks++;
        now = puffer_now_ns();
        if (now - asked < PUFFER_STOP_NS || task->stop == NULL) continue;
        *is_stopped = task->stop(task->owner);
        asked = now;
    }
    puffer_learn(task, now - start, items);
    return chunks;
}

/* Wait until the helpers have finished the chunks that they took, which they are most likely working on. */
static void puffer_await_helpers(double chunk_ns) {
    PufferPatience patience = puffer_patience(true);
    uint32_t left;
    patience.spin_ns += (int64_t)(chunk_ns < PUFFER_LAST_NS ? chunk_ns : PUFFER_LAST_NS);
    while ((left = puffer_signal_read(&puffer_pool.unfinished)) != 0) {
        puffer_signal_wait(&puffer_pool.unfinished, left, &patience, PUFFER_FOREVER_NS);
    }
}

/* Share the items from `begin` on out among `width` threads; the pool is taken, its helpers are there. */
static bool puffer_run_wide(PufferTask *task, int32_t begin, int32_t width) {
    PufferJob *job = &puffer_pool.job;
    bool is_stopped = false;
    puffer_deal(job, task, begin, width);
    atomic_store_explicit(&job->cpu, puffer_current_cpu(), memory_order_relaxed);
    atomic_store_explicit(&puffer_pool.unfinished.value, (uint32_t)job->num_chunks, memory_order_relaxed);
    atomic_store_explicit(&job->chunks_left, job->num_chunks, memory_order_release);
    puffer_call_helpers(width - 1, task->item_ns * (task->num_items - begin) / width, task);
    uint32_t done = puffer_work_along(job, task, &is_stopped);
    if (is_stopped) {
        int64_t dropped = atomic_exchange(&job->chunks_left, 0);
        if (dropped > 0) done += (uint32_t)dropped;
    }
    puffer_signal_subtract(&puffer_pool.unfinished, done);
    puffer_await_helpers(task->item_ns * job->chunk);
    puffer_pool.last_ns = puffer_now_ns();
    return is_stopped;
}

static bool puffer_run_alone(PufferTask *task, int32_t begin) {
    PufferJob job = {0};
    bool is_stopped = false;
    puffer_deal(&job, task, begin, 1);
    atomic_store_explicit(&job.chunks_left, job.num_chunks, memory_order_relaxed);
    puffer_work_along(&job, task, &is_stopped);
    return is_stopped;
}

/* The first items of a task that nothing is known about yet. Returns how many. */
static int32_t puffer_probe(PufferTask *task) {
    int32_t items = task->num_items < PUFFER_PROBE_ITEMS ? task->num_items : PUFFER_PROBE_ITEMS;
    int64_t start = puffer_now_ns();
    task->work(task->context, 0, items);
    puffer_learn(task, puffer_now_ns() - start, items);
    return items;
}

/* How many threads the items are worth. */
static int32_t puffer_width(const PufferTask *task, int32_t items) {
    double work_ns = task->item_ns * items;
    int32_t most = items < task->threads ? items : task->threads;
    if (work_ns < (double)task->helper_ns * most) most = (int32_t)(work_ns / task->helper_ns);
    return most;
}

static int puffer_run_measured(PufferTask *task) {
    int32_t begin = task->item_ns == 0 ? puffer_probe(task) : 0;
    int32_t width = puffer_width(task, task->num_items - begin);
    if (width < 2 || atomic_exchange(&puffer_pool.is_taken, true)) {
        return puffer_run_alone(task, begin) ? PUFFER_STOPPED : 0;
    }
    int outcome = puffer_start_helpers(task->threads);
    if (outcome == 0 && puffer_run_wide(task, begin, width)) outcome = PUFFER_STOPPED;
    atomic_store(&puffer_pool.is_taken, false);
    return outcome;
}

/* Do all items of the task. Returns 0; PUFFER_STOPPED if `stop` said so, when nobody works on it any more but
 * some items are not done; or the errno with which a helper could not be started, when some are not done
 * either. */
static inline int puffer_pool_run(PufferTask *task) {
    if (!task->is_short) return puffer_run_measured(task);
    bool is_timed = task->calls++ % PUFFER_SAMPLE_CALLS == 0;
    int64_t start = is_timed ? puffer_now_ns() : 0;
    task->work(task->context, 0, task->num_items);
    if (is_timed) puffer_learn(task, puffer_now_ns() - start, task->num_items);
    return 0;
}

#endif
