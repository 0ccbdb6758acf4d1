/* The operands of a one-sided operation: how many items of which datatype, and where. */
#ifndef ORIEL_DATATYPE_OPERANDS_H
#define ORIEL_DATATYPE_OPERANDS_H

#include "datatype/datatype.h"

/* Count items of a datatype from a place on. */
struct oriel_side {
    const struct oriel_type *type;
    uint64_t count;
};

/* Whether a side is one run of bytes, without holes and padding. */
static inline bool oriel_side_is_plain(const struct oriel_side *side)
{
    return side->type->plain_bytes != INT64_MAX;
}

/* An operation's target: rank, the byte in its window that is displacement 0 of the first item, and the items. */
struct oriel_span {
    int32_t rank;
    uint64_t offset_bytes;
    struct oriel_side side;
};

/* One buffer of an accumulate. */
struct oriel_operand {
    char *here;
    struct oriel_side side;
};

/* What an accumulate works on. */
struct oriel_elements {
    enum oriel_kind kind; /* ORIEL_KIND_CHAR where unlike types are moved as bytes */
    uint64_t count;
};

#endif
