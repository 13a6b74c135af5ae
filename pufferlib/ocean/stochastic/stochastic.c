#include "render.h"
PUFFER_ENV(Stochastic, stochastic, PUFFER_KEYS(stochastic_keys))
