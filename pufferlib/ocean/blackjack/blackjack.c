#include "render.h"
PUFFER_ENV(Blackjack, blackjack, PUFFER_KEYS(blackjack_keys), PUFFER_NUMPY(Blackjack, generator))
