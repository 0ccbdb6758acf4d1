/* Looking at the processes that a wait depends on: each watch checks just those that can block it.  The status is
 * ORIEL_E_PEER with a message that names the dead rank.  The waits of sync/ and rma/ use it. */
#ifndef ORIEL_INTERNODE_ORIGIN_LIVENESS_H
#define ORIEL_INTERNODE_ORIGIN_LIVENESS_H

#include "base/wait.h"
#include "window/window.h"

struct oriel_watched {
    const struct oriel_window *window;
    int32_t win_rank; /* the rank, or the target whose lock is waited for */
    bool by_agent;    /* which cannot wait for answers */
    /* set by oriel_liveness_all: whom it has found so; by oriel_liveness_rank of a rank elsewhere, too: it, or who
     * has died where it has left the window because of that, or -1: whoever would tell where it is does not */
    int32_t dead;
    uint32_t patience; /* of oriel_liveness_locks: so many looks more than one */
};

/* At how many of n processes one looks each 100 ms, where all wait for all: few, since a look costs some system calls, but at
 * all of them within a second. */
static inline int32_t oriel_liveness_share(int32_t n)
{
    int32_t share = n / 8 + 1;
    return share < 8 ? (n < 8 ? n : 8) : share;
}

/* At every so many looks who waits for a process elsewhere asks it whether it still serves the window. */
enum { ORIEL_WATCH_ASKS = 5 };

/* Context of all: struct oriel_watched. */
enum oriel_status oriel_liveness_nobody(void *context); /* who waits in another way sees to it */
enum oriel_status oriel_liveness_rank(void *context);   /* that one rank */
enum oriel_status oriel_liveness_all(void *context);    /* every rank of the window */
enum oriel_status
oriel_liveness_lock(void *context); /* who holds or waits for the lock of win_rank */
enum oriel_status oriel_liveness_reads(void *context); /* who holds or waits for lock_all */
enum oriel_status
oriel_liveness_locks(void *context); /* who holds an exclusive lock or waits for any lock; G6 */

/* Whether rank i is in the way of a wait for a lock, as far as its words tell: it holds what is wanted, or, for queued, waits for
 * a lock itself. */
bool oriel_liveness_blocks(const struct oriel_watch *watch, int32_t i, bool queued);

/* Looks at all members at once: one that has died, as far as this process can know, with a message; or -1. */
int32_t oriel_liveness_members(const struct oriel_window *window);

#endif
