#include "rware_render.h"
PUFFER_ENV(Rware, rware)
