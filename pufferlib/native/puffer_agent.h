/* An agent: maps an observation of an environment to an action for its step, one row at a time.
 *
 *   observation -> normalized fields -> network -> params, value -> actions
 *
 * It uses only memory that the caller provides. `puffer export --to c` writes this file, the files that it
 * includes and the weights of a policy into one file. */
#ifndef PUFFER_AGENT_H
#define PUFFER_AGENT_H

#include "puffer_network.h"

/* One array of an observation. */
typedef struct {
    char type; /* type of the numbers, see PufferInput */
    int32_t size, count, from, to;
    const double *means, *scales; /* for floating-point numbers; NULL: copied unchanged */
} PufferField;

typedef struct {
    const PufferField *fields; /* fields of observations that are normalized */
    int num_fields;            /* 0: the network reads the observation itself */
    double limit;              /* maximum magnitude of normalized numbers */
    int num_actions;           /* components of an action */
    /* Number of values of each component, 0 for a real number; NULL if all are real. */
    const int32_t *sizes;
    const int32_t *starts;
    const double *low, *high; /* bounds of each component; NULL if none is real */
    /* Environment action = center + scale * action of the network. NULL: they are the same. */
    const double *centers, *scales;
} PufferAgent;

/* State that changes while the agent acts, in memory of the caller. */
typedef struct {
    PufferScratch scratch;
    uint8_t *row; /* a row of normalized observations */
    float *memory[PUFFER_MAX_MEMORIES];
    float *params, *value; /* outputs of the last step */
    uint64_t *random;
    bool greedy;
} PufferActor;

static inline double puffer_number(char type, const uint8_t *from) {
    const int count = 1;
    double number = 0;
    switch (type) {
        PUFFER_EACH_INTEGER(number = (double)value);
        case 'e':
            PUFFER_EACH(uint16_t, number = (double)puffer_half(value));
        case 'f':
            PUFFER_EACH(float, number = (double)value);
        case 'd':
            PUFFER_EACH(double, number = value);
    }
    return number;
}

/* Copies the observation and normalizes its floating-point numbers. */
static inline void puffer_normalize(const PufferAgent *agent, const uint8_t *observation, uint8_t *row) {
    for (int f = 0; f < agent->num_fields; f++) {
        const PufferField *field = &agent->fields[f];
        if (field->means == NULL) {
            memcpy(row + field->to, observation + field->from, (size_t)field->count * (size_t)field->size);
            continue;
        }
        for (int i = 0; i < field->count; i++) {
            double number = puffer_number(field->type, observation + field->from + (long)i * field->size);
            number = (number - field->means[i]) * field->scales[i];
            number = number > agent->limit ? agent->limit : number;
            const float normalized = (float)(number < -agent->limit ? -agent->limit : number);
            memcpy(row + field->to + (long)i * 4, &normalized, sizeof(normalized));
        }
    }
}

/* Uniform in (0, 1], from SplitMix64. */
static inline float puffer_uniform(uint64_t *random) {
    uint64_t word = *random += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return (float)((word ^ (word >> 31)) >> 40) * 5.9604644775390625e-8f + 5.9604644775390625e-8f;
}

/* Returns the most likely of `size` values if `greedy`, otherwise a random one. */
static inline int puffer_choose_value(const float *logits, int size, bool greedy, uint64_t *random) {
    int chosen = 0;
    for (int i = 1; i < size; i++) chosen = logits[i] > logits[chosen] ? i : chosen;
    if (greedy) return chosen;
    const float most = logits[chosen];
    float sum = 0, reached = 0;
    for (int i = 0; i < size; i++) sum += logits[i] - most < -87 ? 0 : puffer_exp(logits[i] - most);
    const float target = sum * puffer_uniform(random);
    for (int i = 0; i < size && reached < target; i++) {
        const float weight = logits[i] - most < -87 ? 0 : puffer_exp(logits[i] - most);
        reached += weight;
        chosen = weight > 0 ? i : chosen;
    }
    return chosen;
}

/* Chooses a value for each component. */
static inline void puffer_choose_values(const PufferAgent *agent, const float *logits, bool greedy,
                                        uint64_t *random, int32_t *actions) {
    for (int i = 0; i < agent->num_actions; logits += agent->sizes[i++])
        actions[i] = agent->starts[i] + puffer_choose_value(logits, agent->sizes[i], greedy, random);
}

/* Samples a number for component i, or takes its mean if `greedy`, and clamps it to the bounds. Converts the parameters
 * to the units of the environment's actions first. */
static inline float puffer_choose_number(const PufferAgent *agent, int i, float *mean, float *log_std,
                                         bool greedy, uint64_t *random) {
    if (agent->scales) {
        *mean = (float)(agent->centers[i] + agent->scales[i] * *mean);
        *log_std += puffer_log((float)agent->scales[i]);
    }
    float number = *mean;
    if (!greedy) { /* Box and Muller (1958) */
        const float radius = sqrtf(-2 * puffer_log(puffer_uniform(random)));
        number += expf(*log_std) * radius * cosf(6.2831853f * puffer_uniform(random));
    }
    number = number > (float)agent->low[i] ? number : (float)agent->low[i];
    return number < (float)agent->high[i] ? number : (float)agent->high[i];
}

/* Chooses a number for each component, or a value where there are any. The parameters are the logits of all values, the
 * means of all numbers, and their log standard deviations. */
static inline void puffer_choose_numbers(const PufferAgent *agent, float *params, bool greedy,
                                         uint64_t *random, float *actions) {
    int logits = 0, numbers = 0;
    for (int i = 0; i < agent->num_actions; i++) {
        logits += agent->sizes ? agent->sizes[i] : 0;
        numbers += agent->sizes == NULL || agent->sizes[i] == 0;
    }
    float *mean = params + logits, *log_std = mean + numbers;
    for (int i = 0; i < agent->num_actions; i++) {
        const int size = agent->sizes ? agent->sizes[i] : 0;
        if (size == 0) {
            actions[i] = puffer_choose_number(agent, i, mean++, log_std++, greedy, random);
            continue;
        }
        actions[i] = (float)(agent->starts[i] + puffer_choose_value(params, size, greedy, random));
        params += size;
    }
}

/* Computes the actions, int32_t or float, for one observation. */
static inline void puffer_act(const PufferNetwork *net, const PufferAgent *agent, const PufferActor *actor,
                              const void *observation, void *actions) {
    const uint8_t *seen = (const uint8_t *)observation;
    if (agent->num_fields) puffer_normalize(agent, seen, actor->row), seen = actor->row;
    puffer_network_forward(net, &actor->scratch, seen, 1, actor->memory, actor->params, actor->value);
    if (agent->low == NULL)
        puffer_choose_values(agent, actor->params, actor->greedy, actor->random, (int32_t *)actions);
    else
        puffer_choose_numbers(agent, actor->params, actor->greedy, actor->random, (float *)actions);
}

#endif
