/* Work for the threads of puffer_pool.h, as those see it who have no threads of their own.
 *
 * The helpers are the static data of one module. Others reach them through the functions of a PufferHelpers,
 * so that a process has one set of helpers, whoever has work for them.
 */
#ifndef PUFFER_TASK_H
#define PUFFER_TASK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PUFFER_MAX_THREADS = 256,
    PUFFER_HELPER_NS = 6000,   /* work that makes it worth while to call a helper which is awake */
    PUFFER_CHUNK_NS = 1000000, /* no chunk is longer, because only between chunks a step can be stopped */
};

/* Work that comes again and again, and that its owner waits for. */
typedef struct PufferTask {
    void (*work)(void *context, int32_t begin, int32_t end);
    void *context;
    bool (*stop)(void *owner); /* asked by the caller in a long run; true: leave the rest; NULL: never */
    void *owner;
    int32_t num_items;
    int32_t threads;   /* at most, the caller included; no more than there are cores for them */
    int32_t helper_ns; /* PUFFER_HELPER_NS; 0 calls all helpers always, for tests */
    int32_t affinity;  /* k: helper i keeps to core k - 1 + i, modulo those of the process; 0: to none */
    /* Estimates of the pool; zero at first. */
    bool is_short; /* done before a helper could take a part, or the caller ask to stop */
    uint32_t calls;
    double item_ns;
} PufferTask;

/* Work that goes on while its owner does something else, in pieces that helpers take by themselves. */
typedef struct PufferBackground {
    bool (*work)(void *context);     /* does a piece; false: nothing was left */
    bool (*has_work)(void *context); /* there is a piece to take */
    void *context;
    int32_t threads, helper_ns, affinity; /* as a task has them; the owner is one of the threads */
    /* Of the pool; zero at first. */
    _Atomic bool is_closed;
    int32_t helpers; /* at work on it */
    struct PufferBackground *next;
} PufferBackground;

typedef struct PufferHelpers {
    /* Start those that so many threads need. Returns 0 or an errno. */
    int (*prepare)(int32_t threads);
    /* Do a task; see puffer_pool_run. */
    int (*run)(PufferTask *task);
    /* Let helpers take pieces from now on, as soon as they are called. */
    void (*add)(PufferBackground *background);
    /* Call as many helpers as pay for work of so many ns. */
    void (*call)(PufferBackground *background, double work_ns);
    /* No helper takes pieces from now on, or works on one. */
    void (*remove)(PufferBackground *background);
} PufferHelpers;

/* Learn from `items` that took `ns`. A disturbance only ever makes them longer, so a shorter time is believed
 * sooner than a longer one. */
static inline void puffer_learn(PufferTask *task, int64_t ns, int32_t items) {
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

#endif
