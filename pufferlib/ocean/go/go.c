#include "render.h"
PUFFER_ENV(Go, go, PUFFER_KEYS(go_keys), .bytes = go_bytes, .area = go_area_of_action)
