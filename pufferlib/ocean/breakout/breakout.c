#include "breakout_render.h"
PUFFER_ENV(Breakout, breakout)
