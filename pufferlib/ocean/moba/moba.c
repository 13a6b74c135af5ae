#include "render.h"
PUFFER_ENV(Moba, moba, .prepare = moba_prepare, PUFFER_KEYS(moba_keys))
