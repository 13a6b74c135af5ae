#include "moba_render.h"
PUFFER_ENV(Moba, moba, .prepare = moba_prepare)
