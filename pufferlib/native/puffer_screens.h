/* The last two screens of a console in grayscale, from which the newest frame of a game is computed.
 *
 * A console has a palette, and most rows do not change from one frame to the next. Screens are therefore
 * given as palette indices. Only changed rows are converted to grayscale, and only the affected rows of the
 * frame are shrunk again. The result is bit-identical to a full update. The gray level of a colour is learned
 * when it first appears. */
#ifndef PUFFER_SCREENS_H
#define PUFFER_SCREENS_H

#include "puffer_shrink.h"

enum { PUFFER_UNKNOWN_GREY = UINT8_MAX + 1 };

enum { PUFFER_NEWER, PUFFER_OLDER, PUFFER_SCREENS }; /* which screen */

typedef struct PufferScreens {
    PufferShrink shrink;
    uint8_t *colors[PUFFER_SCREENS]; /* palette indices of the last update, height * width bytes each */
    uint8_t *greys[PUFFER_SCREENS];  /* gray levels of the same screens */
    bool is_taken[PUFFER_SCREENS];
    uint16_t grey_of[UINT8_MAX + 1];   /* by palette index */
    bool changed[PUFFER_SHRINK_LARGE]; /* rows that changed since the last frame */
    bool has_frame;                    /* whether the last frame was made from these screens */
    bool showed_both;
} PufferScreens;

/* Initializes `screens`. `memory` holds colours and gray levels of each screen and stays owned by the caller.
 * Returns false if the sizes are not supported. */
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

/* Reads a screen. Returns false if it has colours whose gray level is unknown. In this case,
 * `puffer_screens_learn` must be called next. */
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

/* Learns the gray levels of the colours in the last read screen, given the same screen in grayscale. */
static inline void puffer_screens_learn(PufferScreens *screens, int which, const uint8_t *greys) {
    int size = screens->shrink.height * screens->shrink.width;
    for (int i = 0; i < size; i++) screens->grey_of[screens->colors[which][i]] = greys[i];
    memcpy(screens->greys[which], greys, (size_t)size);
}

/* Computes the frame: the pixel-wise maximum of both screens, or only the newer screen.
 *
 * small: contains the last frame, unless `has_frame` is false, and is overwritten with the new one. */
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
