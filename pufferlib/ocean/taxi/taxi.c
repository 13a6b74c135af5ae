#include "render.h"
PUFFER_ENV(Taxi, taxi, .prepare = taxi_prepare, PUFFER_KEYS(taxi_keys), PUFFER_NUMPY(Taxi, generator))
