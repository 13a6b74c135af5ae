# What the C environments and the pool of threads declare, and a list of it for Python.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "puffer_pool.h" nogil:
    ctypedef bint c_bool "bool"
    enum:
        PUFFER_MAX_THREADS
        PUFFER_HELPER_NS
        PUFFER_STOPPED
    ctypedef struct PufferTask:
        void (*work)(void *context, int32_t begin, int32_t end) noexcept nogil
        void *context
        c_bool (*stop)(void *owner) noexcept nogil
        void *owner
        int32_t num_items, threads, helper_ns
    int puffer_pool_prepare(int32_t threads)
    int puffer_pool_run(PufferTask *task)


cdef extern from "puffer_batch.h" nogil:
    enum: PUFFER_MAX_METRICS
    enum: PUFFER_BOX
    ctypedef enum PufferAutoreset:
        PUFFER_SAME_STEP
        PUFFER_NEXT_STEP
        PUFFER_DISABLED
    ctypedef struct PufferParameter:
        const char *name
        int type
        double value, low, high
        const char *about
    ctypedef struct PufferMetric:
        const char *name
        const char *about
    ctypedef struct PufferKey:
        const char *name
        int32_t component, value
        const char *about
    ctypedef struct PufferRange:
        int32_t offset, size
    ctypedef struct PufferArea:
        int32_t x, y, width, height
    ctypedef struct PufferSpec:
        int observation_type
        int32_t *observation_shape
        float observation_low, observation_high
        int action_kind
        int32_t *action_sizes
        c_bool agents_end
        PufferRange action_mask
        int32_t agents, picture_width, picture_height
        float frames_per_second
    ctypedef struct PufferCanvas:
        uint8_t *pixels
        int32_t width, height, agent
    ctypedef struct PufferRng:
        pass
    ctypedef struct PufferGame:
        PufferRng rng
    ctypedef struct PufferPixels "struct PufferPixels":
        uint8_t *rows
        uint8_t *final_rows
    ctypedef struct PufferBatch:
        const PufferEnvType *type
        PufferSpec spec
        PufferAutoreset autoreset
        int32_t num_games
        size_t game_bytes, observation_bytes
        char *games
        void *observations
        void *final_observations
        void *actions
        const void *given
        c_bool is_wide
        void *rewards
        void *terminals
        void *truncations
        void *masks
        PufferPixels *pixels
    ctypedef struct PufferEnvType:
        const char *name
        const char *class_name
        const char *about
        const PufferParameter *parameters
        int32_t num_parameters
        const PufferMetric *metrics
        int32_t num_metrics
        const PufferKey *keys
        int32_t num_keys
        c_bool (*area)(const void *game, int32_t agent, int32_t action, PufferArea *area) noexcept nogil
        void (*reset)(const PufferBatch *batch, int32_t begin, int32_t end) noexcept nogil
        void (*step)(const PufferBatch *batch, int32_t begin, int32_t end) noexcept nogil
        void (*draw)(const void *game, PufferCanvas *canvas) noexcept nogil

    const PufferEnvType *puffer_env_types[]
    int32_t puffer_num_dims(const int32_t *sizes)
    int32_t puffer_action_count(const PufferSpec *spec)
    const char *puffer_batch_create(PufferBatch *batch, const PufferEnvType *type, int32_t num_games,
                                    const double *values)
    void puffer_batch_destroy(PufferBatch *batch)
    void puffer_batch_bind(PufferBatch *batch)
    void puffer_copy_game(PufferBatch *to, const PufferBatch *source, int32_t index, const double *values)
    void puffer_take_actions(const PufferBatch *batch, int32_t begin, int32_t end)
    int64_t puffer_batch_report(const PufferBatch *batch, double *metrics, double *episode_return,
                                double *episode_length)
    PufferGame *puffer_game(const PufferBatch *batch, int32_t index)
    void puffer_seed(PufferRng *rng, uint64_t seed)


cdef extern from "puffer_pixels.h" nogil:
    c_bool puffer_pixels_create(PufferBatch *batch, int32_t height, int32_t width, int32_t threads)
    void puffer_pixels_destroy(PufferBatch *batch)
    void puffer_draw_games(const PufferBatch *batch, int32_t begin, int32_t end)
    c_bool puffer_scale_once(const uint8_t *picture, int32_t height, int32_t width, uint8_t *small,
                             int32_t small_height, int32_t small_width)


cdef list _sizes(const int32_t *sizes):
    return [sizes[i] for i in range(puffer_num_dims(sizes))]


def ocean_types():
    """What every C environment declares: a list of dicts in the order of their names."""
    cdef const PufferEnvType *kind
    cdef int i = 0, j
    types = []
    while puffer_env_types[i] is not NULL:
        kind = puffer_env_types[i]
        types.append({
            "index": i,
            "name": kind.name.decode(),
            "class_name": kind.class_name.decode(),
            "about": kind.about.decode(),
            "parameters": [
                {
                    "name": kind.parameters[j].name.decode(),
                    "type": chr(kind.parameters[j].type),
                    "default": kind.parameters[j].value,
                    "low": kind.parameters[j].low,
                    "high": kind.parameters[j].high,
                    "about": kind.parameters[j].about.decode(),
                }
                for j in range(kind.num_parameters)
            ],
            "metrics": {kind.metrics[j].name.decode(): kind.metrics[j].about.decode() for j in range(kind.num_metrics)},
            "keys": [
                {
                    "name": kind.keys[j].name.decode(),
                    "component": kind.keys[j].component,
                    "value": kind.keys[j].value,
                    "about": kind.keys[j].about.decode(),
                }
                for j in range(kind.num_keys)
            ],
        })
        i += 1
    return types
