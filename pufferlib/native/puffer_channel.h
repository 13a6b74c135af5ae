/* A channel between a parent process and its workers, in shared memory. The parent sends commands, and the
 * workers report their completion.
 *
 * Each worker has a slot of two cache lines: only the parent writes one, and only the worker writes the
 * other. A command is a single number, so that it is written atomically. Its high bits are a serial number
 * and its low bits the operation. All workers add to one shared signal when they finish, and the parent waits
 * for that signal alone. Zeroed memory is a valid idle channel. */
#ifndef PUFFER_CHANNEL_H
#define PUFFER_CHANNEL_H

#include "puffer_wait.h"

enum { PUFFER_OPERATION_BITS = 3, PUFFER_OPERATION_MASK = 7 };

typedef struct PufferSlot {
    PufferSignal command;                                   /* the last command, written by the parent */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t completed; /* the last finished command */
    _Atomic uint32_t outcome;                               /* result of the command; 0: success */
    _Atomic uint32_t core;                                  /* last known core plus 1; 0: unknown */
    _Atomic uint32_t progress;                              /* index of the environment in progress */
} PufferSlot;

typedef struct PufferChannel {
    PufferSignal finished; /* total number of commands that the workers have finished */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint32_t core; /* core of the parent, plus 1; 0: ignored */
    _Atomic uint32_t awaited; /* number of finished commands that wakes the parent; queues only */
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

/* Returns the core of the caller plus 1, or 0 if the system does not report it. */
static inline uint32_t puffer_core(void) {
    unsigned core = 0;
    return syscall(SYS_getcpu, &core, NULL, NULL) == 0 ? core + 1 : 0;
}

/* Returns whether the parent or one of the first `num_workers` workers was last seen on a core. */
static inline bool puffer_channel_is_on(PufferChannel *channel, int32_t num_workers, uint32_t core) {
    bool found = puffer_slot_read(&channel->core) == core;
    for (int32_t i = 0; i < num_workers; i++) found |= puffer_slot_read(&channel->slots[i].core) == core;
    return found;
}

/* Leaves a core on which the parent or a worker with a lower number was also seen, if another core is free.
 * The scheduler may keep two busy processes on one core for seconds. The worker's affinity is restored
 * immediately, so that it stays as the user set it and the scheduler may still move the worker. */
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

/* Publishes the core of the parent, so that workers leave it. */
static inline void puffer_channel_publish_core(PufferChannel *channel) {
    atomic_store_explicit(&channel->core, puffer_core(), memory_order_relaxed);
}

/* Resets the slot of a worker that has exited, so that its replacement starts without a command. */
static inline void puffer_slot_clear(PufferSlot *slot) {
    atomic_store(&slot->outcome, 0);
    atomic_store(&slot->progress, 0);
    atomic_store(&slot->core, 0);
    atomic_store(&slot->command.sleepers, 0);
    atomic_store(&slot->completed, atomic_load(&slot->command.value));
}

#endif
