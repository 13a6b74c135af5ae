/* Rendering of blackjack: the dealer's open card, the player's sum, and whether an ace counts 11. */
#ifndef BLACKJACK_RENDER_H
#define BLACKJACK_RENDER_H

#include "blackjack.h"
#include "puffer_draw.h"

static const PufferKey blackjack_keys[] = {
    {"space", 0, BLACKJACK_HIT, "hit"},
    {"enter", 0, BLACKJACK_STICK, "stick"},
};

static inline void blackjack_draw(const Blackjack *env, PufferCanvas *canvas) {
    const int32_t right = canvas->width - 30, sum = blackjack_sum(&env->player);
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 30, 30, 2, DRAW_WHITE, "DEALER SHOWS");
    draw_number(canvas, right, 24, 4, DRAW_ORANGE, env->open);
    draw_text(canvas, 30, 110, 2, DRAW_WHITE, "YOUR SUM");
    draw_number(canvas, right, 96, 6, sum > BLACKJACK_BEST ? DRAW_RED : DRAW_CYAN, sum);
    if (blackjack_is_soft(&env->player)) draw_text(canvas, 30, 150, 2, DRAW_YELLOW, "WITH AN ACE AS 11");
    draw_bar(canvas, 30, 200, canvas->width - 60, 10, sum < BLACKJACK_BEST ? sum : BLACKJACK_BEST,
             BLACKJACK_BEST, DRAW_CYAN);
}

#endif
