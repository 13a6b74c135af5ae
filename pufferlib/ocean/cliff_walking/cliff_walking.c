#include "render.h"
PUFFER_ENV(CliffWalking, cliff_walking, PUFFER_KEYS(cliff_walking_keys), PUFFER_INFOS(cliff_walking_infos),
           PUFFER_LAST_INFOS(cliff_walking_last_infos), PUFFER_NUMPY(CliffWalking, generator))
