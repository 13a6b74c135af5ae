#include "render.h"
PUFFER_ENV(Snake, snake, PUFFER_KEYS(snake_keys), .bytes = snake_bytes, PUFFER_POINTERS(snake_pointers))
