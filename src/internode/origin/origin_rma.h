/* Operations on internode targets. They do what rma.h promises, but are complete at origin and
 * target only after oriel_internode_flush (internode/origin/origin_sync.h). When they return, the
 * program may reuse the origin buffer of a put or accumulate.
 *
 * A message is struct oriel_internode_head and data. Fields of the head:
 *
 *   - a: base of the offsets: a byte of the target's window (of its address space if the window is
 *     dynamic)
 *   - b: ORIEL_INTERNODE_PUT, ORIEL_INTERNODE_GET: bytes moved; ORIEL_INTERNODE_ACCUMULATE:
 *     elements; ORIEL_INTERNODE_SWAP: 1
 *   - c: number of offsets that follow; 0: one run at a
 *   - d: operator, kind of the elements (accumulates and swaps), flags: oriel_internode_word
 *
 * If c is above 0, the data starts with c struct oriel_internode_batch. With ORIEL_INTERNODE_BLOCKS
 * it starts with c offsets (int64_t, bytes) and c lengths (uint64_t, bytes) of single runs without
 * padding. The packed operands follow: b bytes of a put; b elements of an accumulate, unless its
 * operator is NO_OP; the new and the expected element of a swap. The reply's data is the packed old
 * contents: of a get, of an accumulate that returns them, or the element of a swap.
 *
 * An operation of more than ORIEL_NET_DATA_BYTES is several messages. Each message of an accumulate
 * has whole elements. The last message of a notified operation has notifies; a put without bytes
 * may be a notification alone. Messages are served in order, but RDMA is not in that order: a
 * notified operation is never RDMA, and first awaits the RDMA operations before it. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_RMA_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_RMA_H

#include "datatype/operands.h"
#include "internode/internode.h"
#include "internode/origin/pack.h"

enum oriel_internode_flag {
    ORIEL_INTERNODE_RETURNS = 1, /* an accumulate that is a request */
    ORIEL_INTERNODE_BLOCKS = 2,
};

static inline uint32_t oriel_internode_word(enum oriel_operator op, enum oriel_kind kind,
                                            unsigned flags)
{
    return (uint32_t)op | (uint32_t)kind << 8 | flags << 16;
}

/* --- at the origin; contracts as in rma.h --- */

/* The origin's side of a put or get whose buffer the CPU cannot access: its packed bytes, one part
 * after the other in buffers of the caller. */
struct oriel_internode_staging {
    /* Returns the next part: its bytes, of a put, or room for them, of a get. The messages of the
     * parts before have been sent, and the target's lock is acquired if that is needed. */
    enum oriel_status (*next)(struct oriel_internode_staging *staging, char **here,
                              uint64_t *len_bytes);
};

/* A put or get of total_bytes. A part of a put may be reused from the next call of next on, or
 * after the return; one of a get has its bytes when the requests that were sent before the next
 * call, or the return, are complete. */
enum oriel_status oriel_internode_transfer_staged(struct oriel_window *window,
                                                  const struct oriel_span *target,
                                                  uint64_t total_bytes,
                                                  struct oriel_internode_staging *staging,
                                                  bool to_target);

enum oriel_status oriel_internode_put(struct oriel_window *window, const struct oriel_span *target,
                                      const void *here, const struct oriel_side *origin);
enum oriel_status oriel_internode_get(struct oriel_window *window, const struct oriel_span *target,
                                      void *here, const struct oriel_side *origin);
enum oriel_status oriel_internode_accumulate(struct oriel_window *window,
                                             const struct oriel_span *target,
                                             struct oriel_elements elements, enum oriel_operator op,
                                             const struct oriel_operand *origin,
                                             const struct oriel_operand *result);
/* A notification alone, which follows all earlier operations of this thread on the target. */
enum oriel_status oriel_internode_notify(struct oriel_window *window, int32_t target,
                                         uint32_t number);
enum oriel_status oriel_internode_compare_and_swap(struct oriel_window *window,
                                                   const struct oriel_span *target,
                                                   const void *origin, const void *compare,
                                                   void *result);

/* --- at the target, in the agent's thread --- */

/* Serves one of the four messages above, which may have any contents. The head's window and from
 * are validated. */
void oriel_internode_serve_operation(struct oriel_window *window,
                                     const struct oriel_net_requester *asker,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_received *message);

#endif
