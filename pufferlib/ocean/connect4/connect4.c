#include "render.h"
PUFFER_ENV(Connect4, connect4, PUFFER_KEYS(connect4_keys), .area = connect4_area)
