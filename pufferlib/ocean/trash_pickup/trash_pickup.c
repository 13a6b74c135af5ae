#include "render.h"
PUFFER_ENV(TrashPickup, trash_pickup, PUFFER_KEYS(trash_pickup_keys), .bytes = trash_pickup_bytes,
           PUFFER_POINTERS(trash_pickup_pointers))
