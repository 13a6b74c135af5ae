/* Rendering of mountain car with a continuous force. */
#ifndef MOUNTAIN_CAR_CONTINUOUS_RENDER_H
#define MOUNTAIN_CAR_CONTINUOUS_RENDER_H

#include "../mountain_car/hills.h"
#include "mountain_car_continuous.h"

static inline void mountain_car_continuous_draw(const MountainCarContinuous *env, PufferCanvas *canvas) {
    hills_draw(canvas, MOUNTAIN_CAR_CONTINUOUS_FLAG, env->position, env->force, env->steps, env->max_steps);
}

#endif
