/* The operands of a one-sided operation: the number of items, their datatype and their position. */
#ifndef ORIEL_DATATYPE_OPERANDS_H
#define ORIEL_DATATYPE_OPERANDS_H

#include "datatype/copy_layout.h"
#include "datatype/datatype.h"

/* count items of a datatype. */
struct oriel_side {
    const struct oriel_type *type;
    uint64_t count;
};

/* The same, without the datatype. */
static inline struct oriel_items oriel_side_items(const struct oriel_side *side)
{
    return (struct oriel_items){side->type->layout, side->count, side->type->extent_bytes};
}

/* True if a side is one run of bytes without holes and padding. */
static inline bool oriel_side_is_plain(const struct oriel_side *side)
{
    return side->type->plain_bytes != INT64_MAX;
}

/* An operation's target: the rank, the offset in its window of displacement 0 of the first item,
 * and the items. */
struct oriel_span {
    int32_t rank;
    uint64_t offset_bytes;
    struct oriel_side side;
    /* 0, or the number + 1 of the notification that the target gets with an operation between
     * nodes (sync/notify.h) */
    uint32_t notifies;
};

/* One buffer of an accumulate. */
struct oriel_operand {
    char *here;
    struct oriel_side side;
};

/* The elements of an accumulate. */
struct oriel_elements {
    enum oriel_kind kind; /* ORIEL_KIND_CHAR if different types are moved as bytes */
    uint64_t count;
};

#endif
