#include "render.h"
PUFFER_ENV(Taxi, taxi, .prepare = taxi_prepare, PUFFER_KEYS(taxi_keys), PUFFER_INFOS(taxi_infos),
           PUFFER_LAST_INFOS(taxi_last_infos), PUFFER_NUMPY(Taxi, generator))
