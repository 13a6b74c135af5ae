/* A channel to workers of which each has several environments, and takes commands for one at a time.
 *
 * Each worker has a queue, first in, first out, so that what it has finished follows from a count. The
 * command of its slot is that of all entries that were ever put in, and is what it waits for; `completed` is
 * how many of them it has finished. An entry is a position among the worker's environments in the high bits,
 * and what to do there in the low ones. An environment has one entry at most, so that a queue of all of them,
 * and a few more, is never full.
 *
 * The parent says in `awaited` how many commands it sleeps for, so that a batch wakes it up once.
 */
#ifndef PUFFER_COMMANDS_H
#define PUFFER_COMMANDS_H

#include "puffer_channel.h"

static inline uint32_t puffer_commands_entry(uint32_t position, uint32_t operation) {
    return position << PUFFER_OPERATION_BITS | operation;
}

/* Put in the entry that has the number `number`. The worker sees it when its signal says so. `capacity`: a
 * power of 2. */
static inline void puffer_commands_put(uint32_t *entries, uint32_t capacity, uint32_t number,
                                       uint32_t entry) {
    entries[number & (capacity - 1)] = entry;
}

static inline uint32_t puffer_commands_get(const uint32_t *entries, uint32_t capacity, uint32_t number) {
    return entries[number & (capacity - 1)];
}

/* A worker's report: the first `number` entries are finished. Everything written before is seen by the
 * parent. */
static inline void puffer_commands_finish(PufferChannel *channel, int32_t worker, uint32_t number) {
    puffer_slot_write(&channel->slots[worker].completed, number);
    uint32_t count = atomic_fetch_add(&channel->finished.value, 1) + 1;
    if (atomic_load(&channel->finished.sleepers) != 0 &&
        puffer_has_reached(count, atomic_load(&channel->awaited)))
        puffer_wake(&channel->finished);
}

/* Prepare a worker's wait for its next command: after work that has taken so long, without a pause, it sleeps
 * at once. To lend the core would burn more than waking up costs. */
static inline void puffer_commands_rest(PufferWaitPolicy *policy, int64_t worked_ns) {
    policy->yield_ns = worked_ns < PUFFER_LONG_WAIT_NS ? PUFFER_YIELD_NS : 0;
}

/* Wait until the workers have finished `target` commands together, ever, `timeout_ns` at most. */
static inline PufferWait puffer_commands_wait(PufferChannel *channel, uint32_t target,
                                              PufferWaitPolicy *policy, int64_t timeout_ns) {
    atomic_store(&channel->awaited, target);
    return puffer_signal_wait_for(&channel->finished, target, policy, timeout_ns);
}

#endif
