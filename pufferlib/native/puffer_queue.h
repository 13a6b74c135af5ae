/* Numbered things that one owner sends to be worked on by anyone, and that come back as they are finished.
 *
 * Each of `size` things is either with the owner or on its way: sent, claimed by a worker, finished. So two
 * rings of `size` places never overflow, and positions in them only grow. A worker reads the places that it
 * wants before it claims them: a claim that succeeds proves that nobody had them, and so that the owner had not
 * written them anew. Read afterwards they might hold things of the next round already.
 *
 * The owner is one thread at a time. Nothing here waits but the owner, for `changed`.
 */
#ifndef PUFFER_QUEUE_H
#define PUFFER_QUEUE_H

#include <stdlib.h>
#include <string.h>

#include "puffer_wait.h"

typedef struct PufferQueue {
    int32_t size;
    _Atomic int32_t *sent;     /* [size] things, from `claimed` to `pushed` */
    _Atomic int32_t *finished; /* [size] 1 + thing; 0: none yet */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t claimed;
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t pushed;  /* changed by the owner only */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t written; /* places of `finished` that are given away */
    int32_t next;                                         /* place of `finished` that the owner takes next */
    PufferSignal changed;                                 /* something was finished */
} PufferQueue;

static inline void puffer_queue_destroy(PufferQueue *queue) {
    free((void *)queue->sent);
    free((void *)queue->finished);
    memset(queue, 0, sizeof *queue);
}

/* The queue is zeroed. False when there is no memory. */
static inline bool puffer_queue_create(PufferQueue *queue, int32_t size) {
    queue->size = size;
    queue->sent = calloc((size_t)size, sizeof *queue->sent);
    queue->finished = calloc((size_t)size, sizeof *queue->finished);
    if (queue->sent != NULL && queue->finished != NULL) return true;
    puffer_queue_destroy(queue);
    return false;
}

/* Sent and not claimed yet. */
static inline int32_t puffer_queue_waiting(PufferQueue *queue) {
    const uint64_t claimed = atomic_load_explicit(&queue->claimed, memory_order_acquire);
    return (int32_t)(atomic_load_explicit(&queue->pushed, memory_order_acquire) - claimed);
}

/* Send `count` things, which are with the owner; `things` NULL: the first ones. */
static inline void puffer_queue_push(PufferQueue *queue, const int32_t *things, int32_t count) {
    const uint64_t first = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    uint64_t place = first % (uint64_t)queue->size;
    for (int32_t i = 0; i < count; i++) {
        atomic_store_explicit(&queue->sent[place], things == NULL ? i : things[i], memory_order_relaxed);
        if (++place == (uint64_t)queue->size) place = 0;
    }
    atomic_store_explicit(&queue->pushed, first + (uint64_t)count, memory_order_release);
}

/* Claim up to `most` things, in the order in which they were sent. Returns how many. */
static inline int32_t puffer_queue_claim(PufferQueue *queue, int32_t *things, int32_t most) {
    uint64_t claimed = atomic_load_explicit(&queue->claimed, memory_order_acquire);
    for (;;) {
        const uint64_t left = atomic_load_explicit(&queue->pushed, memory_order_acquire) - claimed;
        const int32_t count = left < (uint64_t)most ? (int32_t)left : most;
        uint64_t place = claimed % (uint64_t)queue->size;
        for (int32_t i = 0; i < count; i++) {
            things[i] = atomic_load_explicit(&queue->sent[place], memory_order_relaxed);
            if (++place == (uint64_t)queue->size) place = 0;
        }
        if (count == 0) return 0;
        if (atomic_compare_exchange_weak(&queue->claimed, &claimed, claimed + (uint64_t)count)) return count;
    }
}

/* Give back things that were claimed. */
static inline void puffer_queue_finish(PufferQueue *queue, const int32_t *things, int32_t count) {
    uint64_t place = atomic_fetch_add(&queue->written, (uint64_t)count) % (uint64_t)queue->size;
    for (int32_t i = 0; i < count; i++) {
        atomic_store_explicit(&queue->finished[place], things[i] + 1, memory_order_release);
        if (++place == (uint64_t)queue->size) place = 0;
    }
    puffer_signal_add(&queue->changed);
}

/* Take the next finished thing back; -1 if there is none. */
static inline int32_t puffer_queue_take(PufferQueue *queue) {
    _Atomic int32_t *place = &queue->finished[queue->next];
    const int32_t thing = atomic_load_explicit(place, memory_order_acquire) - 1;
    if (thing < 0) return -1;
    atomic_store_explicit(place, 0, memory_order_relaxed);
    if (++queue->next == queue->size) queue->next = 0;
    return thing;
}

#endif
