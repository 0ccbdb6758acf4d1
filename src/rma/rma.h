/* One-sided operations on a window, after api/ has checked rank, epoch, datatypes and range. When
 * they return, they are complete at origin and target, except internode ones (origin_rma.h) and
 * deferred ones (deferred.h). ORIEL_E_PEER if the target, or the holder of its accumulate lock, has
 * died. */
#ifndef ORIEL_RMA_RMA_H
#define ORIEL_RMA_RMA_H

#include "datatype/operands.h"
#include "window/window.h"

/* Put moves all bytes of the origin side, get all of the target side; the other side has room for
 * them. */
enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *target,
                            const void *here, const struct oriel_side *origin);
enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *target,
                            void *here, const struct oriel_side *origin);

/* accumulate and get_accumulate. Either all sides have the elements' kind, or none has padding. In
 * the second case the origin may differ from the target only if the kind is ORIEL_KIND_CHAR; the
 * result may always differ. origin->here is not read for NO_OP; result is NULL for accumulate. The
 * operator must be allowed on the kind (oriel_kinds[kind].plain is not NULL). */
enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *target,
                                   struct oriel_elements elements, enum oriel_operator op,
                                   const struct oriel_operand *origin,
                                   const struct oriel_operand *result);

enum {
    /* from this count on a plain loop under the lock is faster than one instruction per element */
    ORIEL_BULK_ELEMENTS = 4,
    /* limit per acquisition of the lock, which is released in between */
    ORIEL_BULK_BYTES = 1 << 18
};

/* accumulate of at least ORIEL_BULK_ELEMENTS elements in one aligned run that the CPU reaches, of a
 * kind with native kernels; kernel is the plain one. */
enum oriel_status oriel_accumulate_bulk(struct oriel_window *window, int32_t rank,
                                        oriel_kernel *kernel, uint32_t extent_bytes, char *there,
                                        const char *origin, uint64_t count);

/* fetch_and_op on a list of elements of one predefined type at a rank, in order. */
struct oriel_element_list {
    int32_t rank;
    const struct oriel_type *type;
    enum oriel_operator op;
    int64_t unit_bytes; /* of disps */
    uint64_t count;
    const int64_t *disps;
    const char *origin; /* not read for NO_OP */
    char *result;
};
enum oriel_status oriel_fetch_and_op_list(struct oriel_window *window,
                                          const struct oriel_element_list *list);

/* compare_and_swap of one element of up to ORIEL_SWAP_BYTES (reduce/cpu_swap.h), compared bytewise.
 * Of ORIEL_KIND_OPAQUE128, the element must be aligned (else ORIEL_E_ARG), and it may contain
 * elements that accumulates of other kinds update. */
enum oriel_status oriel_compare_and_swap(struct oriel_window *window,
                                         const struct oriel_span *target, const void *origin,
                                         const void *compare, void *result);

#endif
