#include "stochastic_render.h"
PUFFER_ENV(Stochastic, stochastic)
