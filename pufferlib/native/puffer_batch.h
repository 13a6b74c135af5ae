/* A batch of games as its owner sees it: create, bind to buffers, report, destroy. The owners are the Python
 * binding and the native tests; an environment needs only puffer_env.h. */
#ifndef PUFFER_BATCH_H
#define PUFFER_BATCH_H

#include <stdlib.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

/* Every environment that was built, NULL at the end; written by CMake. */
extern const PufferEnvType *const puffer_env_types[];

/* True if the game of a library was compiled against structs like those of this file. */
static inline bool puffer_library_fits(const PufferLibrary *library) {
    const uint32_t layout[PUFFER_LAYOUT_SIZE] = PUFFER_LAYOUT;
    return memcmp(library->layout, layout, sizeof layout) == 0;
}

static inline int32_t puffer_num_dims(const int32_t *sizes) {
    int32_t count = 0;
    while (count < PUFFER_MAX_DIMS && sizes[count] > 0) count++;
    return count;
}

/* Numbers in one agent's observation. */
static inline size_t puffer_row_numbers(const PufferSpec *spec) {
    size_t numbers = 1;
    for (int32_t i = 0; i < puffer_num_dims(spec->observation_shape); i++) {
        numbers *= (size_t)spec->observation_shape[i];
    }
    return numbers;
}

static inline size_t puffer_row_bytes(const PufferSpec *spec) {
    const size_t size = spec->observation_type == PUFFER_FLOAT32 ? sizeof(float) : 1;
    return size * puffer_row_numbers(spec);
}

/* Numbers of four bytes in one agent's action. */
static inline int32_t puffer_action_count(const PufferSpec *spec) {
    if (spec->action_kind == PUFFER_BOX) return spec->action_sizes[0];
    return puffer_num_dims(spec->action_sizes);
}

static inline void puffer_set_parameter(char *game, const PufferParameter *parameter, double value) {
    void *field = game + parameter->offset;
    if (parameter->type == PUFFER_BOOL) {
        *(bool *)field = value != 0;
    } else if (parameter->type == PUFFER_INT32) {
        *(int32_t *)field = (int32_t)value;
    } else {
        *(float *)field = (float)value;
    }
}

static inline void puffer_set_parameters(PufferGame *game, const PufferEnvType *type, const double *values) {
    for (int32_t i = 0; i < type->num_parameters; i++) {
        puffer_set_parameter((char *)game, &type->parameters[i], values[i]);
    }
}

/* Bytes of one game with these parameters, a multiple of 16; 0 when there is no memory to find out. */
static inline size_t puffer_game_bytes(const PufferEnvType *type, const double *values) {
    if (type->bytes == NULL) return type->size;
    PufferGame *game = calloc(1, type->size);
    if (game == NULL) return 0;
    puffer_set_parameters(game, type, values);
    const size_t bytes = (type->bytes(game) + 15) / 16 * 16;
    free(game);
    return bytes;
}

/* Bounds of number `index` of a row. */
static inline PufferBounds puffer_bounds_of(const PufferSpec *spec, size_t index) {
    if (spec->observation_bounds != NULL) return spec->observation_bounds[index];
    return (PufferBounds){spec->observation_low, spec->observation_high};
}

/* True if a number of an observation may have the bounds: numbers of its type, in their order. */
static inline bool puffer_are_bounds(const PufferSpec *spec, PufferBounds bounds) {
    const float low = bounds.low, high = bounds.high;
    if (!(low <= high)) return false;
    if (spec->observation_type == PUFFER_UINT8) return low >= 0 && high <= UINT8_MAX;
    return spec->observation_type == PUFFER_FLOAT32 || (low >= INT8_MIN && high <= INT8_MAX);
}

static inline bool puffer_has_bounds(const PufferSpec *spec) {
    const size_t different = spec->observation_bounds != NULL ? puffer_row_numbers(spec) : 1;
    for (size_t i = 0; i < different; i++) {
        if (!puffer_are_bounds(spec, puffer_bounds_of(spec, i))) return false;
    }
    return true;
}

/* Each number of a PUFFER_BOX is between minus this and this. */
static inline float puffer_action_limit(const PufferSpec *spec) {
    return spec->action_limit == 0 ? 1 : spec->action_limit;
}

/* True if the mask lies in the observation and has a place for each value of each action. */
static inline bool puffer_is_mask(const PufferSpec *spec) {
    const PufferRange mask = spec->action_mask;
    int64_t values = 0, numbers = 1;
    if (mask.size == 0) return true;
    for (int32_t i = 0; i < puffer_num_dims(spec->action_sizes); i++) values += spec->action_sizes[i];
    for (int32_t i = 0; i < puffer_num_dims(spec->observation_shape); i++)
        numbers *= spec->observation_shape[i];
    return spec->action_kind != PUFFER_BOX && mask.size == values && mask.offset >= 0 &&
           mask.offset <= numbers - mask.size;
}

/* Returns NULL, or what is wrong with a spec. */
static inline const char *puffer_spec_problem(const PufferSpec *spec) {
    const PufferType type = spec->observation_type;
    if (type != PUFFER_INT8 && type != PUFFER_UINT8 && type != PUFFER_FLOAT32)
        return "spec: observation_type must be PUFFER_INT8, PUFFER_UINT8 or PUFFER_FLOAT32";
    if (puffer_num_dims(spec->observation_shape) == 0)
        return "spec: observation_shape must have at least one size";
    if (!puffer_has_bounds(spec))
        return "spec: observation_low and observation_high must be in order, and numbers of the "
               "observation_type";
    if (spec->action_kind > PUFFER_BOX || puffer_action_count(spec) == 0)
        return "spec: action_kind must be a PufferActionKind, and action_sizes have at least one size";
    if (!(spec->action_limit >= 0)) return "spec: action_limit must be at least 0";
    if (!puffer_is_mask(spec))
        return "spec: action_mask must lie in the observation, an element for each value of each action";
    if (spec->agents < 1) return "spec: agents must be at least 1";
    if (spec->picture_width < 1 || spec->picture_height < 1)
        return "spec: picture_width and picture_height must be at least 1";
    if (!(spec->frames_per_second > 0)) return "spec: frames_per_second must be above 0";
    return NULL;
}

static inline void puffer_batch_destroy(PufferBatch *batch) {
    free(batch->games);
    free(batch->logs);
    free(batch->over);
    batch->games = NULL;
    batch->logs = NULL;
    batch->over = NULL;
}

/* Allocate `num_games` games with these parameter values, one for each row of the table and in its range.
 * `autoreset` is "same_step" and may be changed before a reset.
 * Returns NULL, or a sentence about parameters that do not fit together; `batch->games` is NULL when there
 * is no memory or such a sentence. */
static inline const char *puffer_batch_create(PufferBatch *batch, const PufferEnvType *type,
                                              int32_t num_games, const double *values) {
    memset(batch, 0, sizeof *batch);
    batch->type = type;
    batch->num_games = num_games;
    batch->game_bytes = puffer_game_bytes(type, values);
    batch->games = batch->game_bytes == 0 ? NULL : calloc((size_t)num_games, batch->game_bytes);
    batch->logs = calloc((size_t)num_games, sizeof(PufferLog));
    batch->over = calloc((size_t)num_games, sizeof(bool));
    if (batch->games == NULL || batch->logs == NULL || batch->over == NULL) {
        puffer_batch_destroy(batch);
        return NULL;
    }
    if (type->prepare != NULL && !*type->prepared) type->prepare();
    *type->prepared = true;
    for (int32_t i = 0; i < num_games; i++) puffer_set_parameters(puffer_game(batch, i), type, values);
    const char *problem = type->spec(batch->games, &batch->spec);
    if (problem == NULL) problem = puffer_spec_problem(&batch->spec);
    if (problem != NULL) puffer_batch_destroy(batch);
    batch->observation_bytes = puffer_row_bytes(&batch->spec) * (size_t)batch->spec.agents;
    return problem;
}

/* Point a game to its rows. The buffers of `batch` are set. */
static inline void puffer_bind_game(const PufferBatch *batch, int32_t index) {
    const size_t agents = (size_t)batch->spec.agents, i = (size_t)index;
    const size_t action_bytes = (size_t)puffer_action_count(&batch->spec) * 4 * agents;
    PufferGame *game = puffer_game(batch, index);
    game->observations = batch->observations + i * batch->observation_bytes;
    game->actions = batch->actions + i * action_bytes;
    game->rewards = batch->rewards + i * agents;
    game->masks = batch->masks + i * agents;
    game->batch = batch;
    game->index = index;
}

static inline void puffer_batch_bind(const PufferBatch *batch) {
    for (int32_t i = 0; i < batch->num_games; i++) puffer_bind_game(batch, i);
}

/* The generator of a game as numpy has them; NULL where it has none. */
static inline PufferGenerator *puffer_generator(const PufferBatch *batch, int32_t index) {
    const size_t offset = batch->type->generator;
    return offset == 0 ? NULL : (PufferGenerator *)((char *)puffer_game(batch, index) + offset);
}

/* Seed all random numbers of a game. */
static inline void puffer_seed_game(const PufferBatch *batch, int32_t index, uint64_t seed) {
    PufferGenerator *generator = puffer_generator(batch, index);
    puffer_seed(&puffer_game(batch, index)->rng, seed);
    if (generator != NULL) puffer_seed_generator(generator, seed);
}

/* ---- State -------------------------------------------------------------------------------------- */

/* Memory that is part of a game's state. */
typedef struct {
    void *at;
    size_t bytes;
} PufferPart;

enum { PUFFER_STATE_PARTS = 8 };

/* Everything on which the steps to come depend, and what the rows show of the last one, but for final
 * observations. */
static inline void puffer_state_parts(const PufferBatch *batch, int32_t index,
                                      PufferPart parts[PUFFER_STATE_PARTS]) {
    const size_t agents = (size_t)batch->spec.agents, i = (size_t)index, first = i * agents;
    parts[0] = (PufferPart){puffer_game(batch, index), batch->game_bytes};
    parts[1] = (PufferPart){batch->observations + i * batch->observation_bytes, batch->observation_bytes};
    parts[2] = (PufferPart){batch->rewards + first, agents * sizeof(float)};
    parts[3] = (PufferPart){batch->terminals + first, agents * sizeof(bool)};
    parts[4] = (PufferPart){batch->truncations + first, agents * sizeof(bool)};
    parts[5] = (PufferPart){batch->masks + first, agents * sizeof(bool)};
    parts[6] = (PufferPart){batch->over + i, sizeof(bool)};
    parts[7] = (PufferPart){batch->logs + i, sizeof(PufferLog)};
}

/* Bytes of the state of one game. */
static inline size_t puffer_state_bytes(const PufferBatch *batch) {
    PufferPart parts[PUFFER_STATE_PARTS];
    size_t bytes = 0;
    puffer_state_parts(batch, 0, parts);
    for (int32_t i = 0; i < PUFFER_STATE_PARTS; i++) bytes += parts[i].bytes;
    return bytes;
}

/* Make the pointers of the game at `memory` relative to `base`, or with `is_back` absolute again. */
static inline void puffer_move_pointers(const PufferEnvType *type, char *memory, uintptr_t base,
                                        bool is_back) {
    for (int32_t i = 0; i < type->num_pointers; i++) {
        uintptr_t address;
        memcpy(&address, memory + type->pointers[i], sizeof address);
        if (address != 0) address = is_back ? address + base : address - base;
        memcpy(memory + type->pointers[i], &address, sizeof address);
    }
}

/* Addresses and the place in the batch are left out, so that equal states are equal bytes. */
static inline void puffer_save_game(const PufferBatch *batch, int32_t index, char *to) {
    PufferPart parts[PUFFER_STATE_PARTS];
    PufferGame head = *puffer_game(batch, index);
    char *at = to;
    puffer_state_parts(batch, index, parts);
    for (int32_t i = 0; i < PUFFER_STATE_PARTS; at += parts[i].bytes, i++)
        memcpy(at, parts[i].at, parts[i].bytes);
    head.observations = NULL;
    head.actions = NULL;
    head.rewards = NULL;
    head.masks = NULL;
    head.batch = NULL;
    head.index = 0;
    memcpy(to, &head, sizeof head);
    puffer_move_pointers(batch->type, to, (uintptr_t)puffer_game(batch, index), false);
}

/* Let game `index` be what a game of another batch of the type was when it was saved. */
static inline void puffer_load_game(const PufferBatch *batch, int32_t index, const char *from) {
    PufferPart parts[PUFFER_STATE_PARTS];
    puffer_state_parts(batch, index, parts);
    for (int32_t i = 0; i < PUFFER_STATE_PARTS; from += parts[i].bytes, i++)
        memcpy(parts[i].at, from, parts[i].bytes);
    puffer_bind_game(batch, index);
    puffer_move_pointers(batch->type, (char *)puffer_game(batch, index), (uintptr_t)puffer_game(batch, index),
                         true);
}

/* Begin the next episode of game `index` where another game was when it was saved: with random numbers of its
 * own, the outcome of its last step still in the rows, and left out of the reports. */
static inline void puffer_restart_game(const PufferBatch *batch, int32_t index, const char *from) {
    enum { GAME = 0, OBSERVATIONS = 1, MASKS = 5 };
    const PufferRng rng = puffer_game(batch, index)->rng;
    PufferGenerator *generator = puffer_generator(batch, index);
    const PufferGenerator own = generator != NULL ? *generator : (PufferGenerator){0};
    PufferPart parts[PUFFER_STATE_PARTS];
    puffer_state_parts(batch, index, parts);
    for (int32_t i = 0; i < PUFFER_STATE_PARTS; from += parts[i].bytes, i++)
        if (i == GAME || i == OBSERVATIONS || i == MASKS) memcpy(parts[i].at, from, parts[i].bytes);
    puffer_bind_game(batch, index);
    puffer_move_pointers(batch->type, (char *)puffer_game(batch, index), (uintptr_t)puffer_game(batch, index),
                         true);
    puffer_game(batch, index)->rng = rng;
    if (generator != NULL) *generator = own;
    batch->over[index] = false;
    batch->logs[index].is_partial = 1;
}

/* Narrow actions to 32 bits. What does not fit becomes the nearest number that does, because wrapping around
 * could make it a valid action. The first loop has no branches and nearly always suffices. */
static inline void puffer_narrow_actions(int32_t *to, const int64_t *from, int64_t count) {
    uint64_t misfit = 0;
    for (int64_t i = 0; i < count; i++) {
        to[i] = (int32_t)from[i];
        misfit |= ((uint64_t)from[i] + 0x80000000u) >> 32;
    }
    for (int64_t i = 0; misfit != 0 && i < count; i++) {
        to[i] = from[i] < INT32_MIN ? INT32_MIN : from[i] > INT32_MAX ? INT32_MAX : (int32_t)from[i];
    }
}

/* Bring the actions of games [begin, end) from where the caller has them. It is done in the thread that plays
 * them, because numbers which another core has just written are slow to read. */
static inline void puffer_take_actions(const PufferBatch *batch, int32_t begin, int32_t end) {
    if (batch->given == NULL) return;
    const size_t numbers = (size_t)puffer_action_count(&batch->spec) * (size_t)batch->spec.agents;
    const size_t first = numbers * (size_t)begin, count = numbers * (size_t)(end - begin);
    if (batch->is_wide) {
        puffer_narrow_actions((int32_t *)batch->actions + first, (const int64_t *)batch->given + first,
                              (int64_t)count);
    } else {
        memmove(batch->actions + 4 * first, (const char *)batch->given + 4 * first, 4 * count);
    }
}

/* Sum the games' logs into `total`, in the order of the games, and clear them. Returns the episodes. */
static inline int64_t puffer_batch_report(const PufferBatch *batch, double metrics[PUFFER_MAX_METRICS],
                                          double *episode_return, double *episode_length) {
    int64_t episodes = 0;
    memset(metrics, 0, PUFFER_MAX_METRICS * sizeof *metrics);
    *episode_return = *episode_length = 0;
    for (int32_t i = 0; i < batch->num_games; i++) {
        PufferLog *log = &batch->logs[i];
        if (log->episodes == 0) continue;
        for (int32_t j = 0; j < batch->type->num_metrics; j++) metrics[j] += log->metrics[j];
        *episode_return += log->episode_return;
        *episode_length += log->episode_length;
        episodes += log->episodes;
        *log = (PufferLog){.is_partial = log->is_partial};
    }
    return episodes;
}

#endif
