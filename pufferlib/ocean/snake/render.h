/* Rendering of snake: the map, and beside it the longest snake, or the one that the image is drawn for, with
 * its surroundings, the lengths of the longest snakes, and a legend. On a large map, where a cell is a pixel
 * or two, a frame shows the position of the longest snake. */
#ifndef SNAKE_RENDER_H
#define SNAKE_RENDER_H

#include "puffer_draw.h"
#include "snake.h"

#define SNAKE_FLOOR_COLOUR  0x0B2530u
#define SNAKE_WALL_COLOUR   0x3A5663u
#define SNAKE_CORPSE_COLOUR 0x9C9482u

static const PufferKey snake_keys[] = {
    {"up", 0, SNAKE_UP, "move up"},
    {"down", 0, SNAKE_DOWN, "move down"},
    {"left", 0, SNAKE_LEFT, "move left"},
    {"right", 0, SNAKE_RIGHT, "move right"},
};

enum {
    SNAKE_DETAIL_PX = 6, /* minimum size of a cell with a drawn shape */
    SNAKE_MARGIN_PX = 13,
    SNAKE_ZOOM_CELLS = 13,
    SNAKE_ZOOM_PX = 18, /* size of a cell */
    SNAKE_RANKED = 5,
};

/* A part of the map, including walls, and its position in the image. */
typedef struct {
    int32_t row, column, rows, columns;
    int32_t x, y, px;
} SnakeWindow;

static inline uint32_t snake_colour(int32_t number) {
    static const uint32_t colours[] = {0x00BBBBu, 0xE8D44Du, 0x6FCF5Fu, 0xB57BE0u, 0xE88C30u,
                                       0x5F8BEFu, 0xE06FA8u, 0x9BE0C8u, 0xC8E060u, 0xE0A890u};
    return colours[number % (int32_t)(sizeof colours / sizeof *colours)];
}

/* Halfway to white. */
static inline uint32_t snake_light(uint32_t colour) {
    return (colour >> 1 & 0x7F7F7Fu) + 0x7F7F7Fu;
}

/* ---- Cells that are large enough for a shape ----------------------------------------------------------- */

static inline void snake_draw_thing(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px, int32_t thing) {
    const int32_t middle_x = x + px / 2, middle_y = y + px / 2, bone = px / 4;
    if (thing == SNAKE_WALL) {
        draw_rectangle(canvas, x, y, px, px, SNAKE_WALL_COLOUR);
    } else if (thing == SNAKE_FOOD) {
        draw_disc(canvas, middle_x, middle_y, px / 4, DRAW_RED);
        draw_rectangle(canvas, middle_x, y + px / 8, px / 6 + 1, px / 6 + 1, DRAW_GREEN);
    } else if (thing == SNAKE_CORPSE) {
        const int32_t thickness = px / 12 + 1;
        draw_line(canvas, middle_x - bone, middle_y - bone, middle_x + bone, middle_y + bone, thickness,
                  SNAKE_CORPSE_COLOUR);
        draw_line(canvas, middle_x - bone, middle_y + bone, middle_x + bone, middle_y - bone, thickness,
                  SNAKE_CORPSE_COLOUR);
    }
}

static inline void snake_draw_eyes(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px, int32_t down,
                                   int32_t right) {
    const int32_t middle_x = x + px / 2 + right * px / 6, middle_y = y + px / 2 + down * px / 6;
    for (int32_t side = -1; side <= 1; side += 2) {
        const int32_t eye_x = middle_x + side * down * px / 4, eye_y = middle_y + side * right * px / 4;
        draw_disc(canvas, eye_x, eye_y, px / 7, DRAW_WHITE);
        draw_disc(canvas, eye_x + right * px / 12, eye_y + down * px / 12, px / 16, DRAW_NIGHT);
    }
}

/* The half of the joint between a cell and the next one that lies in the cell. */
static inline void snake_draw_joint(PufferCanvas *canvas, int32_t x, int32_t y, int32_t px, int32_t down,
                                    int32_t right, uint32_t colour) {
    const int32_t gap = px / 8 + 1, half = px / 2;
    const int32_t left = right > 0 ? half : right < 0 ? 0 : gap, top = down > 0 ? half : down < 0 ? 0 : gap;
    draw_rectangle(canvas, x + left, y + top, right != 0 ? px - half : px - 2 * gap,
                   down != 0 ? px - half : px - 2 * gap, colour);
}

/* Rows (`down`) and columns (`right`) from one cell to its neighbour. */
static inline void snake_draw_towards(const Snake *env, PufferCanvas *canvas, int32_t x, int32_t y,
                                      int32_t px, int32_t step, uint32_t colour) {
    const int32_t down = (step == env->stride) - (step == -env->stride), right = (step == 1) - (step == -1);
    snake_draw_joint(canvas, x, y, px, down, right, colour);
}

static inline void snake_draw_body(const Snake *env, PufferCanvas *canvas, const SnakeWindow *window,
                                   int32_t number) {
    const SnakeBody *body = &env->bodies[number];
    const uint32_t colour = snake_colour(number);
    const int32_t px = window->px, gap = px / 8 + 1;
    for (int32_t k = body->length - 1; k >= 0; k--) {
        const int32_t cell = *snake_cell(env, number, k);
        const int32_t row = cell / env->stride - window->row, column = cell % env->stride - window->column;
        if (row < 0 || row >= window->rows || column < 0 || column >= window->columns) continue;
        const int32_t x = window->x + column * px, y = window->y + row * px;
        draw_rectangle(canvas, x + gap, y + gap, px - 2 * gap, px - 2 * gap, colour);
        if (k > 0) snake_draw_towards(env, canvas, x, y, px, *snake_cell(env, number, k - 1) - cell, colour);
        if (k < body->length - 1) {
            snake_draw_towards(env, canvas, x, y, px, *snake_cell(env, number, k + 1) - cell, colour);
        }
        if (k > 0) continue;
        const int32_t step = body->direction;
        draw_disc(canvas, x + px / 2, y + px / 2, px / 2 - 1, snake_light(colour));
        snake_draw_eyes(canvas, x, y, px, (step == env->stride) - (step == -env->stride),
                        (step == 1) - (step == -1));
    }
}

static inline void snake_draw_window(const Snake *env, PufferCanvas *canvas, const SnakeWindow *window) {
    const int32_t px = window->px;
    draw_rectangle(canvas, window->x, window->y, window->columns * px, window->rows * px, SNAKE_FLOOR_COLOUR);
    for (int32_t row = 0; row < window->rows; row++) {
        const uint16_t *cells = env->map + (window->row + row) * env->stride + window->column;
        for (int32_t column = 0; column < window->columns; column++) {
            snake_draw_thing(canvas, window->x + column * px, window->y + row * px, px, cells[column]);
        }
    }
    for (int32_t i = 0; i < env->num_snakes; i++) snake_draw_body(env, canvas, window, i);
}

/* An arrow at the snake that the image is drawn for. */
static inline void snake_draw_arrow(const Snake *env, PufferCanvas *canvas, const SnakeWindow *window) {
    const int32_t cell = env->bodies[canvas->agent].head, px = window->px;
    const int32_t row = cell / env->stride - window->row, column = cell % env->stride - window->column;
    draw_arrow(canvas, window->x + column * px + px / 2, window->y + row * px);
}

/* ---- Maps with several cells to a pixel -------------------------------------------------------------------
 */

/* The most visible of the cells under a pixel. */
static inline uint16_t snake_draw_choose(const Snake *env, const SnakePicture *picture, int32_t row,
                                         int32_t column) {
    const int32_t cells = picture->cells_per_px, margin = env->vision - 1;
    uint16_t best = SNAKE_EMPTY;
    for (int32_t i = row; i < row + cells && i < picture->rows; i++) {
        const uint16_t *line = env->map + (margin + i) * env->stride + margin;
        for (int32_t j = column; j < column + cells && j < picture->columns; j++) {
            if ((line[j] & SNAKE_SEEN) > (best & SNAKE_SEEN)) best = line[j];
        }
    }
    return best;
}

static inline void snake_draw_small_map(const Snake *env, PufferCanvas *canvas, const SnakePicture *picture) {
    const int32_t px = picture->cell_px, cells = picture->cells_per_px;
    for (int32_t y = 0; y < picture->height; y += px) {
        for (int32_t x = 0; x < picture->width; x += px) {
            const uint16_t found = snake_draw_choose(env, picture, y / px * cells, x / px * cells);
            const uint32_t owner = snake_colour((found >> SNAKE_OWNER_SHIFT) - (found > SNAKE_SEEN));
            const uint32_t colours[] = {[SNAKE_EMPTY] = SNAKE_FLOOR_COLOUR,
                                        [SNAKE_FOOD] = 0x9A3A40u,
                                        [SNAKE_CORPSE] = SNAKE_CORPSE_COLOUR,
                                        [SNAKE_WALL] = SNAKE_WALL_COLOUR,
                                        [SNAKE_BODY] = owner,
                                        [SNAKE_HEAD] = DRAW_WHITE};
            draw_rectangle(canvas, x, y, px, px, colours[found & SNAKE_SEEN]);
        }
    }
}

static inline void snake_draw_frame(PufferCanvas *canvas, int32_t x, int32_t y, int32_t width, int32_t height,
                                    uint32_t colour) {
    draw_rectangle(canvas, x, y, width, 2, colour);
    draw_rectangle(canvas, x, y + height - 2, width, 2, colour);
    draw_rectangle(canvas, x, y, 2, height, colour);
    draw_rectangle(canvas, x + width - 2, y, 2, height, colour);
}

/* ---- The panel --------------------------------------------------------------------------------------------
 */

/* The longest snake after `last`, ordered by length, then number. The longest of all for -1. */
static inline int32_t snake_draw_next(const Snake *env, int32_t last) {
    int32_t best = -1;
    for (int32_t i = 0; i < env->num_snakes; i++) {
        const int32_t length = env->bodies[i].length;
        if (last >= 0) {
            const int32_t limit = env->bodies[last].length;
            if (length > limit || (length == limit && i <= last)) continue;
        }
        if (best < 0 || length > env->bodies[best].length) best = i;
    }
    return best;
}

/* The part of the map around the snake, as far as it lies in the map and its wall. */
static inline SnakeWindow snake_zoom(const Snake *env, int32_t number, int32_t x, int32_t y) {
    SnakeWindow window = {.x = x, .y = y, .px = SNAKE_ZOOM_PX};
    const int32_t all_rows = env->height + 2 * env->vision, cell = env->bodies[number].head;
    window.rows = all_rows < SNAKE_ZOOM_CELLS ? all_rows : SNAKE_ZOOM_CELLS;
    window.columns = env->stride < SNAKE_ZOOM_CELLS ? env->stride : SNAKE_ZOOM_CELLS;
    window.row = draw_clip(cell / env->stride - window.rows / 2, all_rows - window.rows);
    window.column = draw_clip(cell % env->stride - window.columns / 2, env->stride - window.columns);
    return window;
}

static inline void snake_draw_ranks(const Snake *env, PufferCanvas *canvas, int32_t x, int32_t y) {
    const int32_t full = SNAKE_PANEL_PX - 2 * SNAKE_MARGIN_PX - 80;
    int32_t number = snake_draw_next(env, -1);
    const int32_t longest = env->bodies[number].length;
    for (int32_t rank = 0; rank < SNAKE_RANKED && number >= 0; rank++, y += 22) {
        const int32_t length = env->bodies[number].length;
        draw_disc(canvas, x + 8, y + 7, 7, snake_light(snake_colour(number)));
        draw_rectangle(canvas, x + 24, y + 2, full * length / longest, 11, snake_colour(number));
        draw_number(canvas, x + SNAKE_PANEL_PX - 2 * SNAKE_MARGIN_PX, y, 2, DRAW_WHITE, length);
        number = snake_draw_next(env, number);
    }
}

static inline void snake_draw_panel(const Snake *env, PufferCanvas *canvas, int32_t shown) {
    const int32_t left = canvas->width - SNAKE_PANEL_PX, x = left + SNAKE_MARGIN_PX;
    const int32_t right = canvas->width - SNAKE_MARGIN_PX, zoom = SNAKE_ZOOM_CELLS * SNAKE_ZOOM_PX;
    draw_rectangle(canvas, left, 0, SNAKE_PANEL_PX, canvas->height, DRAW_SLATE);
    draw_text(canvas, x, 18, 2, DRAW_WHITE, shown == canvas->agent ? "YOU" : "LONGEST");
    draw_number(canvas, right, 11, 4, snake_colour(shown), env->bodies[shown].length);
    const SnakeWindow window = snake_zoom(env, shown, x, 50);
    snake_draw_window(env, canvas, &window);
    snake_draw_frame(canvas, x - 2, 48, window.columns * window.px + 4, window.rows * window.px + 4,
                     snake_colour(shown));
    if (canvas->agent >= 0) snake_draw_arrow(env, canvas, &window);
    snake_draw_ranks(env, canvas, x, zoom + 70);
    const int32_t y = zoom + 70 + SNAKE_RANKED * 22 + 14;
    draw_text(canvas, x, y, 2, DRAW_WHITE, "SNAKES");
    draw_number(canvas, right, y, 2, DRAW_WHITE, env->num_snakes);
    snake_draw_thing(canvas, x - 4, y + 22, 24, SNAKE_FOOD);
    draw_text(canvas, x + 30, y + 28, 2, DRAW_WHITE, "FOOD");
    snake_draw_thing(canvas, x - 4, y + 48, 24, SNAKE_CORPSE);
    draw_text(canvas, x + 30, y + 54, 2, DRAW_WHITE, "CORPSE");
}

static inline void snake_draw(const Snake *env, PufferCanvas *canvas) {
    const SnakePicture picture = snake_picture(env);
    const int32_t shown = canvas->agent >= 0 ? canvas->agent : snake_draw_next(env, -1);
    const int32_t px = picture.cell_px, cells = picture.cells_per_px;
    const int32_t margin = env->vision - 1;
    draw_clear(canvas, DRAW_NIGHT);
    if (px >= SNAKE_DETAIL_PX) {
        const SnakeWindow window = {margin, margin, picture.rows, picture.columns, 0, 0, px};
        snake_draw_window(env, canvas, &window);
        if (canvas->agent >= 0) snake_draw_arrow(env, canvas, &window);
    } else {
        const SnakeWindow window = snake_zoom(env, shown, 0, 0);
        snake_draw_small_map(env, canvas, &picture);
        snake_draw_frame(canvas, (window.column - margin) * px / cells - 4,
                         (window.row - margin) * px / cells - 4, window.columns * px / cells + 8,
                         window.rows * px / cells + 8, DRAW_WHITE);
    }
    snake_draw_panel(env, canvas, shown);
}

#endif
