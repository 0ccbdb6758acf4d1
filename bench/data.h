/* Predictable data: words that follow from a seed and an index, and doubles whose sums are exact.
 * Different seeds give different words at every index. Lengths are in bytes and need not be
 * multiples of a word. This file does not use MPI. */
#ifndef ORIEL_BENCH_DATA_H
#define ORIEL_BENCH_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t data_word(uint64_t seed, size_t index);
void data_fill(char *memory, size_t len_bytes, uint64_t seed);
bool data_holds(const char *memory, size_t len_bytes, uint64_t seed);

/* The same, when memory begins skip_bytes after the word with index 0. */
bool data_holds_from(const char *memory, size_t skip_bytes, size_t len_bytes, uint64_t seed);

/* Whole numbers from 1 to 16. */
double data_double(uint64_t seed, size_t index);
void data_fill_doubles(char *memory, size_t len_bytes, uint64_t seed);

/* True when each double is the first seed's value plus `times` the second's. The first double in
 * memory has the index `first`. */
bool data_holds_sums(const char *memory, size_t first, size_t count, uint64_t seed,
                     uint64_t added_seed, uint64_t times);

#endif
