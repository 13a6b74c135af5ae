#include "squared_render.h"
PUFFER_ENV(Squared, squared)
