#include "render.h"
PUFFER_ENV(MountainCar, mountain_car, PUFFER_KEYS(mountain_car_keys), PUFFER_NUMPY(MountainCar, generator))
