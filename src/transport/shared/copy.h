/* Copies to and from shared memory. Sizes of one word take one load and one store of that width.
 * Inlined into the data path. */
#ifndef ORIEL_TRANSPORT_SHARED_COPY_H
#define ORIEL_TRANSPORT_SHARED_COPY_H

#include <stdint.h>
#include <string.h>

/* At most half of the private cache of a core in recent processors. */
#define ORIEL_COPY_PIECE_BYTES ((uint64_t)256 << 10)

/* Shorter copies are complete before more than a few pages could be missing. */
#define ORIEL_COPY_LONG_BYTES ((uint64_t)16 << 10)

/* Called for a new window: the first long copies into its memory access pages that this process has
 * not used yet. */
void oriel_copy_window_created(void);

void oriel_copy_long(void *to, const void *from, uint64_t len_bytes);

/* Maps the pages of a window's memory before len_bytes are stored there. Not for a program's
 * buffer: there a load before the store is an additional fault. */
void oriel_copy_premap_pages(const void *at, uint64_t len_bytes);

/* Called before a put. */
static inline void oriel_copy_premap(const void *to, uint64_t len_bytes)
{
    if (__builtin_expect(len_bytes > ORIEL_COPY_LONG_BYTES, 0))
        oriel_copy_premap_pages(to, len_bytes);
}

/* memmove, because the program may put to itself with overlapping buffers: undefined in MPI,
 * harmless here. */
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
        else if (len_bytes > 0) /* empty buffers may be NULL */
            memmove(to, from, len_bytes);
    }
}

#endif
