#include "render.h"
PUFFER_ENV(Squared, squared, PUFFER_KEYS(squared_keys))
