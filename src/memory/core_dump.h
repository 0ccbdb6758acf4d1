/* Selects the pieces of a mapped memory file that go into core files of this process: the pieces in
 * use. Not thread-safe: the mutex of the file's owner (file.c, peer.c) serialises all calls. */
#ifndef ORIEL_MEMORY_CORE_DUMP_H
#define ORIEL_MEMORY_CORE_DUMP_H

#include <stdint.h>

struct oriel_core_dump {
    char *base;
    uint64_t pieces;
    uint8_t *included; /* one bit per piece; NULL: all pieces are included */
};

/* Excludes a whole new mapping. Without memory for the bit set, the whole mapping is dumped. */
void oriel_core_dump_open(struct oriel_core_dump *dumps, char *base, uint64_t len_bytes);

/* Forgets a mapping that no longer exists. */
void oriel_core_dump_close(struct oriel_core_dump *dumps);

/* Includes all pieces that hold a byte of the range. */
void oriel_core_dump_include(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes);

/* Excludes the pieces that are entirely in the range. No block may be in the range. */
void oriel_core_dump_exclude(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes);

/* Call after the first end_bytes have been mapped again, which includes all of their pieces:
 * excludes the pieces that were excluded before. */
void oriel_core_dump_reapply(const struct oriel_core_dump *dumps, uint64_t end_bytes);

#endif
