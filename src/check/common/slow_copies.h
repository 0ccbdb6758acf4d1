/* Copies and fills memory without libc: for code that may run before libc's functions are found, or
 * before its own library is relocated. Compilers turn no such loop into a call of libc, because its
 * accesses are volatile. */
#ifndef ORIEL_CHECK_COMMON_SLOW_COPIES_H
#define ORIEL_CHECK_COMMON_SLOW_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Like memmove. */
static inline void *oriel_slow_copy(void *to, const void *from, size_t len_bytes)
{
    volatile char *out = to;
    const volatile char *in = from;
    bool backwards = (uintptr_t)to - (uintptr_t)from < len_bytes;
    for (size_t i = 0; i < len_bytes; i++) {
        size_t at = backwards ? len_bytes - 1 - i : i;
        out[at] = in[at];
    }
    return to;
}

/* Like memset. */
static inline void *oriel_slow_fill(void *to, int value, size_t len_bytes)
{
    volatile char *out = to;
    for (size_t i = 0; i < len_bytes; i++)
        out[i] = (char)value;
    return to;
}

#endif
