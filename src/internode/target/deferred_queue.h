/* Locks that ranks of other machines want or hold of this process, and the messages of an epoch that does not wait for its lock,
 * as long as that is not held (lazy_lock.c, K2).  The agent's thread alone; target_sync.c calls. */
#ifndef ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H
#define ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H

#include "internode/origin/origin_sync.h"

/* Copies it behind the others; ORIEL_E_NO_MEM.  An unlock needs no memory. */
enum oriel_status oriel_internode_keep(struct oriel_internode_kept *kept,
                                       const struct oriel_net_asker *asker,
                                       const struct oriel_internode_head *head,
                                       const struct oriel_net_arrived *message, bool is_asked,
                                       oriel_internode_again *again);

/* Serves all but the unlock, in their order. */
void oriel_internode_kept_serve(struct oriel_window *window, struct oriel_internode_kept *kept);

/* The same without doing anything: what was asked is refused, with the thread's message. */
void oriel_internode_kept_refuse(struct oriel_internode_kept *kept, enum oriel_status status);

/* Who asked is lost. */
void oriel_internode_kept_drop(struct oriel_internode_kept *kept);

#endif
