#include "render.h"
PUFFER_ENV(Password, password, PUFFER_KEYS(password_keys))
