/* Waiting between threads and processes: spin for a moment, then yield the core, then sleep.
 *
 * One side changes a number, and the other waits until it differs from the last value that it saw. Steps are
 * often far shorter than sleeping and waking up, which takes tens of microseconds across cores for both
 * sides, so sleeping immediately is slow. Spinning without yielding is a thousand times slower as soon as
 * there are more waiters than cores, because each wastes the time slice that another needs. Sleeping is for
 * long waits and uses no processor time.
 *
 * A PufferSignal may lie in memory shared by several processes. Zeroed memory is a valid signal. On Linux the
 * sleep is a futex. Elsewhere it is a series of short naps, which is correct but slower. */
#ifndef PUFFER_WAIT_H
#define PUFFER_WAIT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#ifdef __linux__
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { PUFFER_CACHE_LINE = 64 };

#define PUFFER_FOREVER_NS (INT64_C(3600) * 1000000000) /* an endless wait, for callers that wait in a loop */

/* A number to wait for, on its own cache line. */
typedef struct PufferSignal {
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers; /* waiters that need a system call to wake up */
} PufferSignal;

/* Settings and statistics of one waiter. Never shared. */
typedef struct PufferWaitPolicy {
    int64_t spin_ns;     /* 0 if there are more waiters than cores */
    int64_t yield_ns;    /* yielding time before the sleep */
    int64_t long_ns;     /* a wait that is expected to take longer starts with the sleep */
    int64_t expected_ns; /* running mean of the waiting times */
} PufferWaitPolicy;

typedef enum PufferWait {
    PUFFER_TIMED_OUT,
    PUFFER_CHANGED,
    PUFFER_INTERRUPTED, /* a Unix signal arrived: handle it, then wait again */
} PufferWait;

enum {
    PUFFER_SPIN_NS = 1500,
    PUFFER_YIELD_NS = 200000,
    PUFFER_LONG_WAIT_NS = 1000000, /* waking up costs 3 to 6 % of it */
    PUFFER_MEAN_OF = 8,
};

static inline int64_t puffer_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Hints to the CPU that this is a spin loop. */
static inline void puffer_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* `fits`: whether every participant has its own core. */
static inline PufferWaitPolicy puffer_wait_policy(bool fits) {
    return (PufferWaitPolicy){
        .spin_ns = fits ? PUFFER_SPIN_NS : 0,
        .yield_ns = PUFFER_YIELD_NS,
        .long_ns = PUFFER_LONG_WAIT_NS,
    };
}

/* For a waiter that shares cores: sets whether other processes than those it waits for are also busy.
 *
 * In that case a yielded core may go to one of them for a whole time slice, and the event that the waiter
 * waits for does not bring it back, as it would wake up a sleeper. Sleeping much earlier is then better. */
static inline void puffer_expect_contention(PufferWaitPolicy *policy, bool are_there) {
    policy->long_ns = are_there && policy->spin_ns == 0 ? PUFFER_YIELD_NS : PUFFER_LONG_WAIT_NS;
}

/* Records the duration of a wait. Outliers count as at most twice a long wait, so that a single one does not
 * decide. */
static inline void puffer_record_wait(PufferWaitPolicy *policy, int64_t ns) {
    int64_t most = 2 * policy->long_ns;
    policy->expected_ns += ((ns < most ? ns : most) - policy->expected_ns) / PUFFER_MEAN_OF;
}

static inline uint32_t puffer_signal_read(PufferSignal *signal) {
    return atomic_load_explicit(&signal->value, memory_order_acquire);
}

/* Sleeps while the value is `last`, at most `ns`. May return early. */
static inline PufferWait puffer_sleep(PufferSignal *signal, uint32_t last, int64_t ns) {
#ifdef __linux__
    struct timespec timeout = {ns / 1000000000, ns % 1000000000};
    if (syscall(SYS_futex, &signal->value, FUTEX_WAIT, last, &timeout, NULL, 0) == 0) return PUFFER_CHANGED;
    return errno == EINTR ? PUFFER_INTERRUPTED : errno == ETIMEDOUT ? PUFFER_TIMED_OUT : PUFFER_CHANGED;
#else
    struct timespec nap = {0, ns < 100000 ? ns : 100000};
    (void)signal, (void)last;
    return nanosleep(&nap, NULL) ? PUFFER_INTERRUPTED : PUFFER_TIMED_OUT;
#endif
}

static inline void puffer_wake(PufferSignal *signal) {
#ifdef __linux__
    syscall(SYS_futex, &signal->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
#else
    (void)signal;
#endif
}

/* Wakes all sleepers on the signal. */
static inline void puffer_signal_wake(PufferSignal *signal) {
    if (atomic_load(&signal->sleepers) != 0) puffer_wake(signal);
}

/* Changes the number without waking anyone. Waking up a waiter takes long, and other waiters must be
 * signalled first. */
static inline void puffer_signal_write(PufferSignal *signal, uint32_t value) {
    atomic_store(&signal->value, value);
}

/* Adds one to the number and wakes all sleepers. Several threads may call this. Sleepers see everything that
 * was written before: both sides are sequentially consistent, so either we see the sleeper, or it sees the
 * new value. */
static inline void puffer_signal_add(PufferSignal *signal) {
    atomic_fetch_add(&signal->value, 1);
    puffer_signal_wake(signal);
}

/* Subtracts `amount` from the number and wakes sleepers when it reaches 0. Several threads may call this. */
static inline void puffer_signal_subtract(PufferSignal *signal, uint32_t amount) {
    if (atomic_fetch_sub(&signal->value, amount) == amount) puffer_signal_wake(signal);
}

/* Returns whether an increasing number, which wraps around after 2^32, has reached `target`. */
static inline bool puffer_has_reached(uint32_t number, uint32_t target) {
    return (int32_t)(number - target) >= 0;
}

/* Returns whether a wait is over: the value has reached `number` if `grows`, or differs from `number`
 * otherwise. */
static inline bool puffer_wait_is_over(uint32_t value, uint32_t number, bool grows) {
    return grows ? puffer_has_reached(value, number) : value != number;
}

static inline PufferWait puffer_wait_until(PufferSignal *signal, uint32_t number, bool grows,
                                           PufferWaitPolicy *policy, int64_t timeout_ns) {
    uint32_t seen = puffer_signal_read(signal);
    if (puffer_wait_is_over(seen, number, grows)) return puffer_record_wait(policy, 0), PUFFER_CHANGED;
    int64_t start = puffer_now_ns(), now = start;
    while (now - start < policy->spin_ns) {
        for (int i = 0; i < 16; i++) {
            if (puffer_wait_is_over(puffer_signal_read(signal), number, grows))
                return puffer_record_wait(policy, now - start), PUFFER_CHANGED;
            puffer_pause();
        }
        now = puffer_now_ns();
    }
    while (policy->expected_ns < policy->long_ns && now - start < policy->yield_ns) {
        sched_yield();
        now = puffer_now_ns();
        if (puffer_wait_is_over(puffer_signal_read(signal), number, grows))
            return puffer_record_wait(policy, now - start), PUFFER_CHANGED;
    }
    PufferWait outcome = PUFFER_CHANGED;
    atomic_fetch_add(&signal->sleepers, 1);
    while (outcome != PUFFER_INTERRUPTED &&
           !puffer_wait_is_over(seen = atomic_load(&signal->value), number, grows)) {
        now = puffer_now_ns();
        if (now - start >= timeout_ns) break;
        outcome = puffer_sleep(signal, seen, timeout_ns - (now - start));
    }
    atomic_fetch_sub(&signal->sleepers, 1);
    puffer_record_wait(policy, puffer_now_ns() - start);
    if (puffer_wait_is_over(puffer_signal_read(signal), number, grows)) return PUFFER_CHANGED;
    return outcome == PUFFER_INTERRUPTED ? PUFFER_INTERRUPTED : PUFFER_TIMED_OUT;
}

/* Waits until the number differs from `last`, at most `timeout_ns`. */
static inline PufferWait puffer_signal_wait(PufferSignal *signal, uint32_t last, PufferWaitPolicy *policy,
                                            int64_t timeout_ns) {
    return puffer_wait_until(signal, last, false, policy, timeout_ns);
}

/* Waits until an increasing number has reached `target`, at most `timeout_ns`. Other sides need not wake this
 * waiter before that. */
static inline PufferWait puffer_signal_wait_for(PufferSignal *signal, uint32_t target,
                                                PufferWaitPolicy *policy, int64_t timeout_ns) {
    return puffer_wait_until(signal, target, true, policy, timeout_ns);
}

#endif
