/* The same random numbers in each run of a unit test, so failures are reproducible. */
#ifndef ORIEL_TESTS_UNIT_CHANCE_H
#define ORIEL_TESTS_UNIT_CHANCE_H

#include <stdint.h>

static uint64_t state_of_chance = 88172645463325252u;

/* From 0 on. */
static inline uint64_t below(uint64_t limit)
{
    state_of_chance ^= state_of_chance << 13;
    state_of_chance ^= state_of_chance >> 7;
    state_of_chance ^= state_of_chance << 17;
    return (state_of_chance >> 20) % limit;
}

#endif
