#include "password_render.h"
PUFFER_ENV(Password, password)
