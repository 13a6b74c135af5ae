/* A network whose rows are divided among threads.
 *
 * The division does not change the results, since the result of a row does not depend on the other rows. */
#ifndef PUFFER_NETWORK_TASK_H
#define PUFFER_NETWORK_TASK_H

#include <errno.h>

#include "puffer_network_build.h"
#include "puffer_pool.h"

typedef struct {
    PufferTask task;
    const PufferNetwork *net;
    PufferScratch *scratches; /* one for each thread */
    _Atomic bool *taken;      /* whether each scratch is in use */
    const uint8_t *observations;
    float *memory[PUFFER_MAX_MEMORIES], *params, *values;
} PufferNetworkTask;

static void puffer_network_rows(void *context, int32_t begin, int32_t end) {
    PufferNetworkTask *own = context;
    int mine = 0; /* a helper of another task may be late, so for a moment none may be free */
    while (atomic_exchange_explicit(&own->taken[mine], true, memory_order_acquire))
        mine = (mine + 1) % own->task.threads;
    float *memory[PUFFER_MAX_MEMORIES];
    puffer_memory_of_row(own->net, own->memory, begin, memory);
    puffer_network_forward(own->net, &own->scratches[mine],
                           own->observations + (long)begin * own->net->row_bytes, end - begin, memory,
                           own->params + (long)begin * puffer_num_params(own->net), own->values + begin);
    atomic_store_explicit(&own->taken[mine], false, memory_order_release);
}

/* Returns 0, ENOMEM, or the errno if a helper could not be started. */
static inline int puffer_network_task_init(PufferNetworkTask *own, const PufferNetwork *net,
                                           const PufferKernels *kernels, int threads) {
    own->net = net;
    own->task = (PufferTask){
        .work = puffer_network_rows, .context = own, .threads = threads, .helper_ns = PUFFER_HELPER_NS};
    own->scratches = calloc(threads, sizeof(PufferScratch));
    own->taken = calloc(threads, sizeof(_Atomic bool));
    if (own->scratches == NULL || own->taken == NULL) return ENOMEM;
    for (int i = 0; i < threads; i++)
        if (!puffer_scratch_init(&own->scratches[i], net, kernels)) return ENOMEM;
    return puffer_pool_prepare(threads);
}

static inline void puffer_network_task_free(PufferNetworkTask *own) {
    for (int i = 0; own->scratches != NULL && i < own->task.threads; i++)
        puffer_scratch_free(&own->scratches[i]);
    free(own->scratches);
    free((void *)own->taken);
    memset(own, 0, sizeof(*own));
}

#endif
