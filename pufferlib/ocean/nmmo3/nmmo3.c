#include "render.h"
PUFFER_ENV(Nmmo3, nmmo3, PUFFER_KEYS(nmmo3_keys), .bytes = nmmo3_bytes, PUFFER_POINTERS(nmmo3_pointers))
