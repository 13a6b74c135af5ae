/* Prints the first numbers that a generator draws after each seed of the command line, and numbers that it
 * shuffles then. Built with the sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "puffer_numpy.h"

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        PufferGenerator generator;
        puffer_seed_generator(&generator, strtoull(arguments[i], NULL, 10));
        for (int j = 0; j < 5; j++) printf("%.17g ", puffer_uniform(&generator, -0.6, 0.4));
        int32_t shuffled[20];
        for (int32_t j = 0; j < 20; j++) shuffled[j] = j;
        puffer_shuffle(&generator, shuffled, 20);
        for (int j = 0; j < 20; j++) printf("%d ", shuffled[j]);
        printf("\n");
    }
}
