#include "render.h"
PUFFER_ENV(MountainCarContinuous, mountain_car_continuous, PUFFER_NUMPY(MountainCarContinuous, generator))
