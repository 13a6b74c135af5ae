/* Rendering of multiagent: eight agents, including the one that the image is drawn for, as discs with the
 * action that each should play, dark if it is absent. Below are its number and its last action, green if
 * right, red if wrong. */
#ifndef MULTIAGENT_RENDER_H
#define MULTIAGENT_RENDER_H

#include "multiagent.h"
#include "puffer_draw.h"

enum { MULTIAGENT_DRAWN = 8 };

static const PufferKey multiagent_keys[] = {
    {"0", 0, 0, "action 0"},
    {"1", 0, 1, "action 1"},
};

static inline void multiagent_draw_agent(const Multiagent *env, PufferCanvas *canvas, int32_t agent,
                                         int32_t x, int32_t radius) {
    static const char *const names[] = {
        [MULTIAGENT_ZERO] = "0", [MULTIAGENT_ONE] = "1", [MULTIAGENT_OTHER] = "-"};
    const int32_t played = env->shown[agent].played, right = MULTIAGENT_ZERO + agent % 2;
    const int32_t scale = radius / 6 > 0 ? radius / 6 : 1, left = x - 5 * scale / 2, up = 7 * scale / 2;
    const int32_t digits = 1 + (agent > 9) + (agent > 99) + (agent > 999);
    const uint32_t colour = agent % 2 == 0 ? DRAW_CYAN : DRAW_ORANGE;
    draw_disc(canvas, x, 84, radius, env->shown[agent].is_there ? colour : DRAW_SLATE);
    draw_text(canvas, left, 84 - up, scale, DRAW_NIGHT, names[right]);
    draw_rectangle(canvas, x - radius, 176 - radius, 2 * radius, 2 * radius,
                   played == MULTIAGENT_ABSENT ? DRAW_SLATE
                   : played == right           ? DRAW_GREEN
                                               : DRAW_RED);
    if (agent == canvas->agent) draw_arrow(canvas, x, 80 - radius);
    draw_number(canvas, x + draw_text_width(digits, 2) / 2, 122, 2, DRAW_WHITE, agent);
    if (played != MULTIAGENT_ABSENT) draw_text(canvas, left, 176 - up, scale, DRAW_WHITE, names[played]);
}

static inline void multiagent_draw(const Multiagent *env, PufferCanvas *canvas) {
    const int32_t first = canvas->agent < 0 ? 0 : canvas->agent / MULTIAGENT_DRAWN * MULTIAGENT_DRAWN;
    const int32_t rest = env->players - first, drawn = rest < MULTIAGENT_DRAWN ? rest : MULTIAGENT_DRAWN;
    const int32_t left = 110, pitch = (canvas->width - left) / drawn;
    const int32_t radius = pitch / 2 - 4 < 32 ? pitch / 2 - 4 : 32;
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 14, 77, 2, DRAW_WHITE, "SHOULD");
    draw_text(canvas, 14, 122, 2, DRAW_WHITE, "AGENT");
    draw_text(canvas, 14, 169, 2, DRAW_WHITE, "PLAYED");
    for (int32_t i = 0; i < drawn; i++) {
        multiagent_draw_agent(env, canvas, first + i, left + i * pitch + pitch / 2, radius);
    }
}

#endif
