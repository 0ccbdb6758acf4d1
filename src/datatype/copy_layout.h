/* Copies from one layout to another, with both sides in this process's memory. */
#ifndef ORIEL_DATATYPE_COPY_LAYOUT_H
#define ORIEL_DATATYPE_COPY_LAYOUT_H

#include "base/atomic.h"
#include "datatype/layout.h"
#include "transport/shared/copy_strided.h"
#include "transport/transport.h"

/* One side of an operation: count items of a layout. */
struct oriel_items {
    const struct oriel_node *layout;
    uint64_t count;
    int64_t extent_bytes;
};

/* Reduces the sink to the items that len_bytes fill, including one that is filled in part. */
static inline void oriel_items_trim(struct oriel_items *sink, uint64_t len_bytes)
{
    if (oriel_unlikely(sink->count * sink->layout->size_bytes != len_bytes))
        sink->count = (len_bytes + sink->layout->size_bytes - 1) / sink->layout->size_bytes;
}

/* maximum depth of layouts that are decomposed level by level, limited by the stack */
enum { ORIEL_COPY_DEPTH = 24 };

/* True if oriel_copy_items supports these two sides: equal size and no padded pairs. */
static inline bool oriel_copy_is_supported(const struct oriel_items *a, const struct oriel_items *b)
{
    return a->count * a->layout->size_bytes == b->count * b->layout->size_bytes &&
           !a->layout->padded && !b->layout->padded && a->layout->depth <= ORIEL_COPY_DEPTH &&
           b->layout->depth <= ORIEL_COPY_DEPTH;
}

/* Copies all bytes from one side to the other. Elements correspond in the order of the type maps,
 * but may be copied in any order. Returns false if memory is exhausted. */
bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from,
                      const struct oriel_items *from_items);

/* A copy between two layouts that may be repeated: everything that does not depend on the addresses
 * is computed once. */
struct oriel_copy_prepared {
    oriel_copy_strided_loop *loop; /* for runs on both sides; else NULL */
    /* cached by one of the layouts; else NULL, and the sides are decomposed in each copy */
    const struct oriel_plan *plan;
    union {
        struct {                          /* for the loop and the plan */
            int64_t to_bytes, from_bytes; /* start of each side */
            uint64_t count;               /* number of runs, or of the plan's items */
            uint64_t len_bytes;           /* of a run, like the strides */
            int64_t to_stride, from_stride;
        };
        struct {
            struct oriel_items to, from;
        };
    };
};

/* For two sides for which oriel_copy_is_supported is true. Valid as long as the layouts. */
void oriel_copy_prepare(struct oriel_copy_prepared *out, const struct oriel_items *to_items,
                        const struct oriel_items *from_items);

/* The same as oriel_copy_items: for a prepared copy with a loop, and for one without. */
static inline __attribute__((always_inline)) void
oriel_copy_loop(const struct oriel_copy_prepared *prepared, char *to, const char *from)
{
    prepared->loop(oriel_at(to, prepared->to_bytes), prepared->to_stride,
                   oriel_at(from, prepared->from_bytes), prepared->from_stride, prepared->len_bytes,
                   prepared->count);
}

bool oriel_copy_general(const struct oriel_copy_prepared *prepared, char *to, const char *from);

#endif
