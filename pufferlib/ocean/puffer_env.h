/* The contract of a C environment. */
#ifndef PUFFER_ENV_H
#define PUFFER_ENV_H

typedef struct PufferEnvType PufferEnvType;

#endif
