#include "render.h"
PUFFER_ENV(TripleTriad, tripletriad, PUFFER_KEYS(tripletriad_keys))
