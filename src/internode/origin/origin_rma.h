/* Operations on targets of other machines: what rma.h promises, but that they are complete at origin and target only
 * after oriel_internode_flush (internode/origin/origin_sync.h).  The origin's buffer of what is put or accumulated is free when they return.
 *
 * A message, struct oriel_internode_head and its data:
 *
 *   a  the byte of the target's window (of its address space where the window is dynamic) from which places count
 *   b  ORIEL_INTERNODE_PUT, ORIEL_INTERNODE_GET: bytes that move; ORIEL_INTERNODE_ACCUMULATE: elements; ORIEL_INTERNODE_SWAP: 1
 *   c  how many places follow; 0: all is one run at a
 *   d  operator, kind of the elements (accumulates and swaps), flags: oriel_internode_word
 *
 * The data is, where c is above 0, c struct oriel_internode_batch, or with ORIEL_INTERNODE_BLOCKS c places (int64_t, bytes) and
 * then as many lengths (uint64_t, bytes) of single runs without padding; then the operands, packed: b bytes of a put, b
 * elements of an accumulate unless its operator is NO_OP, of a swap the new element and the expected one.  The answer's
 * data is what was read, packed: of a get, of an accumulate that returns, the element of a swap.
 *
 * What moves more than ORIEL_NET_DATA_BYTES is several messages, each of which has whole elements if it is an
 * accumulate. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_RMA_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_RMA_H

#include "datatype/operands.h"
#include "internode/internode.h"
#include "internode/origin/pack.h"

enum oriel_internode_flag {
    ORIEL_INTERNODE_RETURNS = 1, /* an accumulate that is asked */
    ORIEL_INTERNODE_BLOCKS = 2,
};

static inline uint32_t oriel_internode_word(enum oriel_operator operator, enum oriel_kind kind,
                                            unsigned flags)
{
    return (uint32_t) operator|(uint32_t) kind << 8 | flags << 16;
}

/* --- at the origin; as rma.h has them --- */

enum oriel_status oriel_internode_put(struct oriel_window *window, const struct oriel_span *target,
                                      const void *here, const struct oriel_side *origin);
enum oriel_status oriel_internode_get(struct oriel_window *window, const struct oriel_span *target,
                                      void *here, const struct oriel_side *origin);
enum oriel_status
oriel_internode_accumulate(struct oriel_window *window, const struct oriel_span *target,
                           struct oriel_elements elements, enum oriel_operator operator,
                           const struct oriel_operand * origin, const struct oriel_operand *result);
enum oriel_status oriel_internode_compare_and_swap(struct oriel_window *window,
                                                   const struct oriel_span *target,
                                                   const void *origin, const void *compare,
                                                   void *result);

/* --- at the target, in the agent's thread --- */

/* One of the four messages above, which may say anything; the head's window and from are known to be right. */
void oriel_internode_serve_operation(struct oriel_window *window,
                                     const struct oriel_net_asker *asker,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_arrived *message);

#endif
