#include "render.h"
PUFFER_ENV(Breakout, breakout, PUFFER_KEYS(breakout_keys))
