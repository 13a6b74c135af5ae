#include "multiagent_render.h"
PUFFER_ENV(Multiagent, multiagent)
