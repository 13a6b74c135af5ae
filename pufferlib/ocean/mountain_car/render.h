/* Rendering of mountain car, and its keys. */
#ifndef MOUNTAIN_CAR_RENDER_H
#define MOUNTAIN_CAR_RENDER_H

#include "hills.h"
#include "mountain_car.h"

static const PufferKey mountain_car_keys[] = {
    {"left", 0, MOUNTAIN_CAR_LEFT, "accelerate to the left"},
    {"right", 0, MOUNTAIN_CAR_RIGHT, "accelerate to the right"},
    {"", 0, MOUNTAIN_CAR_COAST, "coast"},
};

static inline void mountain_car_draw(const MountainCar *env, PufferCanvas *canvas) {
    hills_draw(canvas, MOUNTAIN_CAR_FLAG, env->position, env->direction, env->steps, env->max_steps);
}

#endif
