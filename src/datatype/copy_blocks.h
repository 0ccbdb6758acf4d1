/* Copies between the blocks of a node and another side that has as many, or is dense.  copy_layout.c calls. */
#ifndef ORIEL_DATATYPE_COPY_BLOCKS_H
#define ORIEL_DATATYPE_COPY_BLOCKS_H

#include "datatype/layout.h"

/* Where blocks lie on one side: at their offsets, or one behind the other. */
struct oriel_row {
    char *at;
    const int64_t *offsets; /* NULL: one behind the other */
};

/* All blocks of the node, whose offsets at least one side has. */
void oriel_copy_blocks(struct oriel_row to, struct oriel_row from, const struct oriel_node *node);

#endif
