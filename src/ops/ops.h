/* One-sided operations on a window, after api/ has checked rank, epoch, datatypes and range.  All are complete at origin and
 * target when they return.  ORIEL_E_PEER when the target, or the holder of its accumulate lock, has died. */
#ifndef ORIEL_OPS_OPS_H
#define ORIEL_OPS_OPS_H

#include "ops/kind.h"
#include "window/window.h"

/* What moves: count elements of one kind, without holes but for the padding of pairs. */
struct oriel_span {
    int32_t target;
    uint64_t offset_bytes; /* of the first element, in the target's window */
    enum oriel_kind kind;
    uint64_t count;
};

enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *span, const void *origin);
enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *span, void *origin);

/* accumulate and get_accumulate: result may be NULL, origin too for NO_OP.  The operator must be allowed on the kind
 * (oriel_kinds[kind].plain is not NULL). */
enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *span,
                                   enum oriel_operator operator, const void *origin, void *result);

/* compare_and_swap of one element of up to 8 bytes, compared bytewise. */
enum oriel_status oriel_compare_and_swap(struct oriel_window *window, const struct oriel_span *span, const void *origin,
                                         const void *compare, void *result);

#endif
