/* Deferred messages of an epoch that does not wait for its lock, until the lock is acquired
 * (lazy_lock.c, K2). Agent's thread only. */
#ifndef ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H
#define ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H

#include "internode/origin/origin_sync.h"

/* Appends a copy of the message. An unlock needs no memory. Returns ORIEL_E_NO_MEM, or ORIEL_E_SYNC
 * for a message after the unlock. */
enum oriel_status oriel_internode_deferred_add(struct oriel_internode_deferred *kept,
                                               const struct oriel_net_requester *asker,
                                               const struct oriel_internode_head *head,
                                               const struct oriel_net_received *message,
                                               bool is_asked, oriel_internode_serve_fn *again);

/* Serves all messages but the unlock, in their order. */
void oriel_internode_deferred_serve(struct oriel_window *window,
                                    struct oriel_internode_deferred *kept);

/* Discards all messages. Requests are refused, with the thread's message. */
void oriel_internode_deferred_refuse(struct oriel_internode_deferred *kept,
                                     enum oriel_status status);

/* Discards all messages of a lost origin. */
void oriel_internode_deferred_drop(struct oriel_internode_deferred *kept);

#endif
