#include "render.h"
PUFFER_ENV(FrozenLake, frozen_lake, PUFFER_KEYS(frozen_lake_keys), PUFFER_INFOS(frozen_lake_infos),
           PUFFER_LAST_INFOS(frozen_lake_last_infos), PUFFER_NUMPY(FrozenLake, generator))
