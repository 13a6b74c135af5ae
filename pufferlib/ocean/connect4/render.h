/* Rendering of connect4: the board with the discs of both sides, the last two with a white ring, and the
 * winning line in white. Above it the players and the state of the game, below it the column numbers. */
#ifndef CONNECT4_RENDER_H
#define CONNECT4_RENDER_H

#include "connect4.h"
#include "puffer_draw.h"

#define CONNECT4_FRAME  0x2A4BA0u /* the board */
#define CONNECT4_EDGE   0x1D3678u
#define CONNECT4_OWN    DRAW_YELLOW
#define CONNECT4_OTHER  DRAW_RED
#define CONNECT4_PITCH  76 /* px from cell to cell */
#define CONNECT4_LEFT   ((600 - CONNECT4_COLUMNS * CONNECT4_PITCH) / 2)
#define CONNECT4_TOP    84
#define CONNECT4_RADIUS 30

static const PufferKey connect4_keys[] = {
    {"1", 0, 0, "leftmost column"},  {"2", 0, 1, "second column"}, {"3", 0, 2, "third column"},
    {"4", 0, 3, "middle column"},    {"5", 0, 4, "fifth column"},  {"6", 0, 5, "sixth column"},
    {"7", 0, 6, "rightmost column"},
};

static inline bool connect4_area(const void *game, int32_t agent, int32_t action, PufferArea *area) {
    (void)game, (void)agent;
    *area = (PufferArea){CONNECT4_LEFT + CONNECT4_PITCH * action, CONNECT4_TOP, CONNECT4_PITCH,
                         CONNECT4_PITCH * CONNECT4_ROWS};
    return true;
}

static inline int32_t connect4_cell_x(int32_t column) {
    return CONNECT4_LEFT + CONNECT4_PITCH * column + CONNECT4_PITCH / 2;
}

static inline int32_t connect4_cell_y(int32_t row) {
    return CONNECT4_TOP + CONNECT4_PITCH * (CONNECT4_ROWS - 1 - row) + CONNECT4_PITCH / 2;
}

static inline void connect4_draw_cell(const Connect4 *env, PufferCanvas *canvas, int32_t column,
                                      int32_t row) {
    const uint64_t cell = (uint64_t)1 << (7 * column + row);
    const int32_t x = connect4_cell_x(column), y = connect4_cell_y(row);
    const bool own = env->own & cell, other = env->other & cell;
    const bool last = (env->own_last | env->other_last) & cell;
    draw_disc(canvas, x, y, CONNECT4_RADIUS + 3, last ? DRAW_WHITE : CONNECT4_EDGE);
    draw_disc(canvas, x, y, CONNECT4_RADIUS, own ? CONNECT4_OWN : other ? CONNECT4_OTHER : DRAW_NIGHT);
}

/* Draws a white line through every four of `side`. */
static inline void connect4_draw_lines(PufferCanvas *canvas, uint64_t side) {
    static const int32_t across[4] = {0, 1, 1, 1}, up[4] = {1, -1, 0, 1};
    for (int32_t i = 0; i < 4; i++) {
        const int32_t step = 7 * across[i] + up[i];
        uint64_t first = side & side >> step & side >> 2 * step & side >> 3 * step;
        for (; first != 0; first &= first - 1) {
            const int32_t bit = __builtin_ctzll(first), column = bit / 7, row = bit % 7;
            draw_line(canvas, connect4_cell_x(column), connect4_cell_y(row),
                      connect4_cell_x(column + 3 * across[i]), connect4_cell_y(row + 3 * up[i]), 11,
                      DRAW_WHITE);
        }
    }
}

static inline const char *connect4_headline(const Connect4 *env) {
    const bool two = env->players == 2;
    if (connect4_has_line(env->own)) return two ? "YELLOW WINS" : "YOU WIN";
    if (connect4_has_line(env->other)) return two ? "RED WINS" : "RIVAL WINS";
    if ((env->own | env->other) == CONNECT4_BOARD) return "DRAW";
    if (env->game.episode_length > 0 && env->own_last == 0) return "ILLEGAL";
    if (env->game.episode_length > 1 && env->other_last == 0) return "ILLEGAL";
    return "FOUR IN A LINE";
}

static inline void connect4_draw(const Connect4 *env, PufferCanvas *canvas) {
    const int32_t width = CONNECT4_COLUMNS * CONNECT4_PITCH, height = CONNECT4_ROWS * CONNECT4_PITCH;
    const char *headline = connect4_headline(env);
    const bool two = env->players == 2;
    const char *first = two && canvas->agent != 0 ? "YELLOW" : "YOU";
    const char *second = !two ? "RIVAL" : canvas->agent == 1 ? "YOU" : "RED";
    draw_clear(canvas, DRAW_NIGHT);
    draw_disc(canvas, CONNECT4_LEFT + 14, 40, 13, CONNECT4_OWN);
    draw_text(canvas, CONNECT4_LEFT + 38, 30, 3, CONNECT4_OWN, first);
    draw_disc(canvas, canvas->width - CONNECT4_LEFT - 14, 40, 13, CONNECT4_OTHER);
    draw_text(canvas, canvas->width - CONNECT4_LEFT - 38 - draw_text_width((int32_t)strlen(second), 3), 30, 3,
              CONNECT4_OTHER, second);
    draw_text(canvas, (canvas->width - draw_text_width((int32_t)strlen(headline), 3)) / 2, 30, 3, DRAW_WHITE,
              headline);
    draw_rectangle(canvas, CONNECT4_LEFT - 8, CONNECT4_TOP - 8, width + 16, height + 16, CONNECT4_EDGE);
    draw_rectangle(canvas, CONNECT4_LEFT - 4, CONNECT4_TOP - 4, width + 8, height + 8, CONNECT4_FRAME);
    for (int32_t column = 0; column < CONNECT4_COLUMNS; column++) {
        for (int32_t row = 0; row < CONNECT4_ROWS; row++) connect4_draw_cell(env, canvas, column, row);
        draw_number(canvas, connect4_cell_x(column) + 7, CONNECT4_TOP + height + 20, 3, DRAW_WHITE,
                    column + 1);
    }
    connect4_draw_lines(canvas, env->own);
    connect4_draw_lines(canvas, env->other);
}

#endif
