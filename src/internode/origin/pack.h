/* The wire form of layouts between nodes: batches of runs, and their bytes packed without holes and
 * padding. A piece of a batch may begin and end anywhere. Within a padded pair it is described
 * field by field. */
#ifndef ORIEL_INTERNODE_ORIGIN_PACK_H
#define ORIEL_INTERNODE_ORIGIN_PACK_H

#include "datatype/layout.h"

/* Runs of equal length at equal distances. */
struct oriel_internode_batch {
    int64_t at_bytes; /* of the first run, from a base that the caller chooses */
    int64_t stride_bytes;
    uint32_t run_bytes; /* includes the padding of pairs */
    uint32_t runs;
    uint32_t kind;     /* of a padded pair, or ORIEL_KIND_CHAR */
    uint32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct oriel_internode_batch) == 32, "it travels");

/* Describes the first part of the rest of the batch and consumes it: at most most_bytes of payload
 * (above 0, below 4 GiB). Returns the payload bytes, at least 1. */
uint64_t oriel_internode_describe(struct oriel_batch *batch, uint64_t most_bytes,
                                  struct oriel_internode_batch *out);

/* Copies the bytes of a batch, at_bytes from base, to or from a packed buffer; returns the number
 * of bytes. */
uint64_t oriel_internode_pack(char *packed, const struct oriel_internode_batch *batch,
                              const void *base);
uint64_t oriel_internode_unpack(const char *packed, const struct oriel_internode_batch *batch,
                                void *base);

#endif
