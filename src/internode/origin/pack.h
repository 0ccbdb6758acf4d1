/* Pieces of layouts as they travel between machines: batches of runs, and the bytes that move of them, packed without
 * holes and padding.  A piece of a batch begins and ends anywhere, but within a padded pair, which is then told field
 * by field.  origin_rma.c and target_rma.c call. */
#ifndef ORIEL_INTERNODE_ORIGIN_PACK_H
#define ORIEL_INTERNODE_ORIGIN_PACK_H

#include "datatype/layout.h"

/* Runs of equal length at equal distances. */
struct oriel_internode_batch {
    int64_t at_bytes; /* of the first run; from where, the user says */
    int64_t stride_bytes;
    uint32_t run_bytes; /* the padding of pairs included */
    uint32_t runs;
    uint32_t kind;     /* of a padded pair, or ORIEL_KIND_CHAR */
    uint32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct oriel_internode_batch) == 32, "it travels");

/* Describes the first of what is left of the batch, at most most_bytes (above 0, below 4 GiB) that move, and uses them;
 * returns how many these are, at least 1. */
uint64_t oriel_internode_describe(struct oriel_batch *batch, uint64_t most_bytes,
                                  struct oriel_internode_batch *out);

/* The bytes of a batch, at_bytes from base, to or from packed ones; returns how many these are. */
uint64_t oriel_internode_pack(char *packed, const struct oriel_internode_batch *batch,
                              const void *base);
uint64_t oriel_internode_unpack(const char *packed, const struct oriel_internode_batch *batch,
                                void *base);

#endif
