/* Rendering of acrobot: the bar, both links, the torque at the joint, the goal height, and the fraction of
 * time that has passed. */
#ifndef ACROBOT_RENDER_H
#define ACROBOT_RENDER_H

#include "acrobot.h"
#include "puffer_draw.h"

static const PufferKey acrobot_keys[] = {
    {"left", 0, ACROBOT_NEGATIVE, "turn the second link clockwise"},
    {"right", 0, ACROBOT_POSITIVE, "turn the second link counter-clockwise"},
    {"", 0, ACROBOT_NONE, "let them swing"},
};

enum { ACROBOT_PX_PER_M = 92, ACROBOT_BAR_Y = 250 };

/* A dotted line at the goal height of the tip, in m above the bar. */
static inline void acrobot_draw_goal(PufferCanvas *canvas) {
    for (int32_t x = 0; x < canvas->width; x += 16) {
        draw_rectangle(canvas, x + 4, ACROBOT_BAR_Y - ACROBOT_PX_PER_M - 1, 8, 2, DRAW_GREEN);
    }
}

/* Dots on a circle around the joint, from the bottom to the side to which the torque turns. */
static inline void acrobot_draw_torque(PufferCanvas *canvas, int32_t x, int32_t y, double torque) {
    const double most = puffer_clamp((float)torque, -1, 1) * 2.2;
    for (int32_t dot = 0; dot <= 8 && most != 0; dot++) {
        const double angle = most * dot / 8;
        draw_disc(canvas, x + (int32_t)(26 * draw_sine(angle)), y + (int32_t)(26 * draw_cosine(angle)),
                  dot == 8 ? 5 : 2, DRAW_YELLOW);
    }
}

static inline void acrobot_draw_links(const Acrobot *env, PufferCanvas *canvas) {
    const double angle_1 = env->state.angle_1, angle_2 = angle_1 + env->state.angle_2;
    const int32_t x = canvas->width / 2, y = ACROBOT_BAR_Y;
    const int32_t joint_x = x + (int32_t)(ACROBOT_PX_PER_M * draw_sine(angle_1));
    const int32_t joint_y = y + (int32_t)(ACROBOT_PX_PER_M * draw_cosine(angle_1));
    const int32_t tip_x = joint_x + (int32_t)(ACROBOT_PX_PER_M * draw_sine(angle_2));
    const int32_t tip_y = joint_y + (int32_t)(ACROBOT_PX_PER_M * draw_cosine(angle_2));
    draw_line(canvas, x, y, joint_x, joint_y, 16, DRAW_CYAN);
    draw_line(canvas, joint_x, joint_y, tip_x, tip_y, 12, DRAW_ORANGE);
    draw_disc(canvas, x, y, 6, DRAW_WHITE);
    draw_disc(canvas, joint_x, joint_y, 5, DRAW_WHITE);
    draw_disc(canvas, tip_x, tip_y, 5, DRAW_RED);
    acrobot_draw_torque(canvas, joint_x, joint_y, env->torque);
}

static inline void acrobot_draw(const Acrobot *env, PufferCanvas *canvas) {
    draw_clear(canvas, DRAW_NIGHT);
    draw_text(canvas, 16, 14, 2, DRAW_WHITE, "STEPS");
    draw_number(canvas, 150, 14, 2, DRAW_WHITE, env->steps);
    draw_bar(canvas, 16, canvas->height - 20, canvas->width - 32, 6, env->steps, env->max_steps, DRAW_YELLOW);
    draw_rectangle(canvas, 0, ACROBOT_BAR_Y - 1, canvas->width, 3, DRAW_SLATE);
    acrobot_draw_goal(canvas);
    acrobot_draw_links(env, canvas);
}

#endif
