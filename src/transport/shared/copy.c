/* Copies that are longer than a part of a core's own cache.  They go in pieces: some C libraries leave the processor's own
 * block copy (rep movsb) for loops of vectors from the size of that cache on, where the block copy is the faster one still
 * (docs/performance.md).  What a piece is copied by remains the library's choice.  copy.h calls. */
#include "transport/shared/copy.h"

void oriel_copy_long(void *to, const void *from, uint64_t len_bytes)
{
    char *next = to;
    const char *source = from;
    /* Where they overlap, a piece could change what a later one is to read. */
    if ((uintptr_t)to - (uintptr_t)from < len_bytes || (uintptr_t)from - (uintptr_t)to < len_bytes) {
        memmove(to, from, len_bytes);
        return;
    }
    for (; len_bytes > ORIEL_COPY_PIECE_BYTES; len_bytes -= ORIEL_COPY_PIECE_BYTES) {
        memmove(next, source, ORIEL_COPY_PIECE_BYTES);
        next += ORIEL_COPY_PIECE_BYTES;
        source += ORIEL_COPY_PIECE_BYTES;
    }
    memmove(next, source, len_bytes);
}
