#include "memory_render.h"
PUFFER_ENV(Memory, memory)
