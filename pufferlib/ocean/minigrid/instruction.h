/* An instruction of BabyAI, as a part of the state: clauses such as "pick up the red ball", one or two of
 * them joined by "and", and one or two of these parts joined by ", then" or "after you". */
#ifndef MINIGRID_INSTRUCTION_H
#define MINIGRID_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

enum { MINIGRID_ANY = -1 }; /* kind or color */

/* Where an object is for the agent when the episode starts, in the order of the package. */
enum {
    MINIGRID_ON_LEFT,
    MINIGRID_ON_RIGHT,
    MINIGRID_IN_FRONT,
    MINIGRID_BEHIND,
    MINIGRID_LOCATIONS,
    MINIGRID_ANYWHERE = MINIGRID_LOCATIONS
};

typedef struct {
    int8_t kind, color, location;
    bool is_plural; /* several objects match, and the text begins with "a" */
} MiniGridDescription;

/* Verbs, in the order of the package. */
typedef enum {
    MINIGRID_GOES_TO,
    MINIGRID_PICKS_UP,
    MINIGRID_OPENS,
    MINIGRID_PUTS_NEXT,
    MINIGRID_VERBS
} MiniGridVerb;

typedef struct {
    MiniGridDescription object, other; /* `other` is what an object is put next to */
    uint8_t verb;
    bool is_strict;  /* fails if a wrong door is opened, or a wrong object picked up */
    bool is_watched; /* it has been verified after an earlier action */
    bool is_done;
} MiniGridClause;

enum { MINIGRID_MAX_CLAUSES = 2, MINIGRID_MAX_PARTS = 2 };

typedef struct {
    MiniGridClause clauses[MINIGRID_MAX_CLAUSES];
    int32_t count;
} MiniGridPart;

typedef enum { MINIGRID_ALONE, MINIGRID_THEN, MINIGRID_AFTER } MiniGridOrder;

typedef struct {
    MiniGridPart parts[MINIGRID_MAX_PARTS];
    MiniGridOrder order; /* between the parts. MINIGRID_ALONE: there is only one */
    bool is_halfway;     /* the part that comes first is done */
} MiniGridInstruction;

static inline MiniGridDescription minigrid_describe(int32_t kind, int32_t color) {
    return (MiniGridDescription){(int8_t)kind, (int8_t)color, MINIGRID_ANYWHERE, false};
}

static inline MiniGridClause minigrid_clause(int32_t verb, MiniGridDescription object) {
    return (MiniGridClause){.verb = (uint8_t)verb, .object = object};
}

static inline MiniGridPart minigrid_part(MiniGridClause clause) {
    return (MiniGridPart){.clauses = {clause}, .count = 1};
}

static inline MiniGridInstruction minigrid_instruction(MiniGridClause clause) {
    return (MiniGridInstruction){.parts = {minigrid_part(clause)}, .order = MINIGRID_ALONE};
}

static inline int32_t minigrid_num_parts(const MiniGridInstruction *instruction) {
    return instruction->order == MINIGRID_ALONE ? 1 : 2;
}

/* Returns the number of ways that the agent has to go. The step limit of some levels depends on it. */
static inline int32_t minigrid_num_ways(const MiniGridInstruction *instruction) {
    int32_t ways = 0;
    for (int32_t i = 0; i < minigrid_num_parts(instruction); i++) {
        const MiniGridPart *part = &instruction->parts[i];
        for (int32_t j = 0; j < part->count; j++) ways += part->clauses[j].verb == MINIGRID_PUTS_NEXT ? 2 : 1;
    }
    return ways;
}

#endif
