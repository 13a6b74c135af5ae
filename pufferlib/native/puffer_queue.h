/* A queue of numbered items that one owner sends to workers and gets back in the order in which they finish.
 *
 * Each of `size` items is owned by the owner, sent, claimed by a worker, or finished. Two rings of `size`
 * places therefore never overflow, and positions in them only increase. A worker reads the places before it
 * claims them. A successful claim proves that no other worker had them and that the owner had not overwritten
 * them. Reading after the claim could return items of the next round.
 *
 * Only one thread at a time may act as the owner. Only the owner ever waits, for `changed`. */
#ifndef PUFFER_QUEUE_H
#define PUFFER_QUEUE_H

#include <stdlib.h>
#include <string.h>

#include "puffer_wait.h"

typedef struct PufferQueue {
    int32_t size;
    _Atomic int32_t *sent;     /* [size] items, from `claimed` to `pushed` */
    _Atomic int32_t *finished; /* [size] 1 + item; 0: none yet */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t claimed;
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t pushed;  /* written by the owner only */
    _Alignas(PUFFER_CACHE_LINE) _Atomic uint64_t written; /* number of assigned places of `finished` */
    int32_t next;                                         /* next place of `finished` that the owner reads */
    PufferSignal changed;                                 /* signalled when items finish */
} PufferQueue;

static inline void puffer_queue_destroy(PufferQueue *queue) {
    free((void *)queue->sent);
    free((void *)queue->finished);
    memset(queue, 0, sizeof *queue);
}

/* The queue must be zeroed. Returns false if there is no memory. */
static inline bool puffer_queue_create(PufferQueue *queue, int32_t size) {
    queue->size = size;
    queue->sent = calloc((size_t)size, sizeof *queue->sent);
    queue->finished = calloc((size_t)size, sizeof *queue->finished);
    if (queue->sent != NULL && queue->finished != NULL) return true;
    puffer_queue_destroy(queue);
    return false;
}

/* Number of items that were sent but not claimed. */
static inline int32_t puffer_queue_waiting(PufferQueue *queue) {
    const uint64_t claimed = atomic_load_explicit(&queue->claimed, memory_order_acquire);
    return (int32_t)(atomic_load_explicit(&queue->pushed, memory_order_acquire) - claimed);
}

/* Sends `count` items that the owner has. If `things` is NULL, sends the first ones. */
static inline void puffer_queue_push(PufferQueue *queue, const int32_t *things, int32_t count) {
    const uint64_t first = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    uint64_t place = first % (uint64_t)queue->size;
    for (int32_t i = 0; i < count; i++) {
        atomic_store_explicit(&queue->sent[place], things == NULL ? i : things[i], memory_order_relaxed);
        if (++place == (uint64_t)queue->size) place = 0;
    }
    atomic_store_explicit(&queue->pushed, first + (uint64_t)count, memory_order_release);
}

/* Claims up to `most` items in the order in which they were sent. Returns their number. */
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

/* Returns claimed items to the owner. */
static inline void puffer_queue_finish(PufferQueue *queue, const int32_t *things, int32_t count) {
    uint64_t place = atomic_fetch_add(&queue->written, (uint64_t)count) % (uint64_t)queue->size;
    for (int32_t i = 0; i < count; i++) {
        atomic_store_explicit(&queue->finished[place], things[i] + 1, memory_order_release);
        if (++place == (uint64_t)queue->size) place = 0;
    }
    puffer_signal_add(&queue->changed);
}

/* Takes the next finished item, or returns -1 if there is none. */
static inline int32_t puffer_queue_take(PufferQueue *queue) {
    _Atomic int32_t *place = &queue->finished[queue->next];
    const int32_t thing = atomic_load_explicit(place, memory_order_acquire) - 1;
    if (thing < 0) return -1;
    atomic_store_explicit(place, 0, memory_order_relaxed);
    if (++queue->next == queue->size) queue->next = 0;
    return thing;
}

#endif
