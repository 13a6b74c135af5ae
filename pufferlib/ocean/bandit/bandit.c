#include "render.h"
PUFFER_ENV(Bandit, bandit)
