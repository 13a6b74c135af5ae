/* Runs many tasks of random size, with more threads than there are cores, from several threads at once that
 * also fork, and checks that every item is done exactly once. Built with the thread sanitizer, and with
 * those for addresses and undefined behaviour, which stop at the first fault.
 *
 * Usage: pool_stress ROUNDS SEED */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "puffer_pool.h"

enum { CALLERS = 3, MAX_ITEMS = 300, MAX_THREADS = 7, SLOW_ITEMS = 400, SLOW_ITEM_NS = 1000000 };

typedef struct Caller {
    PufferTask task;
    uint64_t random;
    int32_t rounds;
    int32_t times_done[SLOW_ITEMS]; /* plain numbers: two threads on one item are a race */
    int64_t sleep_ns;
    int32_t questions;
} Caller;

static void fail(const char *what) {
    fprintf(stderr, "pool_stress: %s\n", what);
    abort();
}

static int32_t pick(Caller *caller, int32_t bound) {
    caller->random = caller->random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((caller->random >> 33) % (uint64_t)bound);
}

static void work(void *context, int32_t begin, int32_t end) {
    Caller *caller = context;
    struct timespec nap = {0, caller->sleep_ns};
    for (int32_t i = begin; i < end; i++) {
        caller->times_done[i]++;
        if (caller->sleep_ns > 0) nanosleep(&nap, NULL);
    }
}

static bool stop_at_second_question(void *owner) {
    return ++((Caller *)owner)->questions == 2;
}

static void change_task(Caller *caller) {
    static const int32_t helper_ns[] = {0, 0, 0, 100, PUFFER_HELPER_NS};
    caller->task = (PufferTask){
        .work = work,
        .context = caller,
        .owner = caller,
        .num_items = 1 + pick(caller, MAX_ITEMS),
        .threads = 1 + pick(caller, MAX_THREADS),
        .helper_ns = helper_ns[pick(caller, 5)],
    };
}

static void run_and_check(Caller *caller) {
    memset(caller->times_done, 0, sizeof caller->times_done);
    if (puffer_pool_run(&caller->task) != 0) fail("a run failed");
    for (int32_t i = 0; i < SLOW_ITEMS; i++) {
        if (caller->times_done[i] != (i < caller->task.num_items)) fail("an item was not done once");
    }
}

/* In the child there are no helpers, and another thread's job may have been under way. */
static void fork_and_check(Caller *caller) {
#ifdef __SANITIZE_THREAD__
    (void)caller; /* that sanitizer cannot start threads in a child */
#else
    int status;
    pid_t child = fork();
    if (child < 0) fail("no fork");
    if (child == 0) {
        for (int i = 0; i < 20; i++) run_and_check(caller);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) fail("a forked child failed");
#endif
}

static void *call(void *argument) {
    Caller *caller = argument;
    for (int32_t round = 0; round < caller->rounds; round++) {
        if (round % 16 == 0) change_task(caller);
        run_and_check(caller);
        if (round % 128 == 64) fork_and_check(caller);
        if (pick(caller, 500) == 0) nanosleep(&(struct timespec){0, 1000000}, NULL); /* helpers fall asleep */
    }
    return NULL;
}

/* Nobody may work on a run that was stopped after it has returned. */
static void stop_and_check(Caller *caller, int32_t threads) {
    int32_t times_done[SLOW_ITEMS];
    caller->task = (PufferTask){.work = work,
                                .context = caller,
                                .stop = stop_at_second_question,
                                .owner = caller,
                                .num_items = SLOW_ITEMS,
                                .threads = threads};
    caller->sleep_ns = SLOW_ITEM_NS;
    caller->questions = 0;
    memset(caller->times_done, 0, sizeof caller->times_done);
    int outcome = puffer_pool_run(&caller->task);
    memcpy(times_done, caller->times_done, sizeof times_done);
    if (threads == 1 && outcome != PUFFER_STOPPED) fail("a run was not stopped");
    for (int32_t i = 0; i < SLOW_ITEMS; i++) {
        if (times_done[i] > 1 || (outcome == 0 && times_done[i] == 0)) fail("an item was not done once");
    }
    caller->sleep_ns = 0;
    change_task(caller);
    run_and_check(caller);
}

int main(int count, char **arguments) {
    static Caller callers[CALLERS];
    pthread_t threads[CALLERS];
    if (count != 3) return 2;
    for (int i = 0; i < CALLERS; i++) {
        callers[i].rounds = atoi(arguments[1]) / CALLERS;
        callers[i].random = (uint64_t)atoll(arguments[2]) + (uint64_t)i;
        if (pthread_create(&threads[i], NULL, call, &callers[i]) != 0) fail("no thread");
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    for (int32_t width = 1; width <= 3; width++) stop_and_check(&callers[0], width);
    return 0;
}
