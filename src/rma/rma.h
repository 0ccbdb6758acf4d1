/* One-sided operations on a window, after api/ has checked rank, epoch, datatypes and range.  All are complete at origin and
 * target when they return, but for those on other machines (origin_rma.h) and those that are deferred (deferred.h).  ORIEL_E_PEER when the target, or the holder of its accumulate lock, has died. */
#ifndef ORIEL_RMA_RMA_H
#define ORIEL_RMA_RMA_H

#include "datatype/operands.h"
#include "window/window.h"

/* Put moves all bytes of the origin side, get all of the target side; the other side has room for them. */
enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *target,
                            const void *here, const struct oriel_side *origin);
enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *target,
                            void *here, const struct oriel_side *origin);

/* accumulate and get_accumulate.  Either all sides are of the elements' kind, or none has padding.  In the second case the
 * origin may differ from the target only where the kind is ORIEL_KIND_CHAR; the result may differ always.
 * origin->here is not looked at for NO_OP; result is NULL for accumulate.  The operator must be allowed on the kind
 * (oriel_kinds[kind].plain is not NULL). */
enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *target,
                                   struct oriel_elements elements, enum oriel_operator operator,
                                   const struct oriel_operand * origin,
                                   const struct oriel_operand *result);

enum {
    /* from here on a plain loop under the lock is faster than as many instructions of their own */
    ORIEL_BULK_ELEMENTS = 4,
    /* at most, while the lock is held: it is given to others in between */
    ORIEL_BULK_BYTES = 1 << 18
};

/* accumulate of so many elements in one run, aligned, that the CPU reaches and that have native kernels; kernel is the plain
 * one. */
enum oriel_status oriel_accumulate_bulk(struct oriel_window *window, int32_t rank,
                                        oriel_kernel *kernel, uint32_t extent_bytes, char *there,
                                        const char *origin, uint64_t count);

/* compare_and_swap of one element of up to ORIEL_SWAP_BYTES (reduce/cpu_swap.h), compared bytewise. */
enum oriel_status oriel_compare_and_swap(struct oriel_window *window,
                                         const struct oriel_span *target, const void *origin,
                                         const void *compare, void *result);

#endif
