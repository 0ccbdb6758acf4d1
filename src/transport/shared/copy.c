/* Long copies. Copies that exceed a part of a core's private cache are cut into pieces. From the
 * size of that cache on, some C libraries change from the processor's block copy (rep movsb) to
 * vector loops. There the block copy is still faster (docs/results/performance.md). The
 * library still chooses how to copy each piece.
 *
 * The first store into each page of a file mapping costs a fault. A load that faults also maps the
 * surrounding pages, and stores into them then need no fault. So before the copy there is one load
 * for each block that the system maps at once, and the first copy takes a quarter of the time. A
 * process seldom repeats these loads for the same block: a load after the processor's block copy
 * waits for memory. Only puts execute them. A get's buffer is mostly the program's own memory.
 * There a load maps the zero page or a huge page, which the first store has to replace. */
#include "transport/shared/copy.h"

#include <stdatomic.h>

/* log2 of Linux's default fault_around_bytes; number of remembered blocks */
enum { AROUND_SHIFT = 16, REMEMBERED = 1024 };

/* number of created windows, in the upper 16 bits: pages that were mapped before may be missing
 * again */
static _Atomic uint64_t windows_created;

void oriel_copy_window_created(void)
{
    atomic_fetch_add_explicit(&windows_created, UINT64_C(1) << 48, memory_order_relaxed);
}

void oriel_copy_premap_pages(const void *addr, uint64_t len_bytes)
{
    /* wrong or missing entries cost time, nothing else */
    static _Atomic uint64_t mapped_blocks[REMEMBERED];
    const uint64_t now = atomic_load_explicit(&windows_created, memory_order_relaxed);
    const char *at = addr;
    const char *end = at + len_bytes;
    for (uint64_t block; at < end; at = (const char *)(uintptr_t)((block + 1) << AROUND_SHIFT)) {
        block = (uint64_t)(uintptr_t)at >> AROUND_SHIFT;
        if (atomic_load_explicit(&mapped_blocks[block % REMEMBERED], memory_order_relaxed) ==
            (now | block))
            continue;
        (void)*(const volatile char *)at;
        atomic_store_explicit(&mapped_blocks[block % REMEMBERED], now | block,
                              memory_order_relaxed);
    }
}

void oriel_copy_long(void *to, const void *from, uint64_t len_bytes)
{
    char *next = to;
    const char *source = from;
    /* If they overlap, a piece could change the source of a later one. */
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
