/* The text of a mission. */
#ifndef MINIGRID_MISSION_H
#define MINIGRID_MISSION_H

#include "levels.h"

enum { MINIGRID_MISSION_BYTES = 96, MINIGRID_INSTRUCTION_BYTES = 512 };

/* Returns the number of bytes for the mission in an observation. */
static inline int32_t minigrid_mission_bytes(const MiniGrid *env) {
    return minigrid_level(env)->world->task == MINIGRID_FOLLOW ? MINIGRID_INSTRUCTION_BYTES
                                                               : MINIGRID_MISSION_BYTES;
}

static const char *const minigrid_kind_names[] = {
    [MINIGRID_DOOR] = "door", [MINIGRID_KEY] = "key", [MINIGRID_BALL] = "ball", [MINIGRID_BOX] = "box"};

static const char *const minigrid_color_names[] = {[MINIGRID_RED] = "red",       [MINIGRID_GREEN] = "green",
                                                   [MINIGRID_BLUE] = "blue",     [MINIGRID_PURPLE] = "purple",
                                                   [MINIGRID_YELLOW] = "yellow", [MINIGRID_GREY] = "grey"};

static inline size_t minigrid_append(char *text, size_t size, size_t length, const char *words) {
    while (*words != '\0' && length + 1 < size) text[length++] = *words++;
    text[length] = '\0';
    return length;
}

static inline size_t minigrid_append_object(char *text, size_t size, size_t length, MiniGridCell object) {
    length = minigrid_append(text, size, length, minigrid_color_names[object.color]);
    length = minigrid_append(text, size, length, " ");
    return minigrid_append(text, size, length, minigrid_kind_names[object.kind]);
}

/* ---- Instructions of BabyAI ---------------------------------------------------------------------------- */

static inline size_t minigrid_append_description(char *text, size_t size, size_t length,
                                                 MiniGridDescription wanted) {
    static const char *const places[] = {[MINIGRID_ON_LEFT] = " on your left",
                                         [MINIGRID_ON_RIGHT] = " on your right",
                                         [MINIGRID_IN_FRONT] = " in front of you",
                                         [MINIGRID_BEHIND] = " behind you",
                                         [MINIGRID_ANYWHERE] = ""};
    length = minigrid_append(text, size, length, wanted.is_plural ? "a " : "the ");
    if (wanted.color != MINIGRID_ANY) {
        length = minigrid_append(text, size, length, minigrid_color_names[wanted.color]);
        length = minigrid_append(text, size, length, " ");
    }
    const char *kind = wanted.kind == MINIGRID_ANY ? "object" : minigrid_kind_names[wanted.kind];
    length = minigrid_append(text, size, length, kind);
    return minigrid_append(text, size, length, places[wanted.location]);
}

static inline size_t minigrid_append_part(char *text, size_t size, size_t length, const MiniGridPart *part) {
    static const char *const verbs[] = {[MINIGRID_GOES_TO] = "go to ",
                                        [MINIGRID_PICKS_UP] = "pick up ",
                                        [MINIGRID_OPENS] = "open ",
                                        [MINIGRID_PUTS_NEXT] = "put "};
    for (int32_t i = 0; i < part->count; i++) {
        const MiniGridClause *clause = &part->clauses[i];
        if (i > 0) length = minigrid_append(text, size, length, " and ");
        length = minigrid_append(text, size, length, verbs[clause->verb]);
        length = minigrid_append_description(text, size, length, clause->object);
        if (clause->verb != MINIGRID_PUTS_NEXT) continue;
        length = minigrid_append(text, size, length, " next to ");
        length = minigrid_append_description(text, size, length, clause->other);
    }
    return length;
}

static inline void minigrid_write_instruction(const MiniGridInstruction *instruction, char *text,
                                              size_t size) {
    size_t length = minigrid_append_part(text, size, 0, &instruction->parts[0]);
    if (instruction->order == MINIGRID_ALONE) return;
    const bool is_then = instruction->order == MINIGRID_THEN;
    length = minigrid_append(text, size, length, is_then ? ", then " : " after you ");
    minigrid_append_part(text, size, length, &instruction->parts[1]);
}

/* ---- The mission --------------------------------------------------------------------------------------- */

/* Writes the mission of the episode, ended by 0 and at most `size` bytes long, where size > 0. The signs in a
 * world's mission are %o for `object`, %p for `other`, %c and %d for their colors, and %f for the words with
 * which a mission to fetch begins. */
static inline void minigrid_mission(const MiniGrid *env, char *text, size_t size) {
    static const char *const openings[] = {"get", "go get", "fetch", "go fetch", "you must fetch"};
    size_t length = 0;
    text[0] = '\0';
    if (minigrid_level(env)->world->task == MINIGRID_FOLLOW) {
        minigrid_write_instruction(&env->instruction, text, size);
        return;
    }
    for (const char *sign = minigrid_level(env)->world->mission; *sign != '\0'; sign++) {
        if (*sign != '%') {
            length = minigrid_append(text, size, length, (char[]){*sign, '\0'});
            continue;
        }
        sign++;
        if (*sign == 'o') length = minigrid_append_object(text, size, length, env->object);
        if (*sign == 'p') length = minigrid_append_object(text, size, length, env->other);
        if (*sign == 'c')
            length = minigrid_append(text, size, length, minigrid_color_names[env->object.color]);
        if (*sign == 'd')
            length = minigrid_append(text, size, length, minigrid_color_names[env->other.color]);
        if (*sign == 'f') length = minigrid_append(text, size, length, openings[env->opening]);
    }
}

#endif
