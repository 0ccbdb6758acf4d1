/* Copies from one layout to another where both sides are in this process's memory.  copy_remote.c, put_get.c, transfer_cache.c and api/
 * call. */
#ifndef ORIEL_DATATYPE_COPY_LAYOUT_H
#define ORIEL_DATATYPE_COPY_LAYOUT_H

#include "datatype/layout.h"
#include "transport/shared/copy_strided.h"
#include "transport/transport.h"

/* One side of an operation: count items of a layout from a place on. */
struct oriel_items {
    const struct oriel_node *layout;
    uint64_t count;
    int64_t extent_bytes;
};

enum {
    ORIEL_COPY_DEPTH = 24
}; /* of layouts that are taken apart level by level: the stack has room for so many */

/* Whether oriel_copy_items takes these two sides: as many bytes on both, and no padded pairs. */
static inline bool oriel_copy_can(const struct oriel_items *a, const struct oriel_items *b)
{
    return a->count * a->layout->size_bytes == b->count * b->layout->size_bytes &&
           !a->layout->padded && !b->layout->padded && a->layout->depth <= ORIEL_COPY_DEPTH &&
           b->layout->depth <= ORIEL_COPY_DEPTH;
}

/* Copies all bytes from one side to the other; element meets element as the type maps have them, in any order of time.  False
 * when memory is exhausted. */
bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from,
                      const struct oriel_items *from_items);

/* A copy between two layouts that may be done many times: all that does not depend on the places is found out once. */
struct oriel_copy_prepared {
    oriel_copy_strided_loop *loop; /* runs on both sides; else NULL */
    const struct oriel_plan
        *plan; /* kept by one of the layouts; else NULL, and the sides are taken apart each time */
    union {
        struct {                          /* of the loop and the plan */
            int64_t to_bytes, from_bytes; /* where it starts */
            uint64_t count;               /* of runs, or of the plan's items */
            uint64_t len_bytes;           /* of a run; likewise the distances */
            int64_t to_stride, from_stride;
        };
        struct {
            struct oriel_items to, from;
        };
    };
};

/* For two sides that oriel_copy_can; it lasts as long as the layouts do. */
void oriel_copy_prepare(struct oriel_copy_prepared *out, const struct oriel_items *to_items,
                        const struct oriel_items *from_items);

/* As oriel_copy_items; of one with a loop, and of one without. */
static inline __attribute__((always_inline)) void
oriel_copy_loop(const struct oriel_copy_prepared *prepared, char *to, const char *from)
{
    prepared->loop(oriel_at(to, prepared->to_bytes), prepared->to_stride,
                   oriel_at(from, prepared->from_bytes), prepared->from_stride, prepared->len_bytes,
                   prepared->count);
}

bool oriel_copy_otherwise(const struct oriel_copy_prepared *prepared, char *to, const char *from);

#endif
