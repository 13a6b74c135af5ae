#include "render.h"
PUFFER_ENV(Memory, memory, PUFFER_KEYS(memory_keys))
