#include "tactical_render.h"
PUFFER_ENV(Tactical, tactical, PUFFER_KEYS(tactical_keys), .prepare = tactical_prepare)
