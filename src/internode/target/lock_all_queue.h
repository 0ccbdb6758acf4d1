/* Places in this process's queue that lock_all epochs of other machines' ranks share (lock_all_queue.c has the argument).
 * target_sync.c alone calls, in the agent's thread. */
#ifndef ORIEL_INTERNODE_TARGET_LOCK_ALL_QUEUE_H
#define ORIEL_INTERNODE_TARGET_LOCK_ALL_QUEUE_H

#include "internode/internode.h"

struct oriel_internode_share;

/* A place for an epoch; in_turn: behind all writers (J4), else before as many as it may (J1).  NULL without memory. */
struct oriel_internode_share *oriel_internode_share_join(struct oriel_window *window, bool in_turn);

/* Whether a writer stands behind it; one more may where readers wrap. */
bool oriel_internode_share_is_followed(const struct oriel_window *window,
                                       const struct oriel_internode_share *share);

/* Whether those who share it hold the lock. */
bool oriel_internode_share_is_in(struct oriel_window *window, struct oriel_internode_share *share);

/* The first place for one that has another, if those who share it hold the lock, else NULL (J5); and how many have come so to the
 * first place. */
struct oriel_internode_share *oriel_internode_share_join_inside(struct oriel_window *window);
uint32_t oriel_internode_shares_joins(const struct oriel_internode *far);

/* One of those who hold it leaves; who is lost never does, and the place stays taken. */
void oriel_internode_share_leave(struct oriel_window *window, struct oriel_internode_share *share);

void oriel_internode_shares_close(struct oriel_internode *far);

#endif
