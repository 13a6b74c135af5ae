/* How threads and processes wait for one another: spin for a moment, then lend the core, then sleep.
 *
 * One side changes a number, the other waits until it is no longer what it last saw. Steps are often
 * far shorter than a sleep and its wake-up (tens of microseconds across cores, for both sides), so
 * sleeping at once is slow. Spinning without lending the core is a thousand times slower as soon as
 * there are more waiters than cores: each burns the time slice that another needs. Sleeping is for
 * long gaps, and costs no processor time.
 *
 * A PufferSignal may lie in memory that several processes share; zeroed bytes are a ready signal. On
 * Linux the sleep is a futex; elsewhere it is a series of short naps, which is correct but slower.
 */
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

#define PUFFER_FOREVER_NS (INT64_C(3600) * 1000000000) /* a wait without end, for those who wait again */

/* A number to wait for, on a cache line of its own. */
typedef struct PufferSignal {
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers; /* waiters that need a system call to wake up */
} PufferSignal;

/* How one waiter waits; its own memory, never shared. */
typedef struct PufferWaitPolicy {
    int64_t spin_ns;     /* 0 when there are more waiters than cores */
    int64_t yield_ns;    /* lending the core, before the sleep */
    int64_t long_ns;     /* a wait that is expected to take longer than this begins with the sleep */
    int64_t expected_ns; /* a running mean of what waits have taken */
} PufferWaitPolicy;

typedef enum PufferWait {
    PUFFER_TIMED_OUT,
    PUFFER_CHANGED,
    PUFFER_INTERRUPTED, /* a Unix signal came: look at it, then wait on */
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

/* Tell the core that this is a loop that waits. */
static inline void puffer_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* `fits`: whether all participants have a core of their own. */
static inline PufferWaitPolicy puffer_wait_policy(bool fits) {
    return (PufferWaitPolicy){
        .spin_ns = fits ? PUFFER_SPIN_NS : 0,
        .yield_ns = PUFFER_YIELD_NS,
        .long_ns = PUFFER_LONG_WAIT_NS,
    };
}

/* For a waiter that shares cores: whether others than those it waits for are at work too.
 *
 * Then the core that it lends may go to one of those until a time slice ends, and what the waiter waits for
 * does not bring it back, as it would bring back a sleeper. So it pays to sleep much earlier.
 */
static inline void puffer_expect_contention(PufferWaitPolicy *policy, bool are_there) {
    policy->long_ns = are_there && policy->spin_ns == 0 ? PUFFER_YIELD_NS : PUFFER_LONG_WAIT_NS;
}

/* A wait took so long. Those far longer than usual count as twice a long one, so that one alone decides
 * nothing. */
static inline void puffer_record_wait(PufferWaitPolicy *policy, int64_t ns) {
    int64_t most = 2 * policy->long_ns;
    policy->expected_ns += ((ns < most ? ns : most) - policy->expected_ns) / PUFFER_MEAN_OF;
}

static inline uint32_t puffer_signal_read(PufferSignal *signal) {
    return atomic_load_explicit(&signal->value, memory_order_acquire);
}

/* Sleep while the value is `last`, `ns` at most. May return early. */
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

/* Wake whoever sleeps until the number changes. */
static inline void puffer_signal_wake(PufferSignal *signal) {
    if (atomic_load(&signal->sleepers) != 0) puffer_wake(signal);
}

/* Change the number, and wake nobody yet: waking up one waiter takes long, and others are to be told. */
static inline void puffer_signal_write(PufferSignal *signal, uint32_t value) {
    atomic_store(&signal->value, value);
}

/* Add one to the number, which several sides may do, and wake whoever sleeps until it changes. Everything
 * written before is seen by them: with both sides sequentially consistent, either we see the sleeper, or it
 * sees the new value. */
static inline void puffer_signal_add(PufferSignal *signal) {
    atomic_fetch_add(&signal->value, 1);
    puffer_signal_wake(signal);
}

/* Take `amount` off the number, which several sides may do. Whoever sleeps is woken when it is 0. */
static inline void puffer_signal_subtract(PufferSignal *signal, uint32_t amount) {
    if (atomic_fetch_sub(&signal->value, amount) == amount) puffer_signal_wake(signal);
}

/* Whether a number that only grows, and begins anew after 2^32, is at `target` or beyond. */
static inline bool puffer_has_reached(uint32_t number, uint32_t target) {
    return (int32_t)(number - target) >= 0;
}

/* Whether a number is what somebody waits for: to be at `number` or beyond, or, not `grows`, another one. */
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

/* Wait until the number is no longer `last`, `timeout_ns` at most. */
static inline PufferWait puffer_signal_wait(PufferSignal *signal, uint32_t last, PufferWaitPolicy *policy,
                                            int64_t timeout_ns) {
    return puffer_wait_until(signal, last, false, policy, timeout_ns);
}

/* Wait until a number that only grows is at `target` or beyond, `timeout_ns` at most. Those who add to it
 * need wake nobody before. */
static inline PufferWait puffer_signal_wait_for(PufferSignal *signal, uint32_t target,
                                                PufferWaitPolicy *policy, int64_t timeout_ns) {
    return puffer_wait_until(signal, target, true, policy, timeout_ns);
}

#endif
