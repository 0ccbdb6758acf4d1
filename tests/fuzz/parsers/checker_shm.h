/* The checker's shared memory in a fuzzer. Bytes that the address sanitiser watches surround each
 * allocation. It also watches freed allocations, which are never reused. */
#ifndef ORIEL_TESTS_FUZZERS_CHECKER_SHM_H
#define ORIEL_TESTS_FUZZERS_CHECKER_SHM_H

#include "fuzzer.h"

#include "check/shm/shm.h"

void checker_shm_open(int world_size);
void checker_shm_close(void);

/* Reads all of it. */
void look_at(const void *bytes, size_t len_bytes);

/* Numbers as inputs may contain them: small ones, those of the list, any. */
uint64_t draw_number(struct input *input, const uint64_t *list, uint32_t count);

#endif
