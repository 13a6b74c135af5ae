#include "render.h"
PUFFER_ENV(Tactical, tactical, PUFFER_KEYS(tactical_keys), .area = tactical_area, .prepare = tactical_prepare)
