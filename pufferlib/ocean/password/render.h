/* Rendering of password: the password, the guess so far and the previous complete guess, with right digits
 * green and wrong ones red. */
#ifndef PASSWORD_RENDER_H
#define PASSWORD_RENDER_H

#include "password.h"
#include "puffer_draw.h"

static const PufferKey password_keys[] = {
    {"0", 0, 0, "digit 0"},
    {"1", 0, 1, "digit 1"},
};

/* Draws the first `known` digits in a row of boxes, compared with the password. The other boxes are empty. */
static inline void password_draw_row(const Password *env, PufferCanvas *canvas, int32_t y, const char *title,
                                     uint32_t digits, int32_t known, bool compared) {
    const int32_t left = 150, pitch = (canvas->width - left - 10) / env->password_length;
    const int32_t box = pitch - 4 < 56 ? pitch - 4 : 56, scale = box / 9 > 0 ? box / 9 : 1;
    draw_text(canvas, 14, y + 22, 2, DRAW_WHITE, title);
    for (int32_t i = 0; i < env->password_length; i++) {
        const bool right = ((digits ^ env->password) >> i & 1) == 0;
        const uint32_t colour = i >= known || !compared ? DRAW_SLATE : right ? DRAW_GREEN : DRAW_RED;
        draw_rectangle(canvas, left + i * pitch, y, box, 56, colour);
        if (i >= known) continue;
        draw_text(canvas, left + i * pitch + (box - 5 * scale) / 2, y + 28 - 7 * scale / 2, scale, DRAW_WHITE,
                  digits >> i & 1 ? "1" : "0");
    }
}

static inline void password_draw(const Password *env, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    password_draw_row(env, canvas, 24, "PASSWORD", env->password, env->password_length, false);
    password_draw_row(env, canvas, 112, "GUESS", env->guess, env->game.episode_length, true);
    password_draw_row(env, canvas, 200, "LAST", env->last_guess, env->has_last ? env->password_length : 0,
                      true);
}

#endif
