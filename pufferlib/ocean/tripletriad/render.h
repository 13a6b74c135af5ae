/* Rendering of Triple Triad: the board between the two hands. A card has its owner's colour and its four
 * values. The selected card is raised, cards laid in the last step have a white edge, and captured cards have
 * a disc of their previous colour. The points and the winner are above, the remaining actions below. */
#ifndef TRIPLETRIAD_RENDER_H
#define TRIPLETRIAD_RENDER_H

#include "puffer_draw.h"
#include "tripletriad.h"

#define TRIPLETRIAD_FAINT 0x2F5866u

enum {
    TRIPLETRIAD_CARD = 108,     /* size of a card, px */
    TRIPLETRIAD_PITCH = 116,    /* from cell to cell */
    TRIPLETRIAD_LOW_CARD = 84,  /* height of a card in a hand */
    TRIPLETRIAD_LOW_PITCH = 92, /* from card to card in a hand */
    TRIPLETRIAD_TOP = 88,
    TRIPLETRIAD_MARGIN = 28,
};

/* The image shows them beside the cards and in the cells. */
static const PufferKey tripletriad_keys[] = {
    {"1", 0, 0, "select the first card"},
    {"2", 0, 1, "select the second card"},
    {"3", 0, 2, "select the third card"},
    {"4", 0, 3, "select the fourth card"},
    {"5", 0, 4, "select the fifth card"},
    {"a", 0, 5, "lay it on the upper left cell"},
    {"b", 0, 6, "lay it on the upper middle cell"},
    {"c", 0, 7, "lay it on the upper right cell"},
    {"d", 0, 8, "lay it on the middle left cell"},
    {"e", 0, 9, "lay it on the middle cell"},
    {"f", 0, 10, "lay it on the middle right cell"},
    {"g", 0, 11, "lay it on the lower left cell"},
    {"h", 0, 12, "lay it on the lower middle cell"},
    {"i", 0, 13, "lay it on the lower right cell"},
};

static const uint32_t tripletriad_colours[2] = {DRAW_CYAN, DRAW_ORANGE};
static const uint32_t tripletriad_shades[2] = {0x0B4A58u, 0x6B3D12u};

static inline void tripletriad_draw_value(PufferCanvas *canvas, int32_t x, int32_t y, int32_t value) {
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A"};
    draw_text(canvas, x - 7, y - 10, 3, DRAW_WHITE, names[value]);
}

static inline void tripletriad_draw_card(PufferCanvas *canvas, int32_t x, int32_t y, int32_t height,
                                         TripleTriadCard card, int32_t owner, uint32_t edge) {
    const int32_t width = TRIPLETRIAD_CARD, inset = 19;
    draw_rectangle(canvas, x, y, width, height, edge);
    draw_rectangle(canvas, x + 4, y + 4, width - 8, height - 8, tripletriad_shades[owner]);
    tripletriad_draw_value(canvas, x + width / 2, y + inset, card.values[TRIPLETRIAD_NORTH]);
    tripletriad_draw_value(canvas, x + width / 2, y + height - inset, card.values[TRIPLETRIAD_SOUTH]);
    tripletriad_draw_value(canvas, x + width - inset, y + height / 2, card.values[TRIPLETRIAD_EAST]);
    tripletriad_draw_value(canvas, x + inset, y + height / 2, card.values[TRIPLETRIAD_WEST]);
}

static inline void tripletriad_draw_hand(const TripleTriad *env, PufferCanvas *canvas, int32_t player,
                                         int32_t x) {
    for (int32_t i = 0; i < TRIPLETRIAD_HAND; i++) {
        const int32_t y = TRIPLETRIAD_TOP + TRIPLETRIAD_LOW_PITCH * i;
        if (player == TRIPLETRIAD_OWN) draw_number(canvas, 18, y + 35, 2, TRIPLETRIAD_FAINT, i + 1);
        const bool selected = player == env->mover && env->selected == i;
        if (env->in_hand[player] >> i & 1) {
            tripletriad_draw_card(canvas, selected ? x + 20 : x, y, TRIPLETRIAD_LOW_CARD,
                                  env->hands[player][i], player,
                                  selected ? DRAW_YELLOW : tripletriad_colours[player]);
        } else {
            draw_rectangle(canvas, x, y, TRIPLETRIAD_CARD, TRIPLETRIAD_LOW_CARD, DRAW_SLATE);
            draw_rectangle(canvas, x + 2, y + 2, TRIPLETRIAD_CARD - 4, TRIPLETRIAD_LOW_CARD - 4, DRAW_NIGHT);
        }
    }
}

static inline void tripletriad_draw_cell(const TripleTriad *env, PufferCanvas *canvas, int32_t cell,
                                         int32_t x, int32_t y) {
    static const char *const letters[TRIPLETRIAD_CELLS] = {"A", "B", "C", "D", "E", "F", "G", "H", "I"};
    const int32_t owner = env->owners[cell], middle = TRIPLETRIAD_CARD / 2;
    if (owner == TRIPLETRIAD_NOBODY) {
        draw_rectangle(canvas, x, y, TRIPLETRIAD_CARD, TRIPLETRIAD_CARD, DRAW_SLATE);
        draw_text(canvas, x + middle - 7, y + middle - 10, 3, TRIPLETRIAD_FAINT, letters[cell]);
        return;
    }
    tripletriad_draw_card(canvas, x, y, TRIPLETRIAD_CARD, env->board[cell], owner,
                          env->placed >> cell & 1 ? DRAW_WHITE : tripletriad_colours[owner]);
    if (env->taken >> cell & 1) {
        draw_disc(canvas, x + middle, y + middle, 11, tripletriad_colours[!owner]);
    }
}

static inline void tripletriad_draw_points(const TripleTriad *env, PufferCanvas *canvas) {
    const int32_t right = canvas->width - TRIPLETRIAD_MARGIN;
    const bool two = env->players == 2;
    draw_text(canvas, TRIPLETRIAD_MARGIN, 34, 3, DRAW_CYAN, two && canvas->agent != 0 ? "BLUE" : "YOU");
    draw_number(canvas, TRIPLETRIAD_MARGIN + TRIPLETRIAD_CARD, 28, 5, DRAW_CYAN,
                env->points[TRIPLETRIAD_OWN]);
    draw_text(canvas, right - draw_text_width(5, 3), 34, 3, DRAW_ORANGE,
              !two                 ? "RIVAL"
              : canvas->agent == 1 ? "  YOU"
                                   : "  RED");
    draw_number(canvas, right - draw_text_width(5, 3) - 20, 28, 5, DRAW_ORANGE,
                env->points[TRIPLETRIAD_RIVAL]);
}

static inline const char *tripletriad_headline(const TripleTriad *env) {
    const int32_t lead = env->points[TRIPLETRIAD_OWN] - env->points[TRIPLETRIAD_RIVAL];
    const bool two = env->players == 2;
    if (env->empty == 0 && lead > 0) return two ? "BLUE WINS" : "YOU WIN";
    if (env->empty == 0 && lead < 0) return two ? "RED WINS" : "RIVAL WINS";
    if (env->empty == 0) return "DRAW";
    if (two)
        return env->played[0] >= env->max_actions || env->played[1] >= env->max_actions ? "OUT OF ACTIONS"
                                                                                        : "";
    return env->game.episode_length >= env->max_actions ? "OUT OF ACTIONS" : "";
}

static inline void tripletriad_draw(const TripleTriad *env, PufferCanvas *canvas) {
    const int32_t left = (canvas->width - 2 * TRIPLETRIAD_PITCH - TRIPLETRIAD_CARD) / 2;
    const int32_t top = TRIPLETRIAD_TOP + (5 * TRIPLETRIAD_LOW_PITCH - 3 * TRIPLETRIAD_PITCH) / 2;
    const int32_t bottom = TRIPLETRIAD_TOP + 5 * TRIPLETRIAD_LOW_PITCH + 14;
    const char *headline = tripletriad_headline(env), *rule = "A HIGHER SIDE TAKES THE CARD";
    draw_clear(canvas, DRAW_NIGHT);
    tripletriad_draw_points(env, canvas);
    draw_text(canvas, (canvas->width - draw_text_width((int32_t)strlen(headline), 4)) / 2, 92, 4, DRAW_WHITE,
              headline);
    tripletriad_draw_hand(env, canvas, TRIPLETRIAD_OWN, TRIPLETRIAD_MARGIN);
    tripletriad_draw_hand(env, canvas, TRIPLETRIAD_RIVAL,
                          canvas->width - TRIPLETRIAD_MARGIN - TRIPLETRIAD_CARD);
    for (int32_t cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        tripletriad_draw_cell(env, canvas, cell, left + TRIPLETRIAD_PITCH * (cell % 3),
                              top + TRIPLETRIAD_PITCH * (cell / 3));
    }
    draw_text(canvas, (canvas->width - draw_text_width((int32_t)strlen(rule), 2)) / 2, bottom - 44, 2,
              DRAW_WHITE, rule);
    draw_text(canvas, TRIPLETRIAD_MARGIN, bottom, 2, DRAW_WHITE, "ACTIONS LEFT");
    draw_bar(canvas, TRIPLETRIAD_MARGIN + 160, bottom + 3, canvas->width - 160 - 2 * TRIPLETRIAD_MARGIN, 8,
             env->max_actions - (env->players == 2 ? env->played[env->mover] : env->game.episode_length),
             env->max_actions, DRAW_YELLOW);
}

#endif
