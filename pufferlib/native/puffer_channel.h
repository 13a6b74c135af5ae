/* A parent process and its workers: commands out, completions back, through memory that they share.
 *
 * Each worker has a slot of two cache lines, one that only the parent writes and one that only the
 * worker writes. A command is one number, so that it appears at once: its serial number in the high
 * bits, what to do in the low ones. All workers add to one signal when they finish, and the parent
 * waits for that alone. Zeroed bytes are a channel with nothing to do.
 */
#ifndef PUFFER_CHANNEL_H
#define PUFFER_CHANNEL_H

#include "puffer_wait.h"

enum { PUFFER_OPERATION_BITS = 3, PUFFER_OPERATION_MASK = 7 };

typedef struct PufferSlot {
    PufferSignal command;                                   /* the last command; the parent writes it */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t completed; /* the last command that is finished */
    _Atomic uint32_t outcome;                               /* what the worker has to say of it; 0: nothing */
    _Atomic uint32_t core;                                  /* where it was seen last, plus 1; 0: never */
    _Atomic uint32_t progress;                              /* which of its environments it is in */
} PufferSlot;

typedef struct PufferChannel {
    PufferSignal finished; /* how many commands the workers have finished together */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t core; /* the parent's, plus 1; 0: of no concern */
    _Atomic uint32_t awaited; /* of finished commands, how many the parent sleeps for; of queues only */
    PufferSlot slots[];
} PufferChannel;

static inline uint32_t puffer_slot_read(_Atomic uint32_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline void puffer_slot_write(_Atomic uint32_t *word, uint32_t value) {
    atomic_store_explicit(word, value, memory_order_release);
}

static inline bool puffer_slot_is_idle(PufferSlot *slot) {
    uint32_t command = atomic_load_explicit(&slot->command.value, memory_order_relaxed);
    return puffer_slot_read(&slot->completed) == command;
}

#ifdef __linux__
enum { PUFFER_CORES = 4096, PUFFER_MASK_BITS = 8 * sizeof(unsigned long) };

/* The core that the caller is on, plus 1; 0 if the system does not say. */
static inline uint32_t puffer_core(void) {
    unsigned core = 0;
    return syscall(SYS_getcpu, &core, NULL, NULL) == 0 ? core + 1 : 0;
}

/* Whether the parent or one of the first `num_workers` was seen on a core. */
static inline bool puffer_channel_is_on(PufferChannel *channel, int32_t num_workers, uint32_t core) {
    bool found = puffer_slot_read(&channel->core) == core;
    for (int32_t i = 0; i < num_workers; i++) found |= puffer_slot_read(&channel->slots[i].core) == core;
    return found;
}

/* Leave a core that the parent or a worker of a lower number was seen on too, if there is one that nobody
 * was seen on. The scheduler may leave two busy processes on one core for seconds. The worker's affinity is
 * restored at once, so that it stays what the user made it, and the scheduler may move the worker on. */
static inline bool puffer_channel_leave_core(PufferChannel *channel, int32_t worker, int32_t num_workers) {
    uint32_t core = puffer_core();
    atomic_store_explicit(&channel->slots[worker].core, core, memory_order_relaxed);
    if (core == 0 || !puffer_channel_is_on(channel, worker, core)) return false;
    unsigned long allowed[PUFFER_CORES / PUFFER_MASK_BITS] = {0}, only[PUFFER_CORES / PUFFER_MASK_BITS] = {0};
    long size = syscall(SYS_sched_getaffinity, 0, sizeof allowed, allowed);
    for (uint32_t target = 0; size > 0 && target < PUFFER_CORES; target++) {
        unsigned long bit = 1UL << target % PUFFER_MASK_BITS;
        if (!(allowed[target / PUFFER_MASK_BITS] & bit) ||
            puffer_channel_is_on(channel, num_workers, target + 1))
            continue;
        only[target / PUFFER_MASK_BITS] = bit;
        if (syscall(SYS_sched_setaffinity, 0, size, only) != 0) return false;
        syscall(SYS_sched_setaffinity, 0, size, allowed);
        atomic_store_explicit(&channel->slots[worker].core, target + 1, memory_order_relaxed);
        return true;
    }
    return false;
}
#else
static inline uint32_t puffer_core(void) {
    return 0;
}

static inline bool puffer_channel_leave_core(PufferChannel *channel, int32_t worker, int32_t num_workers) {
    return (void)channel, (void)worker, (void)num_workers, false;
}
#endif

/* Tell the workers where the parent is, so that they leave its core. */
static inline void puffer_channel_publish_core(PufferChannel *channel) {
    atomic_store_explicit(&channel->core, puffer_core(), memory_order_relaxed);
}

/* Make the slot of a worker that is gone ready for the next one, which has nothing to do yet. */
static inline void puffer_slot_clear(PufferSlot *slot) {
    atomic_store(&slot->outcome, 0);
    atomic_store(&slot->progress, 0);
    atomic_store(&slot->core, 0);
    atomic_store(&slot->command.sleepers, 0);
    atomic_store(&slot->completed, atomic_load(&slot->command.value));
}

#endif
