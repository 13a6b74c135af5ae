#include "cartpole_render.h"
PUFFER_ENV(Cartpole, cartpole)
