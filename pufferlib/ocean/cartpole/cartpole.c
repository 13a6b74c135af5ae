#include "render.h"
PUFFER_ENV(Cartpole, cartpole, PUFFER_KEYS(cartpole_keys))
