/* Preloaded into the process that rows.py runs in: requests to callgrind, and a clock that repeats itself.
 *
 * Our threads size their work by how long it took, which under callgrind differs from run to run.
 */
#include <time.h>
#include <valgrind/callgrind.h>

enum { TICK_NS = 1000, SECOND_NS = 1000000000 };

/* Time passes only when somebody reads it: a microsecond each time. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    static long long ns = SECOND_NS;
    (void)clock;
    ns += TICK_NS;
    *now = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
    return 0;
}

/* Count instructions, from 0. */
void begin_count(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

/* Write what was counted since begin_count, under a name. */
void end_count(const char *name) {
    CALLGRIND_DUMP_STATS_AT(name);
}
