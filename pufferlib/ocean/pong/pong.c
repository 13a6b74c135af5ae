#include "pong_render.h"
PUFFER_ENV(Pong, pong)
