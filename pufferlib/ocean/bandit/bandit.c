#include "bandit_render.h"
PUFFER_ENV(Bandit, bandit)
