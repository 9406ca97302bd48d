/* Numbers that are random enough, and the same each time. */
#ifndef PERFJIT_TEST_RANDOM_NUMBERS_H
#define PERFJIT_TEST_RANDOM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* In [0, 1). */
static inline double chance(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / (double)(UINT64_C(1) << 31);
}

/* About normal, of mean 0 and deviation 1. */
static inline double noise(uint64_t *state)
{
    double sum = -6;
    for (size_t i = 0; i < 12; i++)
        sum += chance(state);
    return sum;
}

#endif
