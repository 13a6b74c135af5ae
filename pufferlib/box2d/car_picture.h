/* The picture of CarRacing: polygons on a canvas of 1000 x 800 pixels, scaled down to 96 x 96.
 *
 * Bytes equal those of pygame-ce with SSE2. It draws the world upside down, and its panel over the lowest rows. The
 * canvas is divided into cells, one for each column of the result. Most cells have one color, so pixels are stored only
 * for the others. */
#ifndef PUFFER_CAR_PICTURE_H
#define PUFFER_CAR_PICTURE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    PICTURE_WIDTH = 1000,
    PICTURE_HEIGHT = 800,
    PICTURE_PANEL = 100, /* rows of the panel */
    PICTURE_SIDE = 96,   /* of the result */
    PICTURE_CORNERS = 8, /* most corners of a polygon */
    PICTURE_SPANS = 2,   /* most parts of a row in a polygon with four corners */
    PICTURE_LANES = 4,   /* numbers for each cell: blue, red, green, nothing */
    PICTURE_TEXT_HEIGHT = 46,
    PICTURE_TEXT_WIDTH = 104,
};

/* Widths and heights of cells are in parts of a pixel. */
#define PICTURE_PARTS       0x4000
#define PICTURE_CELL_WIDTH  (PICTURE_PARTS * PICTURE_WIDTH / PICTURE_SIDE)
#define PICTURE_CELL_HEIGHT (PICTURE_PARTS * PICTURE_HEIGHT / PICTURE_SIDE)

/* Colors are 0xRRGGBB. Their parts can be added or multiplied together. */
#define PICTURE_OUTER 0xFF00FFu
#define PICTURE_GREEN 0x00FF00u
#define PICTURE_MIXED 0x80000000u /* instead of a color */

typedef struct {
    int32_t left, right;
} PictureSpan;

typedef struct {
    uint32_t cells[PICTURE_HEIGHT][PICTURE_SIDE];
    uint32_t pixels[PICTURE_HEIGHT][PICTURE_WIDTH];   /* of mixed cells */
    PictureSpan spans[PICTURE_HEIGHT][PICTURE_SPANS]; /* of the polygon that is drawn, by row of the world */
} Picture;

/* White text on black, as pygame renders it. */
typedef struct {
    int32_t width;
    uint8_t greys[PICTURE_TEXT_HEIGHT][PICTURE_TEXT_WIDTH];
} PictureText;

typedef struct {
    int32_t x, y;
} PicturePoint;

static inline uint32_t picture_color(int32_t red, int32_t green, int32_t blue) {
    return (uint32_t)(red << 16 | green << 8 | blue);
}

/* ---- Pixels ------------------------------------------------------------------------------------------- */

/* Returns the cell that has a column. A column that is shared by two cells is in the first. */
static inline int32_t picture_cell(int32_t x) {
    return (int32_t)((uint32_t)x * PICTURE_PARTS / PICTURE_CELL_WIDTH);
}

/* Returns the last row or column of a cell. */
static inline int32_t picture_last(int32_t cell, int32_t size) {
    return (int32_t)((uint32_t)((cell + 1) * size - 1) / PICTURE_PARTS);
}

static inline int32_t picture_first(int32_t cell) {
    return cell == 0 ? 0 : picture_last(cell - 1, PICTURE_CELL_WIDTH) + 1;
}

/* Stores the pixels of a cell. */
static inline void picture_mix(Picture *picture, int32_t row, int32_t cell) {
    const uint32_t color = picture->cells[row][cell];
    if (color == PICTURE_MIXED) return;
    const int32_t last = picture_last(cell, PICTURE_CELL_WIDTH);
    for (int32_t x = picture_first(cell); x <= last; x++) picture->pixels[row][x] = color;
    picture->cells[row][cell] = PICTURE_MIXED;
}

/* Fills pixels of one cell. */
static inline void picture_fill_part(Picture *picture, int32_t row, int32_t cell, int32_t left, int32_t right,
                                     uint32_t color) {
    if (picture->cells[row][cell] == color) return;
    if (left == picture_first(cell) && right == picture_last(cell, PICTURE_CELL_WIDTH)) {
        picture->cells[row][cell] = color;
        return;
    }
    picture_mix(picture, row, cell);
    for (int32_t x = left; x <= right; x++) picture->pixels[row][x] = color;
}

/* Fills pixels of a row of the canvas, from `left` to `right`. */
static inline void picture_fill_row(Picture *picture, int32_t row, int32_t left, int32_t right,
                                    uint32_t color) {
    if (left < 0) left = 0;
    if (right >= PICTURE_WIDTH) right = PICTURE_WIDTH - 1;
    if (left > right) return;
    const int32_t first = picture_cell(left), last = picture_cell(right);
    if (first == last) {
        picture_fill_part(picture, row, first, left, right, color);
        return;
    }
    picture_fill_part(picture, row, first, left, picture_last(first, PICTURE_CELL_WIDTH), color);
    for (int32_t cell = first + 1; cell < last; cell++) picture->cells[row][cell] = color;
    picture_fill_part(picture, row, last, picture_first(last), right, color);
}

/* Fills pixels of a row of the world, of which the panel hides some. */
static inline void picture_fill(Picture *picture, int32_t y, int32_t left, int32_t right, uint32_t color) {
    if (y < PICTURE_PANEL || y >= PICTURE_HEIGHT) return;
    picture_fill_row(picture, PICTURE_HEIGHT - 1 - y, left, right, color);
}

/* Blends a pixel with the color of a polygon, whose weight is `alpha` of 256, if the polygon will not cover it. */
static inline void picture_blend(Picture *picture, int32_t x, int32_t y, uint32_t color, uint32_t alpha) {
    const PictureSpan span = picture->spans[y][0];
    if (alpha == 0 || y < PICTURE_PANEL || (x >= span.left && x <= span.right)) return;
    const int32_t row = PICTURE_HEIGHT - 1 - y, cell = picture_cell(x);
    if (picture->cells[row][cell] == color) return;
    picture_mix(picture, row, cell);
    uint32_t *pixel = &picture->pixels[row][x];
    const uint32_t outer = (*pixel & PICTURE_OUTER) * (256 - alpha) + (color & PICTURE_OUTER) * alpha;
    const uint32_t inner = (*pixel & PICTURE_GREEN) * (256 - alpha) + (color & PICTURE_GREEN) * alpha;
    *pixel = (outer >> 8 & PICTURE_OUTER) | (inner >> 8 & PICTURE_GREEN);
}

/* ---- Smooth lines, as in pygame.gfxdraw --------------------------------------------------------------- */

enum { PICTURE_IS_LEFT = 1, PICTURE_IS_RIGHT = 2, PICTURE_IS_BELOW = 4, PICTURE_IS_ABOVE = 8 };

static inline int32_t picture_outside(PicturePoint point) {
    return (point.x < 0 ? PICTURE_IS_LEFT : 0) | (point.x >= PICTURE_WIDTH ? PICTURE_IS_RIGHT : 0) |
           (point.y < 0 ? PICTURE_IS_ABOVE : 0) | (point.y >= PICTURE_HEIGHT ? PICTURE_IS_BELOW : 0);
}

/* Clips a line to the canvas, or returns false if nothing is left. It may exchange the ends. */
static bool picture_clip(PicturePoint *from, PicturePoint *to) {
    int32_t start, end;
    while ((start = picture_outside(*from)) | (end = picture_outside(*to))) {
        if (start & end) return false;
        if (start == 0) {
            const PicturePoint moved = *from;
            *from = *to, *to = moved;
            start = end;
        }
        const bool is_vertical = from->x == to->x;
        const float slope = is_vertical ? 1 : (float)(to->y - from->y) / (float)(to->x - from->x);
        if (start & (PICTURE_IS_LEFT | PICTURE_IS_RIGHT)) {
            const int32_t edge = start & PICTURE_IS_LEFT ? 0 : PICTURE_WIDTH - 1;
            from->y += (int16_t)((float)(edge - from->x) * slope);
            from->x = edge;
        } else {
            const int32_t edge = start & PICTURE_IS_BELOW ? PICTURE_HEIGHT - 1 : 0;
            if (!is_vertical) from->x += (int16_t)((float)(edge - from->y) / slope);
            from->y = edge;
        }
    }
    return true;
}

/* Draws a line without its last pixel. Steps along its longer side blend two pixels each. */
static void picture_line(Picture *picture, PicturePoint from, PicturePoint to, uint32_t color) {
    if (!picture_clip(&from, &to)) return;
    const PicturePoint first = from;
    if (from.y > to.y) {
        const PicturePoint moved = from;
        from = to, to = moved;
    }
    const int32_t side = to.x >= from.x ? 1 : -1, width = side * (to.x - from.x), height = to.y - from.y;
    if (width == 0) {
        for (int32_t y = from.y; y <= to.y; y++) picture_fill(picture, y, from.x, from.x, color);
        return;
    }
    if (height == 0) {
        picture_fill(picture, from.y, side > 0 ? from.x : to.x, side > 0 ? to.x : from.x, color);
        return;
    }
    picture_fill(picture, first.y, first.x, first.x, color);
    const bool is_steep = height > width;
    const int32_t length = is_steep ? height : width;
    const uint32_t change = (uint32_t)(((is_steep ? width : height) << 16) / length) << 16;
    uint32_t position = 0;
    for (int32_t step = 1; step < length; step++) {
        const bool is_next = position + change <= position;
        position += change;
        from.x += is_steep ? (is_next ? side : 0) : side;
        from.y += is_steep || is_next;
        const uint32_t weight = position >> 24;
        picture_blend(picture, from.x, from.y, color, 255 * (255 - weight) >> 8);
        picture_blend(picture, from.x + (is_steep ? side : 0), from.y + !is_steep, color, 255 * weight >> 8);
    }
}

/* ---- Polygons ----------------------------------------------------------------------------------------- */

static inline void picture_sort(int32_t *values, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        const int32_t value = values[i];
        int32_t j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
}

typedef struct {
    int32_t left, right, top, bottom;
} PictureBox;

static inline PictureBox picture_box(const PicturePoint *points, int32_t count) {
    PictureBox box = {points[0].x, points[0].x, points[0].y, points[0].y};
    for (int32_t i = 1; i < count; i++) {
        if (points[i].x < box.left) box.left = points[i].x;
        if (points[i].x > box.right) box.right = points[i].x;
        if (points[i].y < box.top) box.top = points[i].y;
        if (points[i].y > box.bottom) box.bottom = points[i].y;
    }
    return box;
}

static inline bool picture_shows(PictureBox box) {
    return box.right >= 0 && box.left < PICTURE_WIDTH && box.bottom >= PICTURE_PANEL &&
           box.top < PICTURE_HEIGHT;
}

/* An edge of a polygon that is not horizontal, from its upper end. */
typedef struct {
    int32_t x, y, end, width;
} PictureEdge;

static inline int32_t picture_edges(const PicturePoint *points, int32_t count, PictureEdge *edges) {
    int32_t num_edges = 0;
    for (int32_t i = 0; i < count; i++) {
        const PicturePoint one = points[i > 0 ? i - 1 : count - 1], other = points[i];
        if (one.y < other.y) edges[num_edges++] = (PictureEdge){one.x, one.y, other.y, other.x - one.x};
        if (one.y > other.y) edges[num_edges++] = (PictureEdge){other.x, other.y, one.y, one.x - other.x};
    }
    return num_edges;
}

static inline bool picture_crosses(const PictureEdge *edge, int32_t y, int32_t bottom) {
    return y >= edge->y && (y < edge->end || (y == bottom && edge->end == bottom));
}

static inline int32_t picture_round(int32_t x) {
    return (x + 0x8000) >> 16;
}

/* Finds the parts of a row that are inside a polygon with smooth edges. */
static inline void picture_find_spans(const PictureEdge *edges, int32_t num_edges, int32_t y, int32_t bottom,
                                      PictureSpan *spans) {
    int32_t crossings[2 * PICTURE_SPANS], found = 0;
    for (int32_t i = 0; i < num_edges; i++) {
        const PictureEdge *edge = &edges[i];
        if (!picture_crosses(edge, y, bottom)) continue;
        crossings[found++] =
            0x10000 * (y - edge->y) / (edge->end - edge->y) * edge->width + 0x10000 * edge->x;
    }
    picture_sort(crossings, found);
    for (int32_t i = 0; i < PICTURE_SPANS; i++) {
        spans[i] = (PictureSpan){1, 0};
        if (2 * i >= found) continue;
        const int32_t left = picture_round(crossings[2 * i] + 1);
        const int32_t right = picture_round(crossings[2 * i + 1] - 1);
        spans[i] = left < right ? (PictureSpan){left, right} : (PictureSpan){right, left};
    }
}

/* Draws a polygon with four corners and smooth edges, as pygame.gfxdraw does with `aapolygon` and `filled_polygon`. */
static void picture_smooth_polygon(Picture *picture, const PicturePoint *points, uint32_t color) {
    enum { CORNERS = 2 * PICTURE_SPANS };
    const PictureBox box = picture_box(points, CORNERS);
    if (!picture_shows(box)) return;
    PictureEdge edges[CORNERS];
    const int32_t num_edges = picture_edges(points, CORNERS, edges);
    const int32_t top = box.top > PICTURE_PANEL ? box.top : PICTURE_PANEL;
    const int32_t bottom = box.bottom < PICTURE_HEIGHT ? box.bottom : PICTURE_HEIGHT - 1;
    for (int32_t y = top; y <= bottom; y++) {
        picture_find_spans(edges, num_edges, y, box.bottom, picture->spans[y]);
    }
    for (int32_t i = 0; i < CORNERS; i++) picture_line(picture, points[i], points[(i + 1) % CORNERS], color);
    for (int32_t y = top; y <= bottom; y++) {
        for (int32_t i = 0; i < PICTURE_SPANS; i++) {
            const PictureSpan span = picture->spans[y][i];
            picture_fill(picture, y, span.left, span.right, color);
        }
    }
}

/* Draws a polygon as pygame.draw does. */
static void picture_polygon(Picture *picture, const PicturePoint *points, int32_t count, uint32_t color) {
    const PictureBox box = picture_box(points, count);
    if (box.top == box.bottom) {
        picture_fill(picture, box.top, box.left, box.right, color);
        return;
    }
    PictureEdge edges[PICTURE_CORNERS];
    const int32_t num_edges = picture_edges(points, count, edges);
    for (int32_t y = box.top; y <= box.bottom; y++) {
        int32_t crossings[PICTURE_CORNERS], found = 0;
        for (int32_t i = 0; i < num_edges; i++) {
            const PictureEdge *edge = &edges[i];
            if (!picture_crosses(edge, y, box.bottom)) continue;
            const float x = (float)((y - edge->y) * edge->width) / (float)(edge->end - edge->y);
            crossings[found] = (int32_t)(found % 2 ? ceilf(x) : floorf(x)) + edge->x;
            found++;
        }
        picture_sort(crossings, found);
        for (int32_t i = 0; i + 1 < found; i += 2) {
            picture_fill(picture, y, crossings[i], crossings[i + 1], color);
        }
    }
    for (int32_t i = 0; i < count; i++) { /* lower edges that are horizontal */
        const PicturePoint one = points[i > 0 ? i - 1 : count - 1], other = points[i];
        if (one.y != other.y || one.y == box.top || one.y == box.bottom) continue;
        picture_fill(picture, one.y, one.x < other.x ? one.x : other.x, one.x < other.x ? other.x : one.x,
                     color);
    }
}

/* ---- Panel -------------------------------------------------------------------------------------------- */

/* Fills a rectangle, with its edges. Corners are in any order, and in rows of the canvas. */
static void picture_rectangle(Picture *picture, double x, double y, double other_x, double other_y,
                              uint32_t color) {
    const PicturePoint corners[] = {{(int32_t)x, (int32_t)y}, {(int32_t)other_x, (int32_t)other_y}};
    const PictureBox box = picture_box(corners, 2);
    const int32_t bottom = box.bottom < PICTURE_HEIGHT ? box.bottom : PICTURE_HEIGHT - 1;
    for (int32_t row = box.top > 0 ? box.top : 0; row <= bottom; row++) {
        picture_fill_row(picture, row, box.left, box.right, color);
    }
}

/* Draws text around a point of the canvas. */
static void picture_write(Picture *picture, const PictureText *text, int32_t x, int32_t y) {
    const int32_t left = x - text->width / 2, top = y - PICTURE_TEXT_HEIGHT / 2;
    const int32_t last = picture_cell(left + text->width - 1);
    for (int32_t i = 0; i < PICTURE_TEXT_HEIGHT; i++) {
        for (int32_t cell = picture_cell(left); cell <= last; cell++) picture_mix(picture, top + i, cell);
        uint32_t *pixels = &picture->pixels[top + i][left];
        for (int32_t j = 0; j < text->width; j++) pixels[j] = text->greys[i][j] * 0x010101u;
    }
}

/* ---- Scaling ------------------------------------------------------------------------------------------ */

enum { PICTURE_NUMBERS = PICTURE_SIDE * PICTURE_LANES };

/* Numbers for each cell of a row. Words set all lanes of a cell. */
typedef union {
    uint64_t words[PICTURE_SIDE + 1];
    uint16_t lanes[PICTURE_NUMBERS + PICTURE_LANES];
} PictureRow;

/* Weights in a cell of the columns that it shares with the cells before and after it. */
typedef struct {
    PictureRow before, after;
    int32_t columns[PICTURE_SIDE]; /* number of columns of a cell alone */
} PictureWeights;

static inline uint16_t picture_multiply(uint32_t one, uint32_t other) {
    return (uint16_t)(one * other >> 16);
}

/* Returns the numbers of a cell from the sums of red and blue, and of green. */
static inline uint64_t picture_lanes(uint32_t outer, uint32_t green) {
    return (uint64_t)green << 24 | outer;
}

static void picture_weigh(PictureWeights *weights) {
    const uint64_t all = 0x0001000100010001u;
    weights->before.words[0] = 0;
    for (int32_t cell = 0; cell < PICTURE_SIDE; cell++) {
        const int32_t last = picture_last(cell, PICTURE_CELL_WIDTH);
        const int32_t weight = (cell + 1) * PICTURE_CELL_WIDTH - last * PICTURE_PARTS;
        weights->after.words[cell] = all * (uint64_t)weight;
        weights->before.words[cell + 1] = all * (uint64_t)(PICTURE_PARTS - weight);
        weights->columns[cell] = last - picture_first(cell);
    }
}

/* Scales a row. */
static void picture_scale_row(const Picture *picture, int32_t row, const PictureWeights *weights,
                              uint16_t *scaled) {
    const uint32_t *cells = picture->cells[row], *pixels = picture->pixels[row];
    const uint16_t factor = 0x40000000 / PICTURE_CELL_WIDTH;
    PictureRow inside; /* sums of the columns of a cell alone */
    PictureRow shared; /* four times the column before a cell */
    shared.words[0] = 0;
    for (int32_t cell = 0; cell < PICTURE_SIDE;) {
        const uint32_t color = cells[cell];
        if (color == PICTURE_MIXED) {
            const int32_t last = picture_last(cell, PICTURE_CELL_WIDTH);
            uint32_t outer = 0, green = 0;
            for (int32_t x = last - weights->columns[cell]; x < last; x++) {
                outer += pixels[x] & PICTURE_OUTER;
                green += pixels[x] & PICTURE_GREEN;
            }
            inside.words[cell++] = picture_lanes(outer, green);
            shared.words[cell] =
                4 * picture_lanes(pixels[last] & PICTURE_OUTER, pixels[last] & PICTURE_GREEN);
        } else {
            const uint64_t lanes = picture_lanes(color & PICTURE_OUTER, color & PICTURE_GREEN);
            do {
                inside.words[cell] = lanes * (uint64_t)weights->columns[cell];
                shared.words[++cell] = 4 * lanes;
            } while (cell < PICTURE_SIDE && cells[cell] == color);
        }
    }
    for (int32_t i = 0; i < PICTURE_NUMBERS; i++) {
        const uint16_t sum =
            (uint16_t)(picture_multiply(shared.lanes[i], weights->before.lanes[i]) + inside.lanes[i] +
                       picture_multiply(shared.lanes[i + PICTURE_LANES], weights->after.lanes[i]));
        scaled[i] = picture_multiply(sum, factor);
    }
}

/* Scales the picture, and writes red, green and blue of each pixel, or one color after the other. */
static void picture_scale(const Picture *picture, bool channels_first, uint8_t *image) {
    const uint16_t factor = 0x40000000 / PICTURE_CELL_HEIGHT;
    const int32_t pixel_stride = channels_first ? 1 : 3;
    const int32_t color_stride = channels_first ? PICTURE_SIDE * PICTURE_SIDE : 1;
    uint16_t scaled[PICTURE_NUMBERS], sums[PICTURE_NUMBERS] = {0};
    PictureWeights weights;
    picture_weigh(&weights);
    for (int32_t cell = 0, row = 0; cell < PICTURE_SIDE; cell++) {
        const int32_t last = picture_last(cell, PICTURE_CELL_HEIGHT);
        const uint32_t weight = (uint32_t)((cell + 1) * PICTURE_CELL_HEIGHT - last * PICTURE_PARTS);
        for (; row < last; row++) {
            picture_scale_row(picture, row, &weights, scaled);
            for (int32_t i = 0; i < PICTURE_NUMBERS; i++) sums[i] += scaled[i];
        }
        picture_scale_row(picture, row++, &weights, scaled);
        for (int32_t i = 0; i < PICTURE_NUMBERS; i++) {
            const uint16_t shared = (uint16_t)(4 * scaled[i]);
            const uint16_t sum = (uint16_t)(sums[i] + picture_multiply(shared, weight));
            sums[i] = picture_multiply(shared, PICTURE_PARTS - weight);
            scaled[i] = picture_multiply(sum, factor);
        }
        for (int32_t column = 0; column < PICTURE_SIDE; column++) {
            uint8_t *pixel = image + (cell * PICTURE_SIDE + column) * pixel_stride;
            const uint16_t *lanes = &scaled[column * PICTURE_LANES];
            pixel[0] = (uint8_t)lanes[1];
            pixel[color_stride] = (uint8_t)lanes[2];
            pixel[2 * color_stride] = (uint8_t)lanes[0];
        }
    }
}

#endif
