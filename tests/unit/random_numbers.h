/* The same random numbers in each run of a unit test, so failures are reproducible. */
#ifndef ORIEL_TESTS_UNIT_RANDOM_NUMBERS_H
#define ORIEL_TESTS_UNIT_RANDOM_NUMBERS_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

/* From 0 on. */
static inline uint64_t below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 20) % limit;
}

#endif
