/* Copies from one layout to another where both sides are in this process's memory.  move.c calls. */
#ifndef ORIEL_OPS_COPY_H
#define ORIEL_OPS_COPY_H

#include "ops/layout.h"

/* One side of an operation: count items of a layout from a place on. */
struct oriel_items {
    const struct oriel_node *layout;
    uint64_t count;
    int64_t extent_bytes;
};

enum { ORIEL_COPY_DEPTH = 24 }; /* of layouts that are taken apart level by level: the stack has room for so many */

/* Whether oriel_copy_items takes these two sides: as many bytes on both, and no padded pairs. */
static inline bool oriel_copy_can(const struct oriel_items *a, const struct oriel_items *b)
{
    return a->count * a->layout->size_bytes == b->count * b->layout->size_bytes && !a->layout->padded && !b->layout->padded &&
           a->layout->depth <= ORIEL_COPY_DEPTH && b->layout->depth <= ORIEL_COPY_DEPTH;
}

/* Copies all bytes from one side to the other; element meets element as the type maps have them, in any order of time.  False
 * when memory is exhausted. */
bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from, const struct oriel_items *from_items);

#endif
