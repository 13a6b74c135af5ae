#include "render.h"
PUFFER_ENV(Multiagent, multiagent, PUFFER_KEYS(multiagent_keys), .bytes = multiagent_bytes)
