/* The last two screens of a console, in greys: what the newest frame of a game is shrunk from.
 *
 * A console has a palette, and from one frame to the next most of its rows stay as they were. So screens come
 * in the numbers of their colours, only rows that have changed are looked up, and only what shows them is
 * shrunk again: the same bytes as if all had been. The grey of a colour is learnt when it is first seen.
 */
#ifndef PUFFER_SCREENS_H
#define PUFFER_SCREENS_H

#include "puffer_shrink.h"

enum { PUFFER_UNKNOWN_GREY = UINT8_MAX + 1 };

enum { PUFFER_NEWER, PUFFER_OLDER, PUFFER_SCREENS }; /* which screen */

typedef struct PufferScreens {
    PufferShrink shrink;
    uint8_t *colors[PUFFER_SCREENS]; /* as they were when they were taken last, height * width bytes each */
    uint8_t *greys[PUFFER_SCREENS];  /* of the same */
    bool is_taken[PUFFER_SCREENS];
    uint16_t grey_of[UINT8_MAX + 1];   /* by color */
    bool changed[PUFFER_SHRINK_LARGE]; /* rows, since a frame was made */
    bool has_frame;                    /* of the screens as they were then */
    bool showed_both;
} PufferScreens;

/* Prepare, with memory for `colors` and `greys` of each screen, which the caller keeps; false when the sizes
 * are not among those that it can do. */
static inline bool puffer_screens_init(PufferScreens *screens, int height, int width, int small_height,
                                       int small_width, uint8_t *memory) {
    memset(screens, 0, sizeof(*screens));
    if (!puffer_shrink_init(&screens->shrink, height, width, small_height, small_width)) return false;
    for (int which = 0; which < PUFFER_SCREENS; which++) {
        screens->colors[which] = memory + 2 * which * height * width;
        screens->greys[which] = screens->colors[which] + height * width;
    }
    for (int color = 0; color <= UINT8_MAX; color++) screens->grey_of[color] = PUFFER_UNKNOWN_GREY;
    return true;
}

/* Take in a screen. False if it has colors whose grey is unknown; then `puffer_screens_learn` must come next.
 */
static inline bool puffer_screens_take(PufferScreens *screens, int which, const uint8_t *colors) {
    int width = screens->shrink.width;
    bool is_first = !screens->is_taken[which];
    unsigned seen = 0;
    for (int y = 0; y < screens->shrink.height; y++) {
        const uint8_t *row = colors + y * width;
        uint8_t *before = screens->colors[which] + y * width, *greys = screens->greys[which] + y * width;
        if (!is_first && memcmp(row, before, (size_t)width) == 0) continue;
        memcpy(before, row, (size_t)width);
        screens->changed[y] = true;
        for (int x = 0; x < width; x++) {
            unsigned grey = screens->grey_of[row[x]];
            seen |= grey;
            greys[x] = (uint8_t)grey;
        }
    }
    screens->is_taken[which] = true;
    return seen < PUFFER_UNKNOWN_GREY;
}

/* Learn the greys of the colors of the screen that was just taken from the same screen in greys. */
static inline void puffer_screens_learn(PufferScreens *screens, int which, const uint8_t *greys) {
    int size = screens->shrink.height * screens->shrink.width;
    for (int i = 0; i < size; i++) screens->grey_of[screens->colors[which][i]] = greys[i];
    memcpy(screens->greys[which], greys, (size_t)size);
}

/* Make the frame of both screens, of each pixel the lighter one, or of the newer screen.
 *
 * small: where the last frame is, unless `has_frame` is false; it becomes this one. */
static inline void puffer_screens_show(PufferScreens *screens, bool both, uint8_t *small) {
    const uint8_t *newer = screens->greys[PUFFER_NEWER];
    bool is_like_last = screens->has_frame && both == screens->showed_both;
    puffer_shrink(&screens->shrink, newer, both ? screens->greys[PUFFER_OLDER] : newer,
                  is_like_last ? screens->changed : NULL, small);
    memset(screens->changed, 0, sizeof(screens->changed));
    screens->has_frame = true;
    screens->showed_both = both;
}

#endif
