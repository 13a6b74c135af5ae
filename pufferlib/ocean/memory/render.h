/* Rendering of memory: a box for each step in three groups: the digits shown, the wait, and the answers. The
 * box of the last step has a frame, right answers are green, and wrong ones red. */
#ifndef MEMORY_RENDER_H
#define MEMORY_RENDER_H

#include "memory.h"
#include "puffer_draw.h"

static const PufferKey memory_keys[] = {
    {"0", 0, 0, "digit 0, also while digits are shown"},
    {"1", 0, 1, "digit 1"},
};

/* Number of boxes for the wait. A long wait is shortened. */
static inline int32_t memory_drawn_delay(const Memory *env) {
    return env->mem_delay < 16 ? env->mem_delay : 16;
}

/* Box in which step `step` is drawn. */
static inline int32_t memory_box_of(const Memory *env, int32_t step) {
    const int32_t waited = step - env->mem_length;
    if (waited < 0) return step;
    if (waited >= env->mem_delay) return step - env->mem_delay + memory_drawn_delay(env);
    return env->mem_length + waited * memory_drawn_delay(env) / env->mem_delay;
}

/* The digit of a box, if it was shown or repeated by now, otherwise -1. */
static inline int32_t memory_known(const Memory *env, int32_t box) {
    const int32_t answer = box - env->mem_length - memory_drawn_delay(env);
    const int32_t step = env->game.episode_length;
    if (box < env->mem_length) return box <= step ? memory_digit(env, box) : -1;
    if (answer < 0 || step < answer + env->mem_length + env->mem_delay) return -1;
    return memory_digit(env, answer) ^ (env->wrong >> answer & 1);
}

static inline uint32_t memory_colour(const Memory *env, int32_t box) {
    const int32_t answer = box - env->mem_length - memory_drawn_delay(env);
    if (memory_known(env, box) < 0) return DRAW_SLATE;
    if (answer < 0) return DRAW_BLUE;
    return env->wrong >> answer & 1 ? DRAW_RED : DRAW_GREEN;
}

static inline void memory_draw_box(const Memory *env, PufferCanvas *canvas, int32_t box, int32_t pitch) {
    const int32_t side = pitch - pitch / 8 - 1, x = 14 + box * pitch, y = 80;
    const int32_t scale = side / 10 > 0 ? side / 10 : 1, known = memory_known(env, box);
    if (box == memory_box_of(env, env->game.episode_length)) {
        draw_rectangle(canvas, x - 4, y - 4, side + 8, side + 8, DRAW_YELLOW);
    }
    draw_rectangle(canvas, x, y, side, side, memory_colour(env, box));
    if (known < 0) return;
    draw_text(canvas, x + (side - 5 * scale) / 2, y + (side - 7 * scale) / 2, scale, DRAW_WHITE,
              known ? "1" : "0");
}

static inline void memory_draw(const Memory *env, PufferCanvas *canvas) {
    const int32_t boxes = 2 * env->mem_length + memory_drawn_delay(env);
    const int32_t pitch = (canvas->width - 28) / boxes < 80 ? (canvas->width - 28) / boxes : 80;
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 14, 40, 2, DRAW_BLUE, "WATCH");
    if (env->mem_delay > 1) draw_text(canvas, 14 + pitch * env->mem_length, 40, 2, DRAW_WHITE, "WAIT");
    draw_text(canvas, 14 + pitch * (boxes - env->mem_length), 40, 2, DRAW_GREEN, "RECITE");
    for (int32_t box = 0; box < boxes; box++) memory_draw_box(env, canvas, box, pitch);
    draw_bar(canvas, 14, 196, canvas->width - 28, 6, env->game.episode_length,
             2 * env->mem_length + env->mem_delay - 1, DRAW_YELLOW);
}

#endif
