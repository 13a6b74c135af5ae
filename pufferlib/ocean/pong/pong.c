#include "render.h"
PUFFER_ENV(Pong, pong, PUFFER_KEYS(pong_keys))
