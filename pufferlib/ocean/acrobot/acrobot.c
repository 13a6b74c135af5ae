#include "render.h"
PUFFER_ENV(Acrobot, acrobot, PUFFER_KEYS(acrobot_keys), PUFFER_NUMPY(Acrobot, generator))
