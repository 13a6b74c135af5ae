/* Rendering of trash pickup: the grid with agents, trash and bins, and above it the locations of the trash.
 * The agent that the image is drawn for is on a yellow cell. */
#ifndef TRASH_PICKUP_RENDER_H
#define TRASH_PICKUP_RENDER_H

#include "puffer_draw.h"
#include "trash_pickup.h"

#define TRASH_FLOOR_COLOUR  0x1C3D4Au
#define TRASH_PAPER_COLOUR  0xE9DFC4u
#define TRASH_CREASE_COLOUR 0xB3A682u

static const PufferKey trash_pickup_keys[] = {
    {"up", 0, TRASH_UP, "move up"},
    {"down", 0, TRASH_DOWN, "move down"},
    {"left", 0, TRASH_LEFT, "move left"},
    {"right", 0, TRASH_RIGHT, "move right"},
};

/* A ball of paper in a square of `px`. */
static inline void trash_pickup_draw_piece(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px) {
    const int32_t middle_x = x + px / 2, middle_y = y + px / 2, radius = px / 3;
    draw_disc(canvas, middle_x, middle_y, radius, TRASH_PAPER_COLOUR);
    if (px < 12) return;
    draw_line(canvas, middle_x - radius / 2, middle_y - radius / 3, middle_x, middle_y, 1 + px / 24,
              TRASH_CREASE_COLOUR);
    draw_line(canvas, middle_x, middle_y, middle_x + radius / 2, middle_y - radius / 2, 1 + px / 24,
              TRASH_CREASE_COLOUR);
    draw_line(canvas, middle_x, middle_y, middle_x - radius / 4, middle_y + radius / 2, 1 + px / 24,
              TRASH_CREASE_COLOUR);
}

static inline void trash_pickup_draw_bin(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px) {
    const int32_t left = x + px / 6, width = px - 2 * (px / 6), lid = px / 4;
    draw_rectangle(canvas, x + px / 2 - px / 10, y + px / 10, px / 5, px / 8, DRAW_GREEN);
    draw_rectangle(canvas, x + px / 10, y + lid - px / 12, px - 2 * (px / 10), px / 8 + 1, 0x7CC95Bu);
    draw_rectangle(canvas, left, y + lid + px / 12, width, px - lid - px / 6, DRAW_GREEN);
    for (int32_t i = 1; i <= 3 && px >= 12; i++) {
        draw_rectangle(canvas, left + width * i / 4 - px / 24, y + lid + px / 6, 1 + px / 16,
                       px - lid - px / 3, 0x2F6B2Cu);
    }
}

/* A face, with its load above. */
static inline void trash_pickup_draw_agent(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px,
                                           int32_t number, bool carries) {
    static const uint32_t colours[] = {DRAW_CYAN, DRAW_ORANGE, 0xE06FA8u, DRAW_BLUE, DRAW_YELLOW, 0xB57BE0u};
    const int32_t middle_x = x + px / 2, middle_y = y + px / 2 + px / 12, radius = px * 2 / 5;
    draw_disc(canvas, middle_x, middle_y, radius, colours[number % 6]);
    for (int32_t side = -1; side <= 1; side += 2) {
        draw_disc(canvas, middle_x + side * radius / 3, middle_y + radius / 4, px / 12, DRAW_WHITE);
        draw_disc(canvas, middle_x + side * radius / 3, middle_y + radius / 4, px / 24, DRAW_NIGHT);
    }
    if (!carries) return;
    trash_pickup_draw_piece(canvas, x + px / 5, y - px / 8, px - 2 * (px / 5));
}

/* Numbers of pieces on the floor, with agents and in bins, each beside an icon, and the elapsed time. */
static inline void trash_pickup_draw_top(const TrashPickup *env, PufferCanvas *canvas) {
    const int32_t width = canvas->width - 2 * TRASH_MARGIN_PX, third = width / 3, x = TRASH_MARGIN_PX;
    const int32_t floor = env->num_trash - env->carried - env->deposited;
    trash_pickup_draw_piece(canvas, x, 4, 32);
    draw_text(canvas, x + 38, 13, 2, DRAW_WHITE, "FLOOR");
    draw_number(canvas, x + third - 12, 13, 2, TRASH_PAPER_COLOUR, floor);
    trash_pickup_draw_agent(canvas, x + third, 4, 32, 0, true);
    draw_text(canvas, x + third + 38, 13, 2, DRAW_WHITE, "HANDS");
    draw_number(canvas, x + 2 * third - 12, 13, 2, TRASH_PAPER_COLOUR, env->carried);
    trash_pickup_draw_bin(canvas, x + 2 * third, 4, 32);
    draw_text(canvas, x + 2 * third + 38, 13, 2, DRAW_WHITE, "BINS");
    draw_number(canvas, x + width, 13, 2, TRASH_PAPER_COLOUR, env->deposited);
    draw_bar(canvas, x, 42, width, 6, env->deposited, env->num_trash, DRAW_GREEN);
    draw_bar(canvas, x, 50, width, 2, env->game.episode_length, env->max_steps, DRAW_WHITE);
}

static inline void trash_pickup_draw_cells(const TrashPickup *env, PufferCanvas *canvas, int32_t left,
                                           int32_t px) {
    const int32_t gap = px > 8;
    for (int32_t row = 0; row < env->grid_size; row++) {
        const uint8_t *kinds =
            env->kinds + (env->agent_sight_range + row) * env->stride + env->agent_sight_range;
        for (int32_t column = 0; column < env->grid_size; column++) {
            const int32_t x = left + column * px, y = TRASH_TOP_PX + TRASH_MARGIN_PX + row * px;
            draw_rectangle(canvas, x, y, px - gap, px - gap, TRASH_FLOOR_COLOUR);
            if (kinds[column] == TRASH_PIECE) trash_pickup_draw_piece(canvas, x, y, px);
            if (kinds[column] == TRASH_BIN) trash_pickup_draw_bin(canvas, x, y, px);
        }
    }
}

typedef struct {
    int32_t x, y;
} TrashCorner;

/* Corner of an agent's cell in the image. */
static inline TrashCorner trash_pickup_corner(const TrashPickup *env, int32_t agent, int32_t left,
                                              int32_t px) {
    const int32_t cell = env->agents[agent].cell, sight = env->agent_sight_range;
    return (TrashCorner){left + (cell % env->stride - sight) * px,
                         TRASH_TOP_PX + TRASH_MARGIN_PX + (cell / env->stride - sight) * px};
}

static inline void trash_pickup_draw(const TrashPickup *env, PufferCanvas *canvas) {
    const int32_t px = trash_pickup_cell_px(env), left = (canvas->width - px * env->grid_size) / 2;
    draw_clear(canvas, DRAW_NIGHT);
    trash_pickup_draw_top(env, canvas);
    trash_pickup_draw_cells(env, canvas, left, px);
    for (int32_t i = 0; i < env->num_agents; i++) {
        const TrashCorner corner = trash_pickup_corner(env, i, left, px);
        if (i == canvas->agent) draw_rectangle(canvas, corner.x, corner.y, px, px, DRAW_YELLOW);
        trash_pickup_draw_agent(canvas, corner.x, corner.y, px, i, env->agents[i].carries);
    }
    if (canvas->agent < 0) return;
    const TrashCorner corner = trash_pickup_corner(env, canvas->agent, left, px);
    draw_arrow(canvas, corner.x + px / 2, corner.y);
}

#endif
