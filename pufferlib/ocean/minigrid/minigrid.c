#include "render.h"
PUFFER_ENV(MiniGrid, minigrid, PUFFER_KEYS(minigrid_keys), PUFFER_INFOS(minigrid_infos),
           PUFFER_LAST_INFOS(minigrid_last_infos), PUFFER_NUMPY(MiniGrid, generator), .bytes = minigrid_bytes)
