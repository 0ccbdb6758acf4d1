/* Positions in this process's queue that lock_all epochs of internode ranks share (lock_all_queue.c
 * has the argument). Agent's thread only. */
#ifndef ORIEL_INTERNODE_TARGET_LOCK_ALL_QUEUE_H
#define ORIEL_INTERNODE_TARGET_LOCK_ALL_QUEUE_H

#include "internode/internode.h"

struct oriel_internode_share;

/* A position for an epoch. in_turn: after all writers (J4), else before as many as allowed (J1).
 * NULL without memory. */
struct oriel_internode_share *oriel_internode_share_join(struct oriel_window *window, bool in_turn);

/* Whether a writer waits after the position; may also be true where the readers' count wraps. */
bool oriel_internode_share_is_followed(const struct oriel_window *window,
                                       const struct oriel_internode_share *share);

/* Whether the epochs that share the position hold the lock. */
bool oriel_internode_share_is_in(struct oriel_window *window, struct oriel_internode_share *share);

/* For a lock that has another position: joins the first position, if the epochs there hold the
 * lock; else returns NULL (J5). joins returns how many locks joined the first position that way. */
struct oriel_internode_share *oriel_internode_share_join_first(struct oriel_window *window);
uint32_t oriel_internode_shares_joins(const struct oriel_internode *internode);

/* A holder of the position leaves. A lost origin never does, and the position stays in use. */
void oriel_internode_share_leave(struct oriel_window *window, struct oriel_internode_share *share);

void oriel_internode_shares_close(struct oriel_internode *internode);

#endif
