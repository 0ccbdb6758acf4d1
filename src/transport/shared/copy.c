/* Long copies.  Those that are longer than a part of a core's own cache go in pieces: some C libraries leave the processor's own
 * block copy (rep movsb) for loops of vectors from the size of that cache on, where the block copy is the faster one still
 * (docs/performance.md).  What a piece is copied by remains the library's choice.
 *
 * The first store into each page of a mapping of a file costs a fault.  A load that faults brings in the pages around it as well,
 * which may be stored into then: so there is one before the copy for all that the system brings in at once, and the first copy
 * takes a quarter of the time.  Where the process has done so already it does not again, or seldom: a load behind the
 * processor's block copy waits for memory.  Puts do so.  A get's buffer is mostly memory of the program's own: a load there maps
 * the page of zeros, or a huge one, which the first store has to replace.  copy.h calls. */
#include "transport/shared/copy.h"

#include <stdatomic.h>

enum {
    AROUND_SHIFT = 16,
    REMEMBERED = 1024
}; /* Linux's fault_around_bytes, as it is by itself; as many of them */

static _Atomic uint64_t
    windows; /* so many were made: memory may have come back empty to an address */

void oriel_copy_renew(void)
{
    atomic_fetch_add_explicit(&windows, UINT64_C(1) << 48, memory_order_relaxed);
}

void oriel_copy_bring_in(const void *place, uint64_t len_bytes)
{
    static _Atomic uint64_t
        known[REMEMBERED]; /* what is there in vain, or not there in vain, costs time and no more */
    const uint64_t now = atomic_load_explicit(&windows, memory_order_relaxed);
    const char *at = place;
    const char *end = at + len_bytes;
    for (uint64_t block; at < end; at = (const char *)(uintptr_t)((block + 1) << AROUND_SHIFT)) {
        block = (uint64_t)(uintptr_t)at >> AROUND_SHIFT;
        if (atomic_load_explicit(&known[block % REMEMBERED], memory_order_relaxed) == (now | block))
            continue;
        (void)*(const volatile char *)at;
        atomic_store_explicit(&known[block % REMEMBERED], now | block, memory_order_relaxed);
    }
}

void oriel_copy_long(void *to, const void *from, uint64_t len_bytes)
{
    char *next = to;
    const char *source = from;
    /* Where they overlap, a piece could change what a later one is to read. */
    if ((uintptr_t)to - (uintptr_t)from < len_bytes ||
        (uintptr_t)from - (uintptr_t)to < len_bytes) {
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
