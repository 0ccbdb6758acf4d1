/* Controls which pieces of mapped memory files are written to core files.
 *
 * 1. The kernel writes a core file page by page, and first populates each page that a file mapping
 *    lacks. The reserve is a thousand times what programs use: a dump would take many seconds, and
 *    holes would become pages.
 * 2. Therefore everything is excluded except the pieces in use. In the own file these are the
 *    pieces that contain a block. In a peer's file they are the pieces that contain this rank's
 *    part of a window (MPI_Win_allocate_shared). A piece has the size of a huge page, so advice
 *    never splits one.
 * 3. Each boundary between included and excluded pieces costs a mapping, and a process has 65,530
 *    of them. allocator.c therefore excludes pieces again only in large free ranges.
 * 4. All of this is advice. Where the kernel refuses it, the core file is larger, or lacks a block.
 */
#include "memory/core_dump.h"

#include "memory/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PIECE_BYTES ORIEL_HUGE_BYTES
enum { BITS = 8 };

static bool is_included(const struct oriel_core_dump *dumps, uint64_t piece)
{
    return (dumps->included[piece / BITS] >> (piece % BITS) & 1) != 0;
}

static void pieces_advise(const struct oriel_core_dump *dumps, uint64_t first, uint64_t end,
                          int advice)
{
    if (first < end)
        madvise(dumps->base + first * PIECE_BYTES, (end - first) * PIECE_BYTES, advice);
}

/* One call per run of pieces that change. */
static void pieces_set(struct oriel_core_dump *dumps, uint64_t first, uint64_t end, bool included)
{
    int advice = included ? MADV_DODUMP : MADV_DONTDUMP;
    uint64_t from = first;
    for (uint64_t piece = first; piece < end; piece++) {
        if (is_included(dumps, piece) == included) {
            pieces_advise(dumps, from, piece, advice);
            from = piece + 1;
        } else {
            dumps->included[piece / BITS] ^= (uint8_t)(1U << (piece % BITS));
        }
    }
    pieces_advise(dumps, from, end, advice);
}

void oriel_core_dump_open(struct oriel_core_dump *dumps, char *base, uint64_t len_bytes)
{
    *dumps = (struct oriel_core_dump){.base = base,
                                      .pieces = (len_bytes + PIECE_BYTES - 1) / PIECE_BYTES};
    dumps->included = calloc(dumps->pieces / BITS + 1, 1);
    if (dumps->included != NULL)
        madvise(base, len_bytes, MADV_DONTDUMP);
}

void oriel_core_dump_close(struct oriel_core_dump *dumps)
{
    free(dumps->included);
    *dumps = (struct oriel_core_dump){.base = NULL};
}

void oriel_core_dump_include(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes)
{
    if (dumps->included != NULL)
        pieces_set(dumps, offset / PIECE_BYTES,
                   (offset + len_bytes + PIECE_BYTES - 1) / PIECE_BYTES, true);
}

void oriel_core_dump_exclude(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes)
{
    uint64_t first = (offset + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t end = (offset + len_bytes) / PIECE_BYTES;
    if (dumps->included != NULL && first < end)
        pieces_set(dumps, first, end, false);
}

void oriel_core_dump_reapply(const struct oriel_core_dump *dumps, uint64_t end_bytes)
{
    uint64_t end = (end_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t from = 0;
    if (dumps->included == NULL)
        return;
    for (uint64_t piece = 0; piece < end; piece++) {
        if (!is_included(dumps, piece))
            continue;
        pieces_advise(dumps, from, piece, MADV_DONTDUMP);
        from = piece + 1;
    }
    pieces_advise(dumps, from, end, MADV_DONTDUMP);
}
