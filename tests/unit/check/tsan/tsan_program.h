/* The functions for tsan_entries.c that are compiled with -fsanitize=thread. */
#ifndef ORIEL_TESTS_UNIT_CHECK_TSAN_PROGRAM_H
#define ORIEL_TESTS_UNIT_CHECK_TSAN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct odd {
    char first;
    int32_t second;
    int64_t third;
} __attribute__((packed));

struct large {
    char bytes[200];
};

int64_t program_load(const void *at, int size);
void program_store(void *at, int size, int64_t value);
int32_t program_load_unaligned(const struct odd *at);
void program_store_unaligned(struct odd *at);
void program_copy_struct(struct large *to, const struct large *from);
void program_copy(void *to, const void *from, size_t len_bytes);
void program_fill(void *to, size_t len_bytes);
int32_t program_load_volatile(const volatile int32_t *at);
void program_store_volatile(volatile int32_t *at);

/* All atomic operations on an element of this number of bits; false if one returned a wrong
 * result. */
bool program_atomics_8(void *at);
bool program_atomics_16(void *at);
bool program_atomics_32(void *at);
bool program_atomics_64(void *at);

uint64_t program_atomic_load(const void *at);
void program_atomic_store(void *at);
uint64_t program_atomic_add(void *at);

#endif
