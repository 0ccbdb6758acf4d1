/* What of a mapped memory file goes into core files of this process: the pieces in use.  allocator.c and file.c call for the own
 * file, peer.c for those of others, each under its mutex. */
#ifndef ORIEL_MEMORY_CORE_DUMP_H
#define ORIEL_MEMORY_CORE_DUMP_H

#include <stdint.h>

struct oriel_core_dump {
    char *base;
    uint64_t pieces;
    uint8_t *included; /* a bit for each piece; NULL: all are */
};

/* Leaves out the whole of a new mapping.  Without memory for its list the mapping is dumped whole. */
void oriel_core_dump_open(struct oriel_core_dump *dumps, char *base, uint64_t len_bytes);

/* The mapping is gone. */
void oriel_core_dump_close(struct oriel_core_dump *dumps);

/* Takes in all pieces that hold a byte of the range. */
void oriel_core_dump_include(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes);

/* Leaves out the pieces that lie whole in the range, of which nothing may be needed. */
void oriel_core_dump_exclude(struct oriel_core_dump *dumps, uint64_t offset, uint64_t len_bytes);

/* The first end_bytes have been mapped anew, and are dumped whole: what was left out is left out again. */
void oriel_core_dump_renew(const struct oriel_core_dump *dumps, uint64_t end_bytes);

#endif
