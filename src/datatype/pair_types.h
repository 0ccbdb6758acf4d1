/* Two layouts in parallel: the correspondence of their bytes. */
#ifndef ORIEL_DATATYPE_PAIR_TYPES_H
#define ORIEL_DATATYPE_PAIR_TYPES_H

#include "datatype/layout.h"
#include "transport/transport.h"

/* count repetitions of a node from an address on. */
struct oriel_part {
    char *at;
    const struct oriel_node *node;
    uint64_t count;
    int64_t stride_bytes;
};

static inline struct oriel_part oriel_part_one(const struct oriel_part *part, uint64_t which)
{
    return (struct oriel_part){oriel_at(part->at, (int64_t)which * part->stride_bytes), part->node,
                               1, 0};
}

static inline bool oriel_part_is_dense(const struct oriel_part *part)
{
    return part->node->form == ORIEL_NODE_RUN &&
           (part->count == 1 || (uint64_t)part->stride_bytes == oriel_run_bytes(part->node));
}

/* A contiguous move: the offsets relative to both parts. */
struct oriel_pair_piece {
    int64_t to_bytes;
    int64_t from_bytes;
    uint64_t len_bytes;
};

/* Copies all bytes, piece by piece. Returns false if memory is exhausted. */
bool oriel_pair_copy(const struct oriel_part *to, const struct oriel_part *from);

/* Writes the pieces, at most `most`. Returns their number, 0 if memory is exhausted. */
unsigned oriel_pair_pieces(const struct oriel_part *to, const struct oriel_part *from,
                           struct oriel_pair_piece *pieces, unsigned most);

#endif
