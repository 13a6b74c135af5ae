/* Work for the thread pool in puffer_pool.h, as seen by modules without their own threads.
 *
 * The helpers are static data of one module. Other modules use them through the functions of PufferHelpers,
 * so that a process has only one set of helpers. */
#ifndef PUFFER_TASK_H
#define PUFFER_TASK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PUFFER_MAX_THREADS = 256,
    PUFFER_HELPER_NS = 6000,   /* amount of work that justifies calling a helper which is awake */
    PUFFER_CHUNK_NS = 1000000, /* longest chunk, because a step can only be stopped between chunks */
};

/* Repeated work that its owner waits for. */
typedef struct PufferTask {
    void (*work)(void *context, int32_t begin, int32_t end);
    void *context;
    bool (*stop)(void *owner); /* called during a long run; true: skip the rest; NULL: never stop */
    void *owner;
    int32_t num_items;
    int32_t threads;   /* maximum, including the caller; at most the number of available cores */
    int32_t helper_ns; /* PUFFER_HELPER_NS; 0 always calls all helpers, for tests */
    int32_t affinity;  /* k: helper i is pinned to core k - 1 + i, modulo the usable cores; 0: not pinned */
    /* Estimates of the pool, initially zero. */
    bool is_short; /* done before a helper could start or the caller could check `stop` */
    uint32_t calls;
    double item_ns;
} PufferTask;

/* Work that continues while its owner does something else, in pieces that helpers take by themselves. */
typedef struct PufferBackground {
    bool (*work)(void *context);     /* processes a piece; false: nothing was left */
    bool (*has_work)(void *context); /* returns whether there is a piece to take */
    void *context;
    int32_t threads, helper_ns, affinity; /* as in PufferTask; the owner is one of the threads */
    /* Used by the pool, initially zero. */
    _Atomic bool is_closed;
    int32_t helpers; /* helpers that work on it */
    struct PufferBackground *next;
} PufferBackground;

typedef struct PufferHelpers {
    /* Starts the helpers needed for so many threads. Returns 0 or an errno. */
    int (*prepare)(int32_t threads);
    /* Runs a task. See puffer_pool_run. */
    int (*run)(PufferTask *task);
    /* Allows helpers to take pieces, once they are called. */
    void (*add)(PufferBackground *background);
    /* Calls as many helpers as are worthwhile for this amount of work in ns. */
    void (*call)(PufferBackground *background, double work_ns);
    /* Stops helpers from taking pieces, and waits for pieces in progress. */
    void (*remove)(PufferBackground *background);
} PufferHelpers;

/* Updates the estimate after `items` took `ns`. Interruptions only ever make a measurement longer, so shorter
 * times change the estimate faster than longer ones. */
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
