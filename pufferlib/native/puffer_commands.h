/* A channel to workers that have several environments each and receive commands for single environments.
 *
 * Each worker has a first-in, first-out queue, so that a count of finished entries identifies them. The
 * command in the slot of a worker is the total number of entries ever queued, and the worker waits for it to
 * change. `completed` is the number of entries that it has finished. An entry has the position among the
 * worker's environments in its high bits and the operation in its low bits. Each environment has at most one
 * entry in the queue, so a queue slightly larger than the number of environments never overflows.
 *
 * The parent writes to `awaited` how many finished commands it is waiting for, so that it wakes up once per
 * batch. */
#ifndef PUFFER_COMMANDS_H
#define PUFFER_COMMANDS_H

#include "puffer_channel.h"

static inline uint32_t puffer_commands_entry(uint32_t position, uint32_t operation) {
    return position << PUFFER_OPERATION_BITS | operation;
}

/* Writes the entry with serial number `number`. The worker sees it once its signal is updated. `capacity`
 * must be a power of 2. */
static inline void puffer_commands_put(uint32_t *entries, uint32_t capacity, uint32_t number,
                                       uint32_t entry) {
    entries[number & (capacity - 1)] = entry;
}

static inline uint32_t puffer_commands_get(const uint32_t *entries, uint32_t capacity, uint32_t number) {
    return entries[number & (capacity - 1)];
}

/* Reports that the first `number` entries are finished. The parent sees everything written before. */
static inline void puffer_commands_finish(PufferChannel *channel, int32_t worker, uint32_t number) {
    puffer_slot_write(&channel->slots[worker].completed, number);
    uint32_t count = atomic_fetch_add(&channel->finished.value, 1) + 1;
    if (atomic_load(&channel->finished.sleepers) != 0 &&
        puffer_has_reached(count, atomic_load(&channel->awaited)))
        puffer_wake(&channel->finished);
}

/* Prepares a worker's wait for its next command. After uninterrupted work of this duration the worker sleeps
 * immediately, because yielding the core would cost more than waking up. */
static inline void puffer_commands_rest(PufferWaitPolicy *policy, int64_t worked_ns) {
    policy->yield_ns = worked_ns < PUFFER_LONG_WAIT_NS ? PUFFER_YIELD_NS : 0;
}

/* Waits until the workers have finished `target` commands in total, at most `timeout_ns`. */
static inline PufferWait puffer_commands_wait(PufferChannel *channel, uint32_t target,
                                              PufferWaitPolicy *policy, int64_t timeout_ns) {
    atomic_store(&channel->awaited, target);
    return puffer_signal_wait_for(&channel->finished, target, policy, timeout_ns);
}

#endif
