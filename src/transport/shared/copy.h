/* Copying to and from shared memory.  Sizes of one machine word take one load and one store of that width.  The data path
 * inlines it. */
#ifndef ORIEL_TRANSPORT_SHARED_COPY_H
#define ORIEL_TRANSPORT_SHARED_COPY_H

#include <stdint.h>
#include <string.h>

/* Half of the cache that a core of the processors of the last years has for itself, or less. */
#define ORIEL_COPY_PIECE_BYTES ((uint64_t)256 << 10)

/* Shorter ones are over before more than a few pages could be missing. */
#define ORIEL_COPY_LONG_BYTES ((uint64_t)16 << 10)

/* A window has come: the first long copies into its memory meet pages that this process has not used yet. */
void oriel_copy_renew(void);

void oriel_copy_long(void *to, const void *from, uint64_t len_bytes);

/* The pages of a window's memory, of which so many bytes are about to be stored into; none of a program's buffer: there a load
 * ahead of the store is a fault more. */
void oriel_copy_bring_in(const void *at, uint64_t len_bytes);

/* Ahead of a put. */
static inline void oriel_copy_ahead(const void *to, uint64_t len_bytes)
{
    if (__builtin_expect(len_bytes > ORIEL_COPY_LONG_BYTES, 0))
        oriel_copy_bring_in(to, len_bytes);
}

/* memmove where the program puts to itself with overlapping buffers: undefined to MPI, harmless here. */
static inline void oriel_copy(void *to, const void *from, uint64_t len_bytes)
{
    if (__builtin_expect(len_bytes == 8, 1)) {
        __builtin_memcpy(to, from, 8);
        return;
    }
    switch (len_bytes) {
    case 4: __builtin_memcpy(to, from, 4); return;
    case 2: __builtin_memcpy(to, from, 2); return;
    case 1: __builtin_memcpy(to, from, 1); return;
    default:
        if (len_bytes > ORIEL_COPY_LONG_BYTES)
            oriel_copy_long(to, from, len_bytes);
        else if (len_bytes > 0) /* buffers of nothing may be NULL */
            memmove(to, from, len_bytes);
    }
}

#endif
