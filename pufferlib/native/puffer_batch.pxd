# Declarations of puffer_batch.h and puffer_env.h.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as c_bool


cdef extern from "puffer_batch.h" nogil:
    enum: PUFFER_MAX_METRICS
    enum: PUFFER_MAX_INFOS
    enum: PUFFER_BOX
    enum: PUFFER_TEXT
    ctypedef enum PufferAutoreset:
        PUFFER_SAME_STEP
        PUFFER_NEXT_STEP
        PUFFER_DISABLED
    ctypedef struct PufferParameter:
        const char *name
        int type
        double value, low, high
        const char *about
    ctypedef union PufferValue:
        double number
        const char *text
    ctypedef struct PufferMetric:
        const char *name
        const char *about
    ctypedef struct PufferInfo:
        const char *name
        int type
        size_t offset, bytes
        double low, high
    ctypedef struct PufferKey:
        const char *name
        int32_t component, value
        const char *about
    ctypedef struct PufferRange:
        int32_t offset, size
    ctypedef struct PufferArea:
        int32_t x, y, width, height
    ctypedef struct PufferBounds:
        float low, high
    ctypedef struct PufferSpec:
        int observation_type
        int32_t *observation_shape
        const PufferBounds *observation_bounds
        int action_kind
        int32_t *action_sizes
        c_bool agents_end
        PufferRange action_mask
        int32_t agents, picture_width, picture_height
        float frames_per_second
        int32_t max_steps
    ctypedef struct PufferCanvas:
        uint8_t *pixels
        int32_t width, height, agent
    ctypedef struct PufferRng:
        pass
    ctypedef struct PufferGame:
        PufferRng rng
    ctypedef struct PufferLog:
        int32_t is_partial
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
        PufferLog *logs
        void *observations
        void *final_observations
        void *actions
        const void *given
        c_bool is_wide
        void *rewards
        void *terminals
        void *truncations
        void *masks
        c_bool joins_flags
        char *last_infos
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
        const PufferInfo *infos
        int32_t num_infos
        const PufferInfo *last_infos
        int32_t num_last_infos
        c_bool (*area)(const void *game, int32_t agent, int32_t action, PufferArea *area) noexcept nogil
        void (*reset)(const PufferBatch *batch, int32_t begin, int32_t end) noexcept nogil
        void (*step)(const PufferBatch *batch, int32_t begin, int32_t end) noexcept nogil
        void (*draw)(const void *game, PufferCanvas *canvas) noexcept nogil

    ctypedef struct PufferLibrary:
        const PufferEnvType *type

    const PufferEnvType *puffer_env_types[]
    c_bool puffer_library_fits(const PufferLibrary *library)
    int32_t puffer_num_dims(const int32_t *sizes)
    size_t puffer_number_bytes(int type)
    size_t puffer_row_numbers(const PufferSpec *spec)
    PufferBounds puffer_bounds_of(const PufferSpec *spec, size_t index)
    float puffer_action_limit(const PufferSpec *spec)
    int32_t puffer_action_count(const PufferSpec *spec)
    const char *puffer_batch_create(PufferBatch *batch, const PufferEnvType *type, int32_t num_games,
                                    const PufferValue *values)
    void puffer_batch_destroy(PufferBatch *batch)
    c_bool puffer_batch_replace_python(PufferBatch *batch)
    size_t puffer_last_info_bytes(const PufferEnvType *type)
    void puffer_batch_bind(const PufferBatch *batch)
    size_t puffer_state_bytes(const PufferBatch *batch)
    void puffer_save_game(const PufferBatch *batch, int32_t index, char *to)
    void puffer_load_game(const PufferBatch *batch, int32_t index, const char *state)
    void puffer_restart_game(const PufferBatch *batch, int32_t index, const char *state)
    void puffer_set_parameters(PufferGame *game, const PufferEnvType *type, const PufferValue *values)
    void puffer_take_actions(const PufferBatch *batch, int32_t begin, int32_t end)
    int64_t puffer_batch_report(const PufferBatch *batch, double *metrics, double *episode_return,
                                double *episode_length)
    PufferGame *puffer_game(const PufferBatch *batch, int32_t index)
    void puffer_seed_game(const PufferBatch *batch, int32_t index, uint64_t seed)
