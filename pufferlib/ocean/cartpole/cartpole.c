#include "render.h"
PUFFER_ENV(Cartpole, cartpole, PUFFER_KEYS(cartpole_keys), PUFFER_NUMPY(Cartpole, generator))
