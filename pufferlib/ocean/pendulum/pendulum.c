#include "render.h"
PUFFER_ENV(Pendulum, pendulum, PUFFER_NUMPY(Pendulum, generator))
