/* Copies between the blocks of a tree node and another side that has the same number of blocks, or
 * is dense. */
#ifndef ORIEL_DATATYPE_COPY_BLOCKS_H
#define ORIEL_DATATYPE_COPY_BLOCKS_H

#include "datatype/layout.h"

/* The positions of the blocks on one side: at offsets, or contiguous. */
struct oriel_row {
    char *at;
    const int64_t *offsets; /* NULL if contiguous */
};

/* Copies all blocks of the node. At least one side has the node's offsets. */
void oriel_copy_blocks(struct oriel_row to, struct oriel_row from, const struct oriel_node *node);

#endif
