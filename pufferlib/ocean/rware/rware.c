#include "render.h"
PUFFER_ENV(Rware, rware, PUFFER_KEYS(rware_keys))
