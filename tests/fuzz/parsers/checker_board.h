/* The checker's board in a fuzzer: what lies in it is between bytes that the address sanitiser watches, and what is freed is
 * watched too, and used by nobody again. */
#ifndef ORIEL_TESTS_FUZZERS_CHECKER_BOARD_H
#define ORIEL_TESTS_FUZZERS_CHECKER_BOARD_H

#include "fuzzer.h"

#include "check/shm/shm.h"

void board_open(int world_size);
void board_close(void);

/* Reads all of it. */
void look_at(const void *bytes, size_t len_bytes);

/* Numbers as they may come: small ones, those of the list, any. */
uint64_t draw_number(struct input *input, const uint64_t *list, uint32_t count);

#endif
