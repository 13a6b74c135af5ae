/* The wait primitive sleeps at once, or yields its core first. Built with the sanitizers. */
#include <sched.h>
#include <stdio.h>

static int yields;

static int count_yield(void) {
    yields++;
    return 0;
}

#define sched_yield count_yield
#include "puffer_wait.h"

enum { SHORT_NS = 5000, MIDDLE_NS = 400000, OUTLIER_NS = 1000000000, MANY = 40 };

static int failures;

static PufferWaitPolicy after(PufferWaitPolicy policy, int times, int64_t ns) {
    for (int i = 0; i < times; i++) puffer_record_wait(&policy, ns);
    return policy;
}

static void check(const char *about, PufferWaitPolicy policy, bool lends) {
    PufferSignal signal = {0};
    yields = 0;
    puffer_signal_wait(&signal, 0, &policy, 1000);
    if ((yields > 0) == lends) return;
    fprintf(stderr, "%s: %d times\n", about, yields);
    failures++;
}

int main(void) {
    PufferWaitPolicy own = puffer_wait_policy(true), alone = puffer_wait_policy(false), crowded = alone;
    puffer_expect_contention(&own, true);
    puffer_expect_contention(&crowded, true);
    check("at first it lends", crowded, true);
    check("after middling waits, with others at work, it sleeps", after(crowded, MANY, MIDDLE_NS), false);
    check("with nobody else at work it lends", after(alone, MANY, MIDDLE_NS), true);
    check("on a core of its own it lends", after(own, MANY, MIDDLE_NS), true);
    check("after long waits it always sleeps", after(own, MANY, OUTLIER_NS), false);
    check("one long wait changes nothing", after(after(crowded, MANY, SHORT_NS), 1, OUTLIER_NS), true);
    check("short waits make it lend again", after(after(crowded, MANY, MIDDLE_NS), MANY, SHORT_NS), true);
    PufferWaitPolicy changed = after(crowded, MANY, MIDDLE_NS);
    puffer_expect_contention(&changed, false);
    check("when the others are waited for too it lends", changed, true);
    return failures > 0;
}
