/* Multiagent, drawn: the first agents as discs with the action that each should play, and below what it
 * played last, green if right, red if wrong. */
#ifndef MULTIAGENT_RENDER_H
#define MULTIAGENT_RENDER_H

#include "lib/draw.h"
#include "multiagent.h"

static inline void multiagent_draw_agent(const Multiagent *env, PufferCanvas *canvas, int32_t agent,
                                         int32_t x, int32_t radius) {
    const int32_t played = env->played[agent], scale = radius / 6 > 0 ? radius / 6 : 1;
    const int32_t left = x - 5 * scale / 2, up = 7 * scale / 2;
    const char *const names[] = {"0", "1", "-"};
    draw_disc(canvas, x, 84, radius, agent % 2 == 0 ? DRAW_CYAN : DRAW_ORANGE);
    draw_text(canvas, left, 84 - up, scale, DRAW_NIGHT, names[agent % 2]);
    draw_rectangle(canvas, x - radius, 176 - radius, 2 * radius, 2 * radius,
                   !env->has_played      ? DRAW_SLATE
                   : played == agent % 2 ? DRAW_GREEN
                                         : DRAW_RED);
    if (env->has_played) draw_text(canvas, left, 176 - up, scale, DRAW_WHITE, names[played]);
}

static inline void multiagent_draw(const Multiagent *env, PufferCanvas *canvas) {
    const int32_t drawn = env->players < MULTIAGENT_DRAWN ? env->players : MULTIAGENT_DRAWN;
    const int32_t left = 110, pitch = (canvas->width - left) / drawn;
    const int32_t radius = pitch / 2 - 4 < 32 ? pitch / 2 - 4 : 32;
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 14, 77, 2, DRAW_WHITE, "SHOULD");
    draw_text(canvas, 14, 169, 2, DRAW_WHITE, "PLAYED");
    for (int32_t agent = 0; agent < drawn; agent++) {
        multiagent_draw_agent(env, canvas, agent, left + agent * pitch + pitch / 2, radius);
    }
}

#endif
