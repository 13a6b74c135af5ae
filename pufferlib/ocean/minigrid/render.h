/* Rendering of minigrid: the world from above, in which the cells that the agent sees are lighter. The panel
 * below shows the number of steps, what the agent carries, and the mission. */
#ifndef MINIGRID_RENDER_H
#define MINIGRID_RENDER_H

#include "minigrid.h"
#include "puffer_draw.h"

static const PufferKey minigrid_keys[] = {
    {"left", 0, MINIGRID_LEFT, "turn left"},   {"right", 0, MINIGRID_RIGHT, "turn right"},
    {"up", 0, MINIGRID_FORWARD, "go forward"}, {"p", 0, MINIGRID_PICK_UP, "pick up"},
    {"d", 0, MINIGRID_DROP, "drop"},           {"space", 0, MINIGRID_TOGGLE, "open or close"},
    {"o", 0, MINIGRID_DONE, "declare done"},
};

#define MINIGRID_PURPLE_INK 0x9B5FE0u
#define MINIGRID_GREY_INK   0x8F9AA0u
#define MINIGRID_STONE      0x5B676Eu
#define MINIGRID_LIT_STONE  0x7C8990u
#define MINIGRID_LIT        0x24505Fu

static const uint32_t minigrid_inks[MINIGRID_COLORS] = {
    [MINIGRID_RED] = DRAW_RED,       [MINIGRID_GREEN] = DRAW_GREEN,
    [MINIGRID_BLUE] = DRAW_BLUE,     [MINIGRID_PURPLE] = MINIGRID_PURPLE_INK,
    [MINIGRID_YELLOW] = DRAW_YELLOW, [MINIGRID_GREY] = MINIGRID_GREY_INK,
};

/* Draws a rectangle whose place and size are percentages of a square. */
static inline void minigrid_draw_part(PufferCanvas *canvas, PufferArea at, int32_t left, int32_t top,
                                      int32_t right, int32_t bottom, uint32_t color) {
    const int32_t x = at.width * left / 100, y = at.width * top / 100;
    draw_rectangle(canvas, at.x + x, at.y + y, at.width * right / 100 - x, at.width * bottom / 100 - y,
                   color);
}

static inline void minigrid_draw_door(PufferCanvas *canvas, PufferArea at, int32_t state, uint32_t ink) {
    if (state == MINIGRID_OPEN) {
        minigrid_draw_part(canvas, at, 84, 0, 100, 100, ink);
        return;
    }
    minigrid_draw_part(canvas, at, 4, 4, 96, 96, ink);
    minigrid_draw_part(canvas, at, 14, 14, 86, 86, DRAW_NIGHT);
    if (state == MINIGRID_LOCKED) {
        minigrid_draw_part(canvas, at, 24, 24, 76, 76, ink);
        minigrid_draw_part(canvas, at, 46, 36, 54, 64, DRAW_NIGHT);
    } else {
        draw_disc(canvas, at.x + at.width * 7 / 10, at.y + at.width / 2, at.width / 12, ink);
    }
}

static inline void minigrid_draw_key(PufferCanvas *canvas, PufferArea at, uint32_t ink) {
    draw_disc(canvas, at.x + at.width * 56 / 100, at.y + at.width * 28 / 100, at.width * 18 / 100, ink);
    draw_disc(canvas, at.x + at.width * 56 / 100, at.y + at.width * 28 / 100, at.width * 7 / 100, DRAW_NIGHT);
    minigrid_draw_part(canvas, at, 50, 44, 63, 88, ink);
    minigrid_draw_part(canvas, at, 36, 58, 50, 66, ink);
    minigrid_draw_part(canvas, at, 36, 80, 50, 88, ink);
}

static inline void minigrid_draw_lava(PufferCanvas *canvas, PufferArea at) {
    minigrid_draw_part(canvas, at, 0, 0, 100, 100, DRAW_ORANGE);
    for (int32_t wave = 0; wave < 6; wave++) {
        const int32_t x = at.x + at.width * (wave % 2 * 40 + 12) / 100;
        const int32_t y = at.y + at.width * (wave / 2 * 25 + 25) / 100, fifth = at.width / 5;
        draw_line(canvas, x, y + fifth / 2, x + fifth, y, 2, DRAW_RED);
        draw_line(canvas, x + fifth, y, x + 2 * fifth, y + fifth / 2, 2, DRAW_RED);
    }
}

static inline void minigrid_draw_cell(PufferCanvas *canvas, PufferArea at, MiniGridCell cell, bool is_lit) {
    const uint32_t ink = minigrid_inks[cell.color];
    minigrid_draw_part(canvas, at, 0, 0, 100, 100, DRAW_NIGHT);
    draw_rectangle(canvas, at.x + 1, at.y + 1, at.width - 1, at.width - 1,
                   is_lit ? MINIGRID_LIT : DRAW_SLATE);
    switch (cell.kind) {
        case MINIGRID_WALL:
            minigrid_draw_part(canvas, at, 0, 0, 100, 100, is_lit ? MINIGRID_LIT_STONE : MINIGRID_STONE);
            break;
        case MINIGRID_DOOR:
            minigrid_draw_door(canvas, at, cell.state, ink);
            break;
        case MINIGRID_KEY:
            minigrid_draw_key(canvas, at, ink);
            break;
        case MINIGRID_BALL:
            draw_disc(canvas, at.x + at.width / 2, at.y + at.width / 2, at.width * 3 / 10, ink);
            break;
        case MINIGRID_BOX:
            minigrid_draw_part(canvas, at, 14, 14, 86, 86, ink);
            minigrid_draw_part(canvas, at, 22, 22, 78, 78, DRAW_NIGHT);
            minigrid_draw_part(canvas, at, 22, 44, 78, 56, ink);
            break;
        case MINIGRID_GOAL:
            minigrid_draw_part(canvas, at, 0, 0, 100, 100, ink);
            break;
        case MINIGRID_LAVA:
            minigrid_draw_lava(canvas, at);
            break;
        default:
            break;
    }
}

/* A triangle that points in the agent's direction. */
static inline void minigrid_draw_agent(const MiniGrid *env, PufferCanvas *canvas, PufferArea at) {
    const MiniGridPlace step = minigrid_next((MiniGridPlace){0, 0}, env->direction);
    const int32_t length = at.width * 3 / 4, x = at.x + at.width / 2, y = at.y + at.width / 2;
    for (int32_t i = 0; i < length; i++) {
        const int32_t ahead = i - length / 2, half = (length - i) * 2 / 5;
        if (step.x != 0)
            draw_rectangle(canvas, x + step.x * ahead, y - half, 1, 2 * half + 1, DRAW_CYAN);
        else
            draw_rectangle(canvas, x - half, y + step.y * ahead, 2 * half + 1, 1, DRAW_CYAN);
    }
}

static inline bool minigrid_is_seen(const MiniGrid *env, const MiniGridView *view, MiniGridPlace place) {
    const MiniGridPlace step = minigrid_next((MiniGridPlace){0, 0}, env->direction);
    const int32_t dx = place.x - env->position.x, dy = place.y - env->position.y, size = env->agent_view_size;
    const int32_t y = size - 1 - (step.x * dx + step.y * dy), x = size / 2 + step.x * dy - step.y * dx;
    return x >= 0 && x < size && y >= 0 && y < size && view->rows[y] >> x & 1;
}

/* Draws words in lines that fit the canvas. */
static inline void minigrid_draw_words(PufferCanvas *canvas, int32_t y, const char *text) {
    enum { LINE = 41, MARGIN = 8, PITCH = 22 };
    while (*text != '\0') {
        char line[LINE + 1] = {0};
        int32_t length = 0, fits = 0; /* up to the last space */
        while (text[length] != '\0' && length < LINE) {
            line[length] = text[length];
            if (text[++length] == ' ' || text[length] == '\0') fits = length;
        }
        line[fits] = '\0';
        draw_text(canvas, MARGIN, y, 2, DRAW_WHITE, line);
        text += fits + (text[fits] == ' ');
        y += PITCH;
    }
}

static inline void minigrid_draw_panel(const MiniGrid *env, PufferCanvas *canvas, int32_t y) {
    char mission[MINIGRID_INSTRUCTION_BYTES];
    draw_text(canvas, 8, y + 8, 2, DRAW_WHITE, "STEP");
    draw_number(canvas, 128, y + 8, 2, DRAW_YELLOW, env->game.episode_length);
    draw_text(canvas, 180, y + 8, 2, DRAW_WHITE, "CARRIES");
    minigrid_draw_cell(canvas, (PufferArea){276, y + 3, 24, 24}, env->carried, false);
    minigrid_mission(env, mission, sizeof mission);
    minigrid_draw_words(canvas, y + 34, mission);
}

static inline void minigrid_draw(const MiniGrid *env, PufferCanvas *canvas) {
    const int32_t size = minigrid_cell_pixels(env);
    MiniGridView view;
    minigrid_see(env, env->agent_view_size, &view);
    draw_clear(canvas, DRAW_NIGHT);
    for (int32_t y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++) {
            const PufferArea at = {x * size, y * size, size, size};
            const MiniGridPlace place = {x, y};
            minigrid_draw_cell(canvas, at, env->cells[y * env->width + x],
                               minigrid_is_seen(env, &view, place));
            if (minigrid_is_place(place, env->position)) minigrid_draw_agent(env, canvas, at);
        }
    }
    minigrid_draw_panel(env, canvas, env->height * size);
}

#endif
