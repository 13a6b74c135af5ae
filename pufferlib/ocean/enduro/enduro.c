#include "render.h"
PUFFER_ENV(Enduro, enduro, PUFFER_KEYS(enduro_keys))
