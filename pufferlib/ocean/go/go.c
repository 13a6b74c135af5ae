#include "go_render.h"
PUFFER_ENV(Go, go, .bytes = go_bytes)
